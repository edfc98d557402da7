package node

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/record"
)

// pluginsOf are the options for a plugin folder with these files, by mode.
func pluginsOf(t *testing.T, files map[string]os.FileMode, blocks ...config.Plugin) pluginOptions {
	t.Helper()
	c := &config.Config{PluginDir: t.TempDir(), Plugins: make(map[string]config.Plugin)}
	for name, mode := range files {
		path := filepath.Join(c.PluginDir, name)
		must.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\nexit 3\n"), 0o600))
		must.NoError(t, os.Chmod(path, mode))
	}
	for _, b := range blocks {
		c.Plugins[b.Name] = b
	}
	program, err := os.Executable()
	must.NoError(t, err)
	run, err := os.MkdirTemp("", "nd")
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, os.RemoveAll(run)) })
	return pluginOptions{
		config: c, program: program, sockets: run, logs: t.TempDir(), logger: quiet(),
		records: record.NewTable[pluginRecord](records(t), "plugin", pluginRecords),
		reports: record.NewTable[pluginReport](records(t), "report", reportRecords),
	}
}

// records returns an empty store.
func records(t *testing.T) record.Store {
	t.Helper()
	disk, err := record.OpenDisk(t.TempDir())
	must.NoError(t, err)
	return disk
}

func namesOf(t *testing.T, o pluginOptions) []string {
	t.Helper()
	found, err := findPlugins(t.Context(), o)
	must.NoError(t, err)
	must.MapEmpty(t, found.devices)
	return slices.Sorted(maps.Keys(found.drivers))
}

func TestFindPlugins(t *testing.T) {
	t.Parallel()
	on := func(name string) config.Plugin { return config.Plugin{Name: name, Enabled: true} }
	off := func(name string) config.Plugin { return config.Plugin{Name: name} }
	for _, c := range []struct {
		name     string
		files    map[string]os.FileMode
		blocks   []config.Plugin
		expected []string
	}{
		{"nothing", nil, nil, nil},
		{"our drivers are off by default", nil, []config.Plugin{off("mock"), off(rawExec)}, nil},
		{"our drivers", nil, []config.Plugin{on("mock"), on(rawExec)}, []string{"mock", rawExec}},
		{"files that cannot be used keep their names", map[string]os.FileMode{"broken": 0o700, "open": 0o777, "text": 0o600}, nil, []string{"broken", "open", "text"}},
		{"a file is off", map[string]os.FileMode{"broken": 0o700, "other": 0o700}, []config.Plugin{off("other")}, []string{"broken"}},
		{"a hidden file", map[string]os.FileMode{".broken": 0o700}, nil, nil},
		{"raw_exec as a file is off by default too", map[string]os.FileMode{rawExec: 0o700}, nil, nil},
		{"raw_exec as a file", map[string]os.FileMode{rawExec: 0o700}, []config.Plugin{on(rawExec)}, []string{rawExec}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := pluginsOf(t, c.files, c.blocks...)
			o.kept = map[string]pluginRecord{"mock": {Driver: "mock"}, rawExec: {Driver: rawExec}} // nothing is launched for its name
			must.Eq(t, c.expected, namesOf(t, o))
		})
	}
}

// A plugin that must not run is reported as a driver that does not start, with the reason.
func TestFindPlugins_refused(t *testing.T) {
	t.Parallel()
	found, err := findPlugins(t.Context(), pluginsOf(t, map[string]os.FileMode{"open": 0o777, "text": 0o600, "broken": 0o700}))
	must.NoError(t, err)
	for name, expected := range map[string]string{"open": "other users may write to", "text": "not an executable file", "broken": "the plugin did not start"} {
		_, err := found.drivers[name].launch(t.Context())
		must.ErrorContains(t, err, expected)
	}

	_, err = findPlugins(t.Context(), pluginsOf(t, nil, config.Plugin{Name: "docker", Enabled: true}))
	must.ErrorContains(t, err, `enables the plugin "docker": there is no such file`)
	o := pluginsOf(t, nil)
	o.config.PluginDir = filepath.Join(o.config.PluginDir, "none")
	_, err = findPlugins(t.Context(), o)
	must.ErrorIs(t, err, os.ErrNotExist)
}

