package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/record"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/environment"
	"github.com/seed-f9cf0b39/nodedrain/plugin/host"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
)

// inTree are the built-in drivers, which run if the configuration has a block for them.
func inTree() []string { return []string{"mock", rawExec} }

// probeTimeout is the timeout of the first launch of a new plugin, which reads its name.
const probeTimeout = 20 * time.Second

// pluginRecord is the record of a plugin on disk.
type pluginRecord struct {
	// Driver or Device is the name that the plugin reports, as a driver or as a device plugin. Both
	// are empty while the name is unknown.
	Driver, Device string
	// Process is the newest process of the plugin.
	Process host.Record
}

// pluginProgram is a plugin. One goroutine at a time uses it, because the core starts a launch of a
// plugin only after the answer to the last launch.
type pluginProgram struct {
	// file is the name of the plugin's file or of the built-in driver. It is also the name of the
	// record.
	file    string
	host    *host.Program // nil if the file must not run
	refused error         // why, or nil
	records record.Table[pluginRecord]
	record  pluginRecord
	// reports has the newest reports. report is that of an earlier client.
	reports reportTable
	report  pluginReport
	logger  *slog.Logger
	// probed is a process that was launched to read the name, or nil.
	probed *host.Instance
	// is and failed are the result of probe: the plugin, and whether it cannot be used.
	is     client.Plugin
	failed bool
}

// driverProgram is a plugin that runs a driver.
type driverProgram struct{ *pluginProgram }

// launch implements program.
func (p *driverProgram) launch(ctx context.Context) (driverInstance, error) {
	i, err := p.pluginProgram.launch(ctx)
	if err != nil {
		return nil, err
	}
	if i.Info().Type != host.Driver {
		return nil, errors.Join(errors.New("the file is no longer a driver: restart the client to use it"), i.Kill(ctx))
	}
	return p.withReports(driverOf{i, i.Driver()}, i.Record()), nil
}

// driverOf is one process of a driver, with its calls.
type driverOf struct {
	instance
	driver.Driver
}

// deviceProgram is a plugin that runs a device plugin.
type deviceProgram struct{ *pluginProgram }

// launch implements program.
func (p *deviceProgram) launch(ctx context.Context) (deviceInstance, error) {
	i, err := p.pluginProgram.launch(ctx)
	if err != nil {
		return nil, err
	}
	if i.Info().Type != host.Device {
		return nil, errors.Join(errors.New("the file is no longer a device plugin: restart the client to use it"), i.Kill(ctx))
	}
	return p.withReports(devicesOf{i, i.Device()}, i.Record()), nil
}

// devicesOf is one process of a device plugin, with its calls.
type devicesOf struct {
	instance
	device.Plugin
}

// launch returns the process that was launched to read the name, or launches the plugin.
func (p *pluginProgram) launch(ctx context.Context) (*host.Instance, error) {
	if p.refused != nil {
		return nil, p.refused
	}
	if i := p.probed; i != nil {
		p.probed = nil
		return i, nil
	}
	return p.launchNow(ctx)
}

func (p *pluginProgram) launchNow(ctx context.Context) (*host.Instance, error) {
	i, err := p.host.Launch(ctx, p.record.Process, func(r host.Record) error {
		p.record.Process = r
		return p.records.Put(p.file, p.record)
	})
	if err != nil {
		return nil, err
	}
	if before := p.record; p.identify(i.Info()) != before {
		if err := p.records.Put(p.file, p.record); err != nil {
			return nil, errors.Join(fmt.Errorf("keeping the name of the plugin: %w", err), i.Kill(ctx))
		}
	}
	return i, nil
}

// identify stores the type and the name that the plugin reports, and returns the new record.
func (p *pluginProgram) identify(i host.Info) pluginRecord {
	p.record.Driver, p.record.Device = "", ""
	if i.Type == host.Device {
		p.record.Device = i.Name
	} else {
		p.record.Driver = i.Name
	}
	return p.record
}

