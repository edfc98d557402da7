package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/pathname"
	"github.com/seed-f9cf0b39/nodedrain/client/record"
	"github.com/seed-f9cf0b39/nodedrain/plugin/host"
)

// inTree are the drivers of this program, which run if the configuration has a block for them.
func inTree() []string { return []string{"mock", rawExec} }

// probeTimeout bounds the first launch of a plugin that was never seen, to learn its name.
const probeTimeout = 20 * time.Second

// pluginRecord is what the client keeps about a plugin.
type pluginRecord struct {
	// Driver is the name that the plugin gave itself, or empty while it is unknown.
	Driver string
	// Process is the newest process of the plugin.
	Process host.Record
}

// pluginProgram is a plugin that runs a driver. One goroutine at a time uses it: the core begins no
// launch of a driver before the last one was answered.
type pluginProgram struct {
	// file is the name of its file, or that of a driver of this program. It names the record.
	file    string
	host    *host.Program // nil if the file must not run
	refused error         // why, or nil
	records record.Table[pluginRecord]
	record  pluginRecord
	// probed is a process that was launched to learn the name, or nil.
	probed instance
}

// launch implements program.
func (p *pluginProgram) launch(ctx context.Context) (instance, error) {
	if p.refused != nil {
		return nil, p.refused
	}
	if i := p.probed; i != nil {
		p.probed = nil
		return i, nil
	}
	return p.launchNow(ctx)
}

// launchNow launches the plugin.
func (p *pluginProgram) launchNow(ctx context.Context) (*host.Instance, error) {
	i, err := p.host.Launch(ctx, p.record.Process, func(r host.Record) error {
		p.record.Process = r
		return p.records.Put(p.file, p.record)
	})
	if err != nil {
		return nil, err
	}
	if name := i.Info().Name; p.record.Driver != name {
		p.record.Driver = name
		if err := p.records.Put(p.file, p.record); err != nil {
			return nil, errors.Join(fmt.Errorf("keeping the name of the plugin: %w", err), i.Kill(ctx))
		}
	}
	return i, nil
}

// driver returns the name of the driver, or that of the file if it cannot be found out now.
func (p *pluginProgram) driver(ctx context.Context) (name string, err error) {
	if p.record.Driver != "" {
		return p.record.Driver, nil
	}
	if p.refused != nil {
		return p.file, p.refused
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	i, err := p.launchNow(ctx)
	if err != nil {
		return p.file, err
	}
	p.probed = i
	return p.record.Driver, nil
}

// pluginOptions are what all plugins of a node have in common.
type pluginOptions struct {
	config *config.Config
	// program is the path of this program, sockets the folder of all sockets.
	program, sockets string
	// logs is the folder of the plugins' logs.
	logs string
	// groups is whether the node can make control groups.
	groups  bool
	records record.Table[pluginRecord]
	kept    map[string]pluginRecord
	logger  *slog.Logger
}

// findPlugins returns the programs of the node's drivers, by the names of the drivers. A plugin that
// must not run is among them: its driver is reported with the reason.
func findPlugins(ctx context.Context, o pluginOptions) (map[string]program, error) {
	var found []*pluginProgram
	files, err := pluginFiles(o.config.PluginDir)
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
	for name, block := range o.config.Plugins {
		if block.Enabled && !slices.Contains(files, name) {
			return nil, fmt.Errorf("the configuration enables the plugin %q: there is no such file in plugin_dir %q", name, o.config.PluginDir)
		}
	}
	names := make([]string, len(found))
	var asking sync.WaitGroup
	for i, p := range found {
		asking.Go(func() {
			var err error
			if names[i], err = p.driver(ctx); err != nil {
				o.logger.Error("a plugin cannot be used", "plugin", p.file, "error", err)
			}
		})
	}
	asking.Wait()
	programs := make(map[string]program, len(found))
	for i, p := range found {
		switch _, twice := programs[names[i]]; {
		case twice:
			o.logger.Error("two plugins have the same driver; the second one is not used", "driver", names[i], "plugin", p.file)
		case names[i] == rawExec && !o.config.Plugins[rawExec].Enabled && !o.config.Plugins[p.file].Enabled:
			o.logger.Warn("raw_exec is off: the configuration does not enable it", "plugin", p.file)
		default:
			programs[names[i]] = p
		}
	}
	return programs, nil
}

// pluginFiles returns the names of the files in the plugin folder, sorted. Hidden files are left out.
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
	p := &pluginProgram{file: name, records: o.records, record: o.kept[name]}
	if p.refused = host.CheckFile(path); p.refused != nil {
		return p
	}
	own := o.config.Plugins[name].Config
	if name == rawExec && args != nil {
		if own, p.refused = withRawExec(own, filepath.Join(o.sockets, "shims")); p.refused != nil {
			return p
		}
	}
	p.host, p.refused = host.New(host.Options{
		Type: host.Driver, Path: path, Args: args, Config: own, Env: pluginEnv(),
		SocketDir: filepath.Join(o.sockets, shortName(name)), LogFile: filepath.Join(o.logs, pathname.Encode(name)+".log"),
		HostCgroup: name == rawExec && args != nil && o.groups, Logger: o.logger.With("driver", name),
	})
	return p
}

// pluginEnv is the environment of plugins: what programs need to run, and nothing of the client's own.
func pluginEnv() (env []string) {
	for _, name := range []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR"} {
		if value, has := os.LookupEnv(name); has {
			env = append(env, name+"="+value)
		}
	}
	return env
}
