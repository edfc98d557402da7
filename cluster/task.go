package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Task is one process of a group.
type Task struct {
	Name      string
	Resources Resources
	// MemoryMaxMB is the most memory that the task may use, in mebibytes, if the machine has more free than
	// Resources.MemoryMB, which placements count. Zero is Resources.MemoryMB, and [NoMemoryLimit] is no limit.
	MemoryMaxMB int64 `codec:",omitempty"`
	// Cores is the number of cores that the task has for itself. Placements count each as [CPUOfCore]: it
	// replaces Resources.CPU.
	Cores int `codec:",omitempty"`
	// KillTimeout is how long the task may take to end after it was killed.
	KillTimeout time.Duration
	// ShutdownDelay is waited before the task is killed.
	ShutdownDelay time.Duration
	// StoragePlugin makes every allocation of the job a storage plugin.
	StoragePlugin bool

	// Driver is the name of the driver that runs the task. Only simulated clients run a task without
	// one: see [Node.HasDriver].
	Driver string `codec:",omitempty"`
	// Config is the driver's configuration, a JSON object, or nil. Servers do not read it.
	Config json.RawMessage `codec:",omitempty"`
	// Env is the environment of the task, or nil.
	Env map[string]string `codec:",omitempty"`
	// User is the user that runs the task. Empty leaves the choice to the driver.
	User string `codec:",omitempty"`
	// Lifecycle is nil for a main task.
	Lifecycle *Lifecycle `codec:",omitempty"`
	// Leader means that the end of the task ends the other main tasks of the allocation.
	Leader bool `codec:",omitempty"`
	// KillSignal is the name of the signal that stops the task, such as SIGTERM. Empty leaves
	// the choice to the driver.
	KillSignal string `codec:",omitempty"`
	// Constraints restrict the nodes of the task's group.
	Constraints []Constraint `codec:",omitempty"`
	// RestartPolicy is nil for that of the group. See [TaskGroup.RestartPolicyOf].
	RestartPolicy *RestartPolicy `codec:",omitempty"`
	// Meta is the operator's information, or nil.
	Meta map[string]string `codec:",omitempty"`
	// LogConfig bounds the logs of the task; nil is [DefaultLogConfig].
	LogConfig *LogConfig `codec:",omitempty"`
	// Devices are what the task needs of the node's devices.
	Devices []DeviceRequest `codec:",omitempty"`
	// Ports are the ports of the node that the task itself requests, static ones first. It is an older form
	// of [TaskGroup.Ports].
	Ports []PortRequest `codec:",omitempty"`
	// Services are the entries of the catalogue that belong to the task.
	Services []Service `codec:",omitempty"`
	// VolumeMounts are the volumes of the group that the task sees.
	VolumeMounts []VolumeMount `codec:",omitempty"`
	// CSIPlugin makes the task a storage plugin for real volumes, or is nil. StoragePlugin is
	// then true.
	CSIPlugin *CSIPlugin `codec:",omitempty"`
}

// Bounds on one task.
const (
	// MaxTaskConfigBytes bounds [Task.Config].
	MaxTaskConfigBytes = 64 << 10
	// MaxMapEntries bounds the entries of one environment or meta map.
	MaxMapEntries = 1000
	// MaxMapValueBytes bounds one value of such a map.
	MaxMapValueBytes = 32 << 10
	// MaxTaskEnvBytes bounds the environment of a task on its client, in bytes of names and values.
	MaxTaskEnvBytes = 1 << 20
)

// NoMemoryLimit is the [Task.MemoryMaxMB] of a task without a limit.
const NoMemoryLimit = -1

// LogConfig bounds the logs of a task: for each of stdout and stderr, MaxFiles files of
// MaxFileSizeMB mebibytes.
type LogConfig struct {
	MaxFiles      int
	MaxFileSizeMB int
}

// MaxFileBytes is MaxFileSizeMB in bytes. If the bytes are too many for an int64, it is the largest one.
func (l LogConfig) MaxFileBytes() int64 { return min(int64(l.MaxFileSizeMB), math.MaxInt64>>20) << 20 }