// probe reads the type and the name of the plugin. If the plugin cannot start, it counts as a driver
// with the name of the file, and the reason is logged.
func (p *pluginProgram) probe(ctx context.Context, logger *slog.Logger) {
	err := p.refused
	if err == nil && p.record.Driver == "" && p.record.Device == "" {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		p.probed, err = p.launchNow(ctx)
	}
	if p.failed = err != nil; p.failed {
		logger.Error("a plugin cannot be used", "plugin", p.file, "error", err)
	}
	switch {
	case p.record.Device != "":
		p.is = client.Plugin{Type: client.DevicePlugin, Name: p.record.Device}
	case p.record.Driver != "":
		p.is = client.Plugin{Name: p.record.Driver}
	default:
		p.is = client.Plugin{Name: p.file}
	}
}

// rank sorts plugins for files that report the same name: a plugin that an earlier client has used
// first, because it may have tasks, and plugins that cannot be used last.
func (p *pluginProgram) rank() int {
	switch {
	case p.failed:
		return 2
	case p.probed != nil:
		return 1
	}
	return 0
}

// pluginOptions are the options that all plugins of a node share.
type pluginOptions struct {
	config *config.Config
	// program is the path of this program, sockets the folder of all sockets.
	program, sockets string
	// logs is the folder of the plugins' logs.
	logs string
	// groups: the node can create control groups.
	groups  bool
	records record.Table[pluginRecord]
	kept    map[string]pluginRecord
	// reports has the newest reports, and reported are those of an earlier client.
	reports  reportTable
	reported map[string]pluginReport
	logger   *slog.Logger
}

// foundPlugins are the programs of the node's plugins, by the names of the plugins.
type foundPlugins struct {
	drivers map[string]program[driverInstance]
	devices map[string]program[deviceInstance]
}

// findPlugins returns the programs of the node's plugins. It includes plugins that must not run, so
// that they are reported with the reason.
func findPlugins(ctx context.Context, o pluginOptions) (*foundPlugins, error) {
	var found []*pluginProgram
	files, err := enabledFiles(o.config)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if block, has := o.config.Plugins[file]; has && !block.Enabled {
			continue
		}
		found = append(found, o.newProgram(file, filepath.Join(o.config.PluginDir, file), nil))
	}
	for _, name := range inTree() {
		if o.config.Plugins[name].Enabled && !slices.Contains(files, name) {
			found = append(found, o.newProgram(name, o.program, []string{"plugin", name}))
			files = append(files, name)
		}
	}
	o.stopUnused(ctx, found)
	var running sync.WaitGroup
	for _, p := range found {
		running.Go(func() { p.probe(ctx, o.logger) })
	}
	running.Wait()
	slices.SortStableFunc(found, func(a, b *pluginProgram) int { return cmp.Compare(a.rank(), b.rank()) })
	all := &foundPlugins{drivers: make(map[string]program[driverInstance]), devices: make(map[string]program[deviceInstance])}
	for _, p := range found {
		why := o.add(all, p)
		if why == "" {
			continue
		}
		o.logger.Warn("the client does not use a plugin file", "plugin", p.is.String(), "file", p.file, "why", why)
		if err := o.end(ctx, p.file, p.record.Process); err != nil {
			o.logger.Error("the process of an unused plugin file could not be stopped", "file", p.file, "error", err)
		}
	}
	return all, nil
}

// add adds the plugin, or returns why the client does not use it.
func (o *pluginOptions) add(all *foundPlugins, p *pluginProgram) (why string) {
	const twice = "another file is the same plugin"
	name := p.is.Name
	switch {
	case p.is.Type == client.DevicePlugin:
		if all.devices[name] != nil {
			return twice
		}
		all.devices[name] = &deviceProgram{p}
	case name == rawExec && !o.config.Plugins[rawExec].Enabled && !o.config.Plugins[p.file].Enabled:
		return "raw_exec is off: the configuration does not enable it"
	case all.drivers[name] != nil:
		return twice
	default:
		all.drivers[name] = &driverProgram{p}
	}
	return ""
}

