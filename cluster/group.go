package cluster

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// TaskGroup is a set of tasks that are placed together, Count times.
type TaskGroup struct {
	Name  string
	Count int
	// Migrate is the pace at which a drain may move the group, or nil. After [Job.Canonicalize]
	// the groups of service jobs have one and those of other jobs have none.
	Migrate *MigrateStrategy
	// Update is the pace at which a new version replaces the group's allocations. Nil is
	// [DefaultUpdateStrategy]: see [TaskGroup.UpdateOf].
	Update *UpdateStrategy `codec:",omitempty"`
	// Reschedule is how often and after which delay allocations that ended by themselves are replaced. Nil is
	// at once, [MaxReschedules] times in a row. A registration over the HTTP API has [DefaultReschedulePolicy].
	Reschedule *ReschedulePolicy `codec:",omitempty"`
	// NodeClasses are the node classes the group may run on; empty is any.
	NodeClasses []string
	// EphemeralDisk is what happens to the group's data when it moves.
	EphemeralDisk EphemeralDisk
	// Disconnect is the group's behaviour while its node cannot be reached.
	Disconnect DisconnectStrategy
	// ShutdownDelay is waited before any task of the group is killed.
	ShutdownDelay time.Duration
	// MaxRunDuration is how long an allocation may run, from the first start of a task on. Then its client stops it,
	// and it has failed. Zero is without a limit.
	MaxRunDuration time.Duration `codec:",omitempty"`
	// RestartPolicy is that of the tasks that have none, or nil. See [TaskGroup.RestartPolicyOf].
	RestartPolicy *RestartPolicy `codec:",omitempty"`
	// Constraints restrict the nodes that the group may run on, with those of its job and tasks.
	Constraints []Constraint `codec:",omitempty"`
	// DistinctHosts allows no two allocations of the group on one node. It needs cluster version 9.
	DistinctHosts bool `codec:",omitempty"`
	// Meta is the operator's information, or nil.
	Meta map[string]string `codec:",omitempty"`
	// Volumes are what each allocation needs, in the order of their names.
	Volumes []VolumeRequest `codec:",omitempty"`
	// Ports are the ports of the node that each allocation gets, static ones first.
	Ports []PortRequest `codec:",omitempty"`
	// Services are the entries of the catalogue that each allocation has.
	Services []Service `codec:",omitempty"`
	Tasks    []*Task
}

// EphemeralDisk is the scratch space of a group.
type EphemeralDisk struct {
	Sticky bool
	// Migrate requests a copy of the data for a replacement, which stays
	// pending until its predecessor has ended and the copy is done.
	Migrate bool
	SizeMB  int64
}

// DisconnectStrategy is a group's behaviour while its node cannot be reached.
type DisconnectStrategy struct {
	// LostAfter is how long an allocation on a disconnected node stays unknown
	// before it counts as lost; zero is at once.
	LostAfter time.Duration
	// StopOnClientAfter is how long a client that reaches no server lets the group's allocations
	// run; zero is for ever.
	StopOnClientAfter time.Duration `codec:",omitempty"`
	// NoReplace means that an allocation on a node that cannot be reached keeps its slot, and so does a
	// lost one until its end is confirmed. An allocation that a drain moves is replaced all the same.
	NoReplace bool `codec:",omitempty"`
	// KeepReplacement means that an allocation whose node returns in time is stopped when its
	// replacement runs. Otherwise the replacement is stopped. On a node that drains or is ineligible
	// the replacement is always kept.
	KeepReplacement bool `codec:",omitempty"`
}

// DefaultKillTimeout is the kill timeout of a task that names none.
const DefaultKillTimeout = 5 * time.Second

// Resources is the need of one allocation of the group, [Resources.Bounded].
func (g *TaskGroup) Resources() Resources {
	total := Resources{DiskMB: g.EphemeralDisk.SizeMB}
	for _, t := range g.Tasks {
		if t != nil {
			total = total.Plus(t.Resources)
		}
	}
	return total.Bounded()
}

func (g *TaskGroup) canonicalize(t JobType) {
	if t == JobService && g.Migrate == nil {
		g.Migrate = DefaultMigrateStrategy()
	}
	if g.Update != nil && *g.Update == DefaultUpdateStrategy() {
		g.Update = nil
	}
	g.Constraints, g.Meta = orNil(g.Constraints), orNilMap(g.Meta)
	g.Volumes, g.Ports = orNil(g.Volumes), sortedPorts(g.Ports)
	slices.SortStableFunc(g.Volumes, func(a, b VolumeRequest) int { return strings.Compare(a.Name, b.Name) })
	for i := range g.Volumes {
		g.Volumes[i].MountOptions = g.Volumes[i].MountOptions.canonical()
	}
	g.Services = canonicalServices(g.Services)
	for _, task := range g.Tasks {
		if task == nil {
			continue
		}
		task.Services = canonicalServices(task.Services)
		if task.KillTimeout == 0 {
			task.KillTimeout = DefaultKillTimeout
		}
		if task.Cores > 0 && task.Cores <= MaxCores {
			task.Resources.CPU = int64(task.Cores) * CPUOfCore
		}
		task.Config, task.Constraints = orNil(task.Config), orNil(task.Constraints)
		task.Env, task.Meta = orNilMap(task.Env), orNilMap(task.Meta)
		task.VolumeMounts = orNil(task.VolumeMounts)
		task.StoragePlugin = task.StoragePlugin || task.CSIPlugin != nil
		task.Devices, task.Ports = orNil(task.Devices), sortedPorts(task.Ports)
		for i, r := range task.Devices {
			task.Devices[i].Constraints, task.Devices[i].Affinities = orNil(r.Constraints), orNil(r.Affinities)
		}
	}
}