// The driver has the name that the plugin reports. The client stores the name.
func TestFindPlugins_namesItself(t *testing.T) {
	t.Parallel()
	o := pluginsOf(t, nil)
	script := filepath.Join(o.config.PluginDir, "nomad-driver-x")
	must.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nexec "+o.program+" plugin mock\n"), 0o700))
	found, err := findPlugins(t.Context(), o)
	must.NoError(t, err)
	must.MapContainsKey(t, found.drivers, "mock")
	i, err := found.drivers["mock"].launch(t.Context())
	must.NoError(t, err)
	p, is := found.drivers["mock"].(*driverProgram)
	must.True(t, is)
	must.Eq(t, "mock", p.record.Driver)
	must.NoError(t, i.Kill(t.Context()))

	o.kept = map[string]pluginRecord{"nomad-driver-x": {Driver: "mock"}}
	must.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nexit 3\n"), 0o700))
	must.Eq(t, []string{"mock"}, namesOf(t, o))
}

// mockPlugin writes a file into the plugin folder that is the driver mock.
func mockPlugin(t *testing.T, o pluginOptions, file string) {
	t.Helper()
	text := "#!/bin/sh\nexec " + o.program + " plugin mock\n"
	must.NoError(t, os.WriteFile(filepath.Join(o.config.PluginDir, file), []byte(text), 0o700))
}

// A plugin has the variables of the client that plugins may have, and those of its block. A changed
// block replaces the process, and an unchanged one does not. Regression: a plugin had no proxy and no
// LD_LIBRARY_PATH, and no block could set them.
func TestFindPlugins_environment(t *testing.T) { // not parallel: it sets variables
	for name, value := range map[string]string{
		"LD_LIBRARY_PATH": "/opt/lib", "https_proxy": "http://proxy:3128", "LC_TIME": "C", "NOMAD_TOKEN": "secret", "TZ": "Asia/Tokyo",
	} {
		t.Setenv(name, value)
	}
	o := pluginsOf(t, nil)
	file := filepath.Join(t.TempDir(), "environment")
	text := "#!/bin/sh\nenv > " + file + "\nexec " + o.program + " plugin mock\n"
	must.NoError(t, os.WriteFile(filepath.Join(o.config.PluginDir, "x"), []byte(text), 0o700))
	last := pluginRecord{}
	for _, step := range []struct {
		block     map[string]string
		has       []string
		takenOver bool
	}{
		{nil, []string{"LD_LIBRARY_PATH=/opt/lib", "https_proxy=http://proxy:3128", "LC_TIME=C", "TZ=Asia/Tokyo", "PATH=" + os.Getenv("PATH")}, false},
		{nil, nil, true},
		{map[string]string{"TZ": "UTC", "MODEL": "h 200"}, []string{"TZ=UTC", "MODEL=h 200", "LC_TIME=C"}, false},
		{map[string]string{"MODEL": "h 200", "TZ": "UTC"}, nil, true},
		{map[string]string{"MODEL": "h 100", "TZ": "UTC"}, []string{"MODEL=h 100"}, false},
	} {
		o.config.Plugins["x"] = config.Plugin{Name: "x", Enabled: true, Env: step.block}
		o.kept = map[string]pluginRecord{"x": last}
		found, err := findPlugins(t.Context(), o)
		must.NoError(t, err)
		used := found.drivers["mock"].(*driverProgram)
		i, err := used.launch(t.Context())
		must.NoError(t, err)
		must.Eq(t, step.takenOver, i.TakenOver())
		environment, err := os.ReadFile(file)
		must.NoError(t, err)
		for _, variable := range step.has {
			must.SliceContains(t, strings.Split(string(environment), "\n"), variable)
		}
		must.StrNotContains(t, string(environment), "secret")
		last = used.record
		i.Detach()
	}
	o.kept = map[string]pluginRecord{"x": last}
	found, err := findPlugins(t.Context(), o)
	must.NoError(t, err)
	i, err := found.drivers["mock"].launch(t.Context())
	must.NoError(t, err)
	must.NoError(t, i.Kill(t.Context()))
}