// DefaultLogConfig is that of a task that has none.
func DefaultLogConfig() LogConfig { return LogConfig{MaxFiles: 10, MaxFileSizeMB: 10} }

// Logs returns the bounds of the task's logs.
func (t *Task) Logs() LogConfig {
	if t.LogConfig == nil {
		return DefaultLogConfig()
	}
	return *t.LogConfig
}

// Copy returns a copy that shares nothing with t that either may write to.
func (t *Task) Copy() *Task {
	if t == nil {
		return nil
	}
	c := *t
	c.Config = bytes.Clone(t.Config)
	c.Env, c.Meta = maps.Clone(t.Env), maps.Clone(t.Meta)
	c.Constraints = slices.Clone(t.Constraints)
	c.RestartPolicy = t.RestartPolicy.copy()
	if t.Lifecycle != nil {
		lifecycle := *t.Lifecycle
		c.Lifecycle = &lifecycle
	}
	c.Devices = slices.Clone(t.Devices)
	for i, d := range c.Devices {
		c.Devices[i].Constraints, c.Devices[i].Affinities = slices.Clone(d.Constraints), slices.Clone(d.Affinities)
	}
	c.Ports, c.Services = slices.Clone(t.Ports), copyServices(t.Services)
	c.VolumeMounts, c.CSIPlugin = slices.Clone(t.VolumeMounts), t.CSIPlugin.copy()
	if t.LogConfig != nil {
		logs := *t.LogConfig
		c.LogConfig = &logs
	}
	return &c
}

// Equal reports whether both tasks are the same in every field. An empty map or list equals a nil
// one.
func (t *Task) Equal(o *Task) bool {
	if t == nil || o == nil {
		return t == o
	}
	return t.Name == o.Name && t.Resources == o.Resources && t.MemoryMaxMB == o.MemoryMaxMB && t.Cores == o.Cores && t.KillTimeout == o.KillTimeout &&
		t.ShutdownDelay == o.ShutdownDelay && t.StoragePlugin == o.StoragePlugin && t.Driver == o.Driver &&
		bytes.Equal(t.Config, o.Config) && maps.Equal(t.Env, o.Env) && t.User == o.User &&
		equalPointed(t.Lifecycle, o.Lifecycle) && t.Leader == o.Leader && t.KillSignal == o.KillSignal &&
		slices.Equal(t.Constraints, o.Constraints) && equalPointed(t.RestartPolicy, o.RestartPolicy) &&
		maps.Equal(t.Meta, o.Meta) && equalPointed(t.LogConfig, o.LogConfig) && slices.EqualFunc(t.Devices, o.Devices, DeviceRequest.Equal) &&
		slices.Equal(t.Ports, o.Ports) && slices.EqualFunc(t.Services, o.Services, Service.Equal) && slices.Equal(t.VolumeMounts, o.VolumeMounts) && equalPointed(t.CSIPlugin, o.CSIPlugin)
}

// unplaced returns a copy without what decides only where the task may run, without the restart policy and without
// services: the catalogue and the checks follow a new version of these while the task runs.
func (t *Task) unplaced() *Task {
	if t == nil {
		return nil
	}
	c := *t.withoutServices()
	c.Constraints, c.RestartPolicy = nil, nil
	return &c
}

// withoutServices returns the task without the fields that its process does not depend on.
func (t *Task) withoutServices() *Task {
	if t == nil || len(t.Services) == 0 {
		return t
	}
	c := *t
	c.Services = nil
	return &c
}

func equalPointed[T comparable](a, b *T) bool { return a == b || (a != nil && b != nil && *a == *b) }

// usesDrivers reports whether the task has a field of [VersionOfDrivers].
func (t *Task) usesDrivers() bool {
	return t != nil && (t.Driver != "" || len(t.Config) > 0 || len(t.Env) > 0 || t.User != "" || t.Lifecycle != nil ||
		t.Leader || t.KillSignal != "" || len(t.Constraints) > 0 || t.RestartPolicy != nil || len(t.Meta) > 0 || t.LogConfig != nil)
}