// stopUnused ends the processes of plugins that an earlier client has started and that are now
// disabled or removed. Nothing else would end them.
func (o *pluginOptions) stopUnused(ctx context.Context, found []*pluginProgram) {
	for _, file := range slices.Sorted(maps.Keys(o.kept)) {
		if slices.ContainsFunc(found, func(p *pluginProgram) bool { return p.file == file }) {
			continue
		}
		if err := o.end(ctx, file, o.kept[file].Process); err != nil {
			o.logger.Error("a plugin that is off, or whose file is gone, could not be stopped: its process runs on", "plugin", file, "error", err)
			continue
		}
		o.logger.Warn("a plugin is off, or its file is gone: its process was stopped, and its tasks are lost", "plugin", file)
	}
}

// end ends the process of a plugin that the client does not use, and deletes its record.
func (o *pluginOptions) end(ctx context.Context, file string, process host.Record) error {
	// The file may be gone: the path is only a name here.
	unused, err := host.New(o.hostOptions(file, filepath.Join("/", o.config.PluginDir, file)))
	if err == nil {
		err = unused.End(ctx, process)
	}
	if err == nil {
		err = errors.Join(o.records.Delete(file), o.reports.Delete(file))
	}
	return err
}

// CheckPlugins returns an error if the plugin folder of the configuration cannot be read, or if a
// plugin that the configuration enables has no file. A client with this configuration does not
// start.
func CheckPlugins(c *config.Config) error {
	_, err := enabledFiles(c)
	return err
}

// enabledFiles returns the names of the files in the plugin folder, also of those that the
// configuration disables. Each plugin that it enables is one of them, or part of this program.
func enabledFiles(c *config.Config) ([]string, error) {
	files, err := pluginFiles(c.PluginDir)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Plugins)) {
		if c.Plugins[name].Enabled && !slices.Contains(files, name) && !slices.Contains(inTree(), name) {
			return nil, fmt.Errorf("the configuration enables the plugin %q: there is no such file in plugin_dir %q", name, c.PluginDir)
		}
	}
	return files, nil
}

// pluginFiles returns the names of the files in the plugin folder, sorted. Hidden files are left
// out.
func pluginFiles(dir string) ([]string, error) {
	if dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading plugin_dir: %w", err)
	}
	var files []string
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && info.Mode().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, e.Name())
		}
	}
	return files, nil
}

// newProgram returns a plugin that runs a file.
func (o *pluginOptions) newProgram(name, path string, args []string) *pluginProgram {
	p := &pluginProgram{
		file: name, records: o.records, record: o.kept[name], reports: o.reports, report: o.reported[name], logger: o.logger.With("file", name),
	}
	if p.refused = host.CheckFile(path); p.refused != nil {
		return p
	}
	own := o.config.Plugins[name].Config
	if name == rawExec && args != nil {
		if own, p.refused = withRawExec(own, filepath.Join(o.sockets, shimsDir)); p.refused != nil {
			return p
		}
	}
	var kind host.Type // the program of a file in the plugin folder reports its type
	if args != nil {
		kind = host.Driver
	}
	options := o.hostOptions(name, path)
	options.Type, options.Args, options.Config = kind, args, own
	options.HostCgroup = name == rawExec && args != nil && o.groups
	p.host, p.refused = host.New(options)
	return p
}

// hostOptions are the options of a plugin that all plugins need.
func (o *pluginOptions) hostOptions(name, path string) host.Options {
	return host.Options{
		Path: path, Env: environment.Of(os.Environ(), o.config.Plugins[name].Env),
		SocketDir: filepath.Join(o.sockets, shortName(name)), LogFile: filepath.Join(o.logs, pathname.Encode(name)+".log"),
		Logger: o.logger.With("file", name),
	}
}