// Two files are one driver. The client uses the file that it has used before, and ends the process of
// the other one. A bug: the process of the other file ran on.
func TestFindPlugins_twoFiles(t *testing.T) {
	t.Parallel()
	o := pluginsOf(t, nil)
	disk := records(t)
	o.records = record.NewTable[pluginRecord](disk, "plugin", pluginRecords)
	count := func() int {
		all, _, err := disk.All()
		must.NoError(t, err)
		return len(all)
	}
	mockPlugin(t, o, "nomad-driver-x")
	found, err := findPlugins(t.Context(), o)
	must.NoError(t, err)
	first := found.drivers["mock"].(*driverProgram)
	used, err := first.launch(t.Context())
	must.NoError(t, err)
	used.Detach()

	mockPlugin(t, o, "a-new-one")
	o.kept = map[string]pluginRecord{"nomad-driver-x": first.record}
	found, err = findPlugins(t.Context(), o)
	must.NoError(t, err)
	second := found.drivers["mock"].(*driverProgram)
	must.Eq(t, "nomad-driver-x", second.file)
	used, err = second.launch(t.Context())
	must.NoError(t, err)
	must.Eq(t, first.record.Process, second.record.Process)
	must.Eq(t, 1, count())

	// An operator disables the plugin. The client ends its process.
	used.Detach()
	o.config.Plugins["nomad-driver-x"] = config.Plugin{Name: "nomad-driver-x"}
	o.config.Plugins["a-new-one"] = config.Plugin{Name: "a-new-one"}
	must.SliceEmpty(t, namesOf(t, o))
	alive, err := first.record.Process.Process.Alive()
	must.NoError(t, err)
	must.False(t, alive)
	must.Eq(t, 0, count())
}

// A bug: a file that must not run hid a usable plugin with the same name.
func TestFindPlugins_badFileDoesNotHide(t *testing.T) {
	t.Parallel()
	o := pluginsOf(t, map[string]os.FileMode{"a-text": 0o600, "mock": 0o600})
	o.kept = map[string]pluginRecord{"a-text": {Driver: "mock"}}
	mockPlugin(t, o, "nomad-driver-x")
	found, err := findPlugins(t.Context(), o)
	must.NoError(t, err)
	must.Eq(t, []string{"mock"}, slices.Sorted(maps.Keys(found.drivers)))
	i, err := found.drivers["mock"].launch(t.Context())
	must.NoError(t, err)
	must.NoError(t, i.Kill(t.Context()))
}

func TestWithRawExec(t *testing.T) {
	t.Parallel()
	for own, expected := range map[string]string{
		``:                               `{"enabled": true, "shim_dir": "/run/x"}`,
		`{"enabled": false}`:             `{"enabled": false, "shim_dir": "/run/x"}`,
		`{"shim_dir": "/y", "other": 1}`: `{"enabled": true, "shim_dir": "/y", "other": 1}`,
	} {
		got, err := withRawExec(json.RawMessage(own), "/run/x")
		must.NoError(t, err)
		must.EqJSON(t, expected, string(got))
	}
}

// A plugin was disabled while no client ran. The next client kills its process and deletes its
// record.
func TestNode_pluginSwitchedOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]config.Plugin{"mock": {Name: "mock", Enabled: true}})
	w.begin()
	w.awaitMock()
	w.stop()
	driver := w.kept()["mock"].Process.Process
	alive, err := driver.Alive()
	must.NoError(t, err)
	must.True(t, alive, must.Sprint("a driver outlives its client"))
	w.config.Plugins["mock"] = config.Plugin{Name: "mock"}
	w.begin()
	alive, err = driver.Alive()
	must.NoError(t, err)
	must.False(t, alive)
	w.stop()
	must.MapEmpty(t, w.kept())
}