// validate checks the fields that drivers and clients need.
func (t *Task) validate() error {
	var errs []error
	if t.Driver != "" {
		if err := CheckID(t.Driver); err != nil {
			errs = append(errs, fmt.Errorf("Invalid driver: %w", err))
		}
	}
	if t.User != "" {
		if err := CheckID(t.User); err != nil {
			errs = append(errs, fmt.Errorf("Invalid user: %w", err))
		}
	}
	if t.KillSignal != "" && !isSignal(t.KillSignal) {
		errs = append(errs, fmt.Errorf("Invalid kill signal %q: it must be a name such as SIGTERM", t.KillSignal))
	}
	errs = append(errs, t.validateLimits(), checkConfig(t.Config), checkMap("Env", t.Env), checkMap("Meta", t.Meta),
		checkConstraints(t.Constraints), t.RestartPolicy.validate(), t.validateDevices(), t.CSIPlugin.validate())
	if l := t.LogConfig; l != nil && (l.MaxFiles < 1 || l.MaxFileSizeMB < 1) {
		errs = append(errs, fmt.Errorf("Logs need at least 1 file of 1 MiB but found %d files of %d MiB", l.MaxFiles, l.MaxFileSizeMB))
	}
	return errors.Join(errs...)
}

func checkConfig(config json.RawMessage) error {
	switch {
	case len(config) == 0:
		return nil
	case len(config) > MaxTaskConfigBytes:
		return fmt.Errorf("Config has at most %d bytes but found %d", MaxTaskConfigBytes, len(config))
	case !json.Valid(config) || bytes.TrimLeft(config, " \t\r\n")[0] != '{':
		return errors.New("Config must be a JSON object")
	}
	return nil
}

// checkMap checks an environment or a meta map. It names the first wrong key in their order.
func checkMap(name string, m map[string]string) error {
	if len(m) > MaxMapEntries {
		return fmt.Errorf("%s has at most %d entries but found %d", name, MaxMapEntries, len(m))
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if err := CheckID(key); err != nil {
			return fmt.Errorf("%s: invalid key %q: %w", name, key, err)
		}
		if len(m[key]) > MaxMapValueBytes {
			return fmt.Errorf("%s: the value of %q has at most %d bytes but found %d", name, key, MaxMapValueBytes, len(m[key]))
		}
	}
	return nil
}

func mapBytes(m map[string]string) int {
	size := 0
	//lint:order a sum of integers
	for key, value := range m {
		size += len(key) + len(value)
	}
	return size
}

// TextBytes is the size that [MaxJobTextBytes] bounds.
func (j *Job) TextBytes() int {
	size := constraintBytes(j.Constraints) + mapBytes(j.Meta)
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		for _, r := range g.PortRequests() {
			size += len(r.Label)
		}
		size += constraintBytes(g.Constraints) + mapBytes(g.Meta) + volumeBytes(g) + serviceBytes(g)
		for _, t := range g.Tasks {
			if t != nil {
				size += len(t.Config) + mapBytes(t.Env) + mapBytes(t.Meta) + constraintBytes(t.Constraints) + t.deviceBytes()
			}
		}
	}
	return size
}

// NeededVersion is the lowest cluster version that has all fields of the job. A nil job needs the
// first.
func (j *Job) NeededVersion() Version {
	if j == nil {
		return MinVersion
	}
	needed := MinVersion
	if len(j.Constraints) > 0 || len(j.Meta) > 0 {
		needed = VersionOfDrivers
	}
	if j.DistinctHosts {
		needed = VersionOfRollouts
	}
	for _, g := range j.TaskGroups {
		needed = max(needed, g.neededVersion())
	}
	return needed
}