func (g *TaskGroup) validate(t JobType) error {
	var errs []error
	if g.Name == "" {
		errs = append(errs, errors.New("Missing task group name"))
	} else if err := CheckID(g.Name); err != nil {
		errs = append(errs, fmt.Errorf("Invalid task group name: %w", err))
	}
	if g.Count < 0 {
		errs = append(errs, fmt.Errorf("Count must be >= 0 but found %d", g.Count))
	}
	if g.ShutdownDelay < 0 {
		errs = append(errs, fmt.Errorf("ShutdownDelay is %s and must be >= 0", g.ShutdownDelay))
	}
	if g.MaxRunDuration < 0 {
		errs = append(errs, fmt.Errorf("MaxRunDuration is %s and must be >= 0", g.MaxRunDuration))
	}
	if g.Disconnect.LostAfter < 0 {
		errs = append(errs, fmt.Errorf("LostAfter is %s and must be >= 0", g.Disconnect.LostAfter))
	}
	if g.Disconnect.StopOnClientAfter < 0 {
		errs = append(errs, fmt.Errorf("StopOnClientAfter is %s and must be >= 0", g.Disconnect.StopOnClientAfter))
	}
	if g.EphemeralDisk.SizeMB < 0 {
		errs = append(errs, fmt.Errorf("EphemeralDisk.SizeMB must be >= 0 but found %d", g.EphemeralDisk.SizeMB))
	}
	if g.Migrate != nil {
		if t != JobService {
			errs = append(errs, fmt.Errorf("Job type %q does not allow migrate block", t))
		}
		errs = append(errs, g.Migrate.Validate(), validateSurge(g))
	}
	errs = append(errs, g.Update.Validate(), g.Reschedule.Validate(t), g.RestartPolicy.validate(), checkConstraints(g.Constraints), checkMap("Meta", g.Meta), g.checkDevices(), g.validatePorts(), g.validateServices(t))
	errs = append(errs, g.validateTasks()...)
	errs = append(errs, g.validateLifecycle()...)
	errs = append(errs, g.validateVolumes()...)
	return errors.Join(errs...)
}

func (g *TaskGroup) validateTasks() (errs []error) {
	if len(g.Tasks) == 0 {
		errs = append(errs, errors.New("Missing tasks"))
	}
	none, room := Resources{}, Resources{CPU: math.MaxInt64, MemoryMB: math.MaxInt64, DiskMB: math.MaxInt64 - max(0, g.EphemeralDisk.SizeMB), GPU: math.MaxInt64}
	for i, task := range g.Tasks {
		if len(errs) >= maxReasons {
			return append(errs, errTooManyReasons)
		}
		if task == nil {
			errs = append(errs, fmt.Errorf("Task %d is missing", i))
			continue
		}
		if err := CheckID(task.Name); err != nil {
			errs = append(errs, fmt.Errorf("Task %d: Invalid name: %w", i, err))
		}
		if task.KillTimeout < 0 || task.ShutdownDelay < 0 {
			errs = append(errs, fmt.Errorf("%s: KillTimeout and ShutdownDelay must be >= 0", named("Task", task.Name, i)))
		}
		if err := task.validate(); err != nil {
			errs = append(errs, withPlace(named("Task", task.Name, i), err))
		}
		if !none.Fits(task.Resources) {
			errs = append(errs, fmt.Errorf("%s: resources must be >= 0", named("Task", task.Name, i)))
			continue
		}
		if !task.Resources.Fits(room) { // the sum would overflow
			return append(errs, fmt.Errorf("%s: resources of the group add up to too much", named("Task", task.Name, i)))
		}
		room = room.Minus(task.Resources)
	}
	return errs
}

// Copy returns a copy that shares nothing with g that either may write to.
func (g *TaskGroup) Copy() *TaskGroup {
	if g == nil {
		return nil
	}
	c := *g
	if g.Migrate != nil {
		m := *g.Migrate
		c.Migrate = &m
	}
	c.Update = g.Update.copy()
	c.Reschedule = g.Reschedule.copy()
	c.NodeClasses = slices.Clone(g.NodeClasses)
	c.RestartPolicy = g.RestartPolicy.copy()
	c.Constraints = slices.Clone(g.Constraints)
	c.Meta = maps.Clone(g.Meta)
	c.Ports, c.Services = slices.Clone(g.Ports), copyServices(g.Services)
	c.Volumes = slices.Clone(g.Volumes)
	for i, v := range c.Volumes {
		c.Volumes[i].MountOptions = v.MountOptions.Copy()
	}
	c.Tasks = slices.Clone(g.Tasks)
	for i, t := range c.Tasks {
		c.Tasks[i] = t.Copy()
	}
	return &c
}

// partsOf yields what the group has itself, with an empty name, and then what its tasks have, with their names.
func partsOf[T any](g *TaskGroup, own []T, of func(*Task) []T) iter.Seq2[string, *T] {
	return func(yield func(string, *T) bool) {
		for i := range own {
			if !yield("", &own[i]) {
				return
			}
		}
		for _, t := range g.Tasks {
			if t == nil {
				continue
			}
			for i, parts := 0, of(t); i < len(parts); i++ {
				if !yield(t.Name, &parts[i]) {
					return
				}
			}
		}
	}
}
