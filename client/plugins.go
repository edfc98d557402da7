package client

import (
	"slices"
	"time"
)

// PluginType is the kind of a plugin.
type PluginType uint8

// The values of [PluginType].
const (
	DriverPlugin PluginType = iota
	DevicePlugin
)

// String returns "driver" or "device plugin".
func (t PluginType) String() string {
	if t == DevicePlugin {
		return "device plugin"
	}
	return "driver"
}

// Plugin names a plugin of the node. A driver and a device plugin may have the same name.
type Plugin struct {
	Type PluginType
	Name string
}

// String returns the type and the name.
func (p Plugin) String() string { return p.Type.String() + " " + p.Name }

// process is the state of the process of one plugin. It restarts the process when the process dies.
type process struct {
	core   *Core
	plugin Plugin
	// generation is the number of the present process, or zero if none runs.
	generation Generation
	reattached bool
	upSince    time.Duration
	launching  bool
	// known: the plugin has reported its state once, or failed to start.
	known    bool
	launchAt time.Duration
	failures int
}

// pluginNames returns the names sorted and without duplicates.
func pluginNames(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// mustLaunch reports whether the process must be started now, because none runs.
func (p *process) mustLaunch() bool {
	return p.generation == 0 && !p.launching && p.core.reached(p.launchAt)
}

// launch starts the process. take handles the answer.
func (p *process) launch(take func(Launched)) {
	p.launching = true
	p.core.options.Shell.Launch(p.plugin, reply(p.core, take))
}

// launched handles the answer to a launch, and returns whether the process runs.
func (p *process) launched(l Launched) bool {
	p.launching = false
	if l.Err != nil {
		p.known = true
		p.failures++
		wait := backoff(p.failures, p.core.options.MinRelaunch, p.core.options.MaxRelaunch)
		p.launchAt = p.core.now.Boot + wait
		p.core.options.Logger.Error("a plugin did not start", "plugin", p.plugin.String(), "error", l.Err, "retry_in", wait)
		return false
	}
	p.generation, p.reattached, p.upSince = l.Generation, l.Reattached, p.core.now.Boot
	p.core.visiting.all()
	p.core.options.Logger.Info("a plugin has started", "plugin", p.plugin.String(), "generation", uint64(l.Generation))
	return true
}

// down handles the end of a process, and returns whether it was the present process.
func (p *process) down(generation Generation) bool {
	if p.generation != generation || generation == 0 {
		return false
	}
	p.generation = 0
	if p.core.now.Boot-p.upSince >= p.core.options.MaxRelaunch {
		p.failures = 0
	}
	wait := time.Duration(0)
	if p.failures > 0 {
		wait = backoff(p.failures, p.core.options.MinRelaunch, p.core.options.MaxRelaunch)
	}
	p.failures++
	p.launchAt = p.core.now.Boot + wait
	p.core.options.Logger.Warn("a plugin has ended; its tasks continue to run", "plugin", p.plugin.String(), "generation", uint64(generation), "restart_in", wait)
	return true
}

// because adds a reason to a text, if there is one.
func because(text, why string) string {
	if why == "" {
		return text
	}
	return text + ": " + why
}