// At returns the job without the fields that a cluster version does not have: what servers keep of it
// in that version. It returns the job itself if it has none.
func (j *Job) At(v Version) *Job {
	if j.NeededVersion() <= v {
		return j
	}
	c := j.Copy()
	if v < VersionOfDrivers {
		c.Constraints, c.Meta = nil, nil
	}
	if v < VersionOfRollouts {
		c.DistinctHosts = false
	}
	for _, g := range c.TaskGroups {
		if g == nil {
			continue
		}
		if v < VersionOfDrivers {
			g.RestartPolicy, g.Constraints, g.Meta, g.Disconnect.StopOnClientAfter = nil, nil, nil, 0
		}
		if v < VersionOfVolumes {
			g.Volumes = nil
		}
		if v < VersionOfRollouts {
			g.Update, g.DistinctHosts = nil, false
		}
		if v < VersionOfPorts {
			g.Ports = nil
		}
		if v < VersionOfServices {
			g.Services = nil
		}
		if v < VersionOfRescheduling {
			g.Reschedule = nil
		}
		if v < VersionOfLimits {
			g.MaxRunDuration = 0
		}
		if v < VersionOfSurge && g.Migrate != nil {
			g.Migrate.MaxSurge = 0
		}
		if v < VersionOfConfirmation {
			g.Disconnect.NoReplace, g.Disconnect.KeepReplacement = false, false
		}
		for i, t := range g.Tasks {
			if t != nil {
				g.Tasks[i] = t.at(v)
			}
		}
	}
	return c
}

func (g *TaskGroup) neededVersion() Version {
	switch {
	case g == nil:
		return MinVersion
	case g.Migrate != nil && g.Migrate.MaxSurge != 0:
		return VersionOfSurge
	case g.Update != nil, g.DistinctHosts:
		return VersionOfRollouts
	case g.RequestsPorts():
		return VersionOfPorts
	case g.HasServices():
		return VersionOfServices
	case g.Reschedule != nil:
		return VersionOfRescheduling
	case g.usesLimits():
		return VersionOfLimits
	case g.Disconnect.NoReplace || g.Disconnect.KeepReplacement:
		return VersionOfConfirmation
	case g.usesVolumes():
		return VersionOfVolumes
	case g.RequestsDevices():
		return VersionOfDevices
	case g.usesDrivers():
		return VersionOfDrivers
	}
	return MinVersion
}

// at changes a copy of a task to what [Job.At] keeps.
func (t *Task) at(v Version) *Task {
	if v < VersionOfDrivers {
		return &Task{
			Name: t.Name, Resources: t.Resources, KillTimeout: t.KillTimeout, ShutdownDelay: t.ShutdownDelay, StoragePlugin: t.StoragePlugin,
		}
	}
	if v < VersionOfDevices {
		t.Devices = nil
	}
	if v < VersionOfVolumes {
		t.VolumeMounts, t.CSIPlugin = nil, nil
	}
	if v < VersionOfPorts {
		t.Ports = nil
	}
	if v < VersionOfLimits {
		t.MemoryMaxMB, t.Cores = 0, 0
	}
	if v < VersionOfServices {
		t.Services = nil
	}
	return t
}

// usesLimits reports whether the group has a field of [VersionOfLimits].
func (g *TaskGroup) usesLimits() bool {
	return g.MaxRunDuration != 0 || slices.ContainsFunc(g.Tasks, func(t *Task) bool { return t != nil && (t.MemoryMaxMB != 0 || t.Cores != 0) })
}

func (g *TaskGroup) usesDrivers() bool {
	return g.RestartPolicy != nil || len(g.Constraints) > 0 || len(g.Meta) > 0 || g.Disconnect.StopOnClientAfter != 0 ||
		slices.ContainsFunc(g.Tasks, (*Task).usesDrivers)
}

// RequestsDevices reports whether a task of the group has requests for devices.
func (g *TaskGroup) RequestsDevices() bool {
	return slices.ContainsFunc(g.Tasks, func(t *Task) bool { return t != nil && len(t.Devices) > 0 })
}

// isSignal reports whether a kill signal may have the name: it is one of those of Linux.
func isSignal(name string) bool { return slices.Contains(Signals(), name) }

// Signals returns the names of the signals that a job may name.
func Signals() []string {
	return []string{
		"SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGIO", "SIGIOT",
		"SIGKILL", "SIGPIPE", "SIGPROF", "SIGQUIT", "SIGSEGV", "SIGSTOP", "SIGSYS", "SIGTERM", "SIGTRAP", "SIGTSTP",
		"SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGXCPU", "SIGXFSZ",
	}
}
