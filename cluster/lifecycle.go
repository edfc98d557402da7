package cluster

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Hook is when a task of an allocation starts.
type Hook string

// The values of [Hook].
const (
	// HookPrestart starts before the main tasks.
	HookPrestart Hook = "prestart"
	// HookPoststart starts when the main tasks run.
	HookPoststart Hook = "poststart"
	// HookPoststop starts when all other tasks have ended.
	HookPoststop Hook = "poststop"
)

// Lifecycle makes a task run beside the main tasks of its allocation.
type Lifecycle struct {
	Hook Hook
	// Sidecar means that the task runs as long as the main tasks. Otherwise it is meant to end by
	// itself.
	Sidecar bool
}

// Main reports whether the task is a main task.
func (t *Task) Main() bool { return t.Lifecycle == nil }

// Sidecar reports whether the task is stopped after the main tasks.
func (t *Task) Sidecar() bool { return t.Lifecycle != nil && t.Lifecycle.Sidecar && !t.Poststop() }

// Poststop reports whether the task runs after all others.
func (t *Task) Poststop() bool { return t.Lifecycle != nil && t.Lifecycle.Hook == HookPoststop }

// StopPhase is the place of a task in the order in which its allocation stops. The tasks of a phase
// stop together, after those of the earlier phases.
type StopPhase uint8

// The values of [StopPhase], in their order.
const (
	// StopLeader: the leader, if the group has one.
	StopLeader StopPhase = iota
	// StopMain: the other tasks, except sidecars and poststop tasks.
	StopMain
	// StopSidecars: the sidecars.
	StopSidecars
	// StopPoststop: poststop tasks, which start in this phase.
	StopPoststop
)

// StopPhase returns the phase of the task.
func (t *Task) StopPhase() StopPhase {
	switch {
	case t.Poststop():
		return StopPoststop
	case t.Sidecar():
		return StopSidecars
	case t.Leader:
		return StopLeader
	}
	return StopMain
}

// PoststopLimit is how long a poststop task may run. The client then kills it, with the task's kill
// timeout.
const PoststopLimit = 5 * time.Minute

// StopTime is how long an allocation of the group may take to stop: the group's shutdown delay,
// then [StopPhase] by [StopPhase] the longest shutdown delay and kill timeout of the tasks of the
// phase. Poststop tasks start in their phase, so they have [PoststopLimit] instead of the delay.
func (g *TaskGroup) StopTime() time.Duration {
	var phases [StopPoststop + 1]time.Duration
	for _, t := range g.Tasks {
		if t == nil {
			continue
		}
		phase, delay := t.StopPhase(), t.ShutdownDelay
		if phase == StopPoststop {
			delay = PoststopLimit
		}
		phases[phase] = max(phases[phase], addDelays(delay, t.KillTimeout))
	}
	total := g.ShutdownDelay
	for _, phase := range phases {
		total = addDelays(total, phase)
	}
	return total
}

// StopTimeOn is how long the allocation may take to stop on the node: [TaskGroup.StopTime], and the
// limits of the node, which may be nil, for taking volumes off it and for a storage plugin that waits
// for the volumes of others.
func (a *Allocation) StopTimeOn(n *Node) time.Duration {
	total, g := a.StopTime(), a.Job.Group(a.TaskGroup)
	if n == nil || g == nil {
		return total
	}
	if len(g.Volumes) > 0 {
		total = addDelays(total, n.VolumeAllowance)
	}
	if a.Job.StoragePlugin() {
		total = addDelays(total, n.HoldLimit)
	}
	return total
}

// addDelays adds two delays that are not negative. A sum that overflows becomes the longest
// duration, because a negative delay would be no wait at all.
func addDelays(a, b time.Duration) time.Duration {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxInt64
}

// validateLifecycle checks how the tasks of the group work together.
func (g *TaskGroup) validateLifecycle() (errs []error) {
	mains, leaders, present := 0, 0, 0
	names := make(map[string]bool, len(g.Tasks))
	for i, t := range g.Tasks {
		if len(errs) >= maxReasons {
			return append(errs, errTooManyReasons)
		}
		if t == nil {
			continue
		}
		present++
		if names[t.Name] && g.usesDrivers() { // older jobs may have such tasks
			errs = append(errs, fmt.Errorf("Task %q is defined twice", t.Name))
		}
		names[t.Name] = true
		if t.Main() {
			mains++
		} else if err := t.Lifecycle.validate(); err != nil {
			errs = append(errs, withPlace(named("Task", t.Name, i), err))
		}
		if t.Leader {
			leaders++
			if !t.Main() {
				errs = append(errs, fmt.Errorf("Task %q: the leader must be a main task", t.Name))
			}
		}
	}
	if leaders > 1 {
		errs = append(errs, fmt.Errorf("A group has at most 1 leader task but found %d", leaders))
	}
	if present > 0 && mains == 0 {
		errs = append(errs, errors.New("A group needs at least 1 task without a lifecycle block"))
	}
	return errs
}

func (l *Lifecycle) validate() error {
	switch l.Hook {
	case HookPrestart, HookPoststart:
		return nil
	case HookPoststop:
		if l.Sidecar {
			return errors.New("A poststop task cannot be a sidecar")
		}
		return nil
	case "":
		return errors.New("Missing lifecycle hook")
	}
	return fmt.Errorf("Invalid lifecycle hook: %q", l.Hook)
}

// RestartMode is what happens to a task that has used up its restarts.
type RestartMode string

// The values of [RestartMode].
const (
	// RestartFail ends the task, and fails its allocation.
	RestartFail RestartMode = "fail"
	// RestartDelay waits until the interval is over, and restarts the task.
	RestartDelay RestartMode = "delay"
)

// RestartPolicy is how often the client restarts a failed task: Attempts times in each Interval,
// each after Delay.
type RestartPolicy struct {
	Attempts int
	Interval time.Duration
	Delay    time.Duration
	Mode     RestartMode
}

// MinRestartInterval is the shortest [RestartPolicy].Interval.
const MinRestartInterval = 5 * time.Second

// DefaultRestartPolicy is the policy of groups that have none.
func DefaultRestartPolicy(t JobType) RestartPolicy {
	if t.ToCompletion() {
		return RestartPolicy{Attempts: 3, Interval: 24 * time.Hour, Delay: 15 * time.Second, Mode: RestartFail}
	}
	return RestartPolicy{Attempts: 2, Interval: 30 * time.Minute, Delay: 15 * time.Second, Mode: RestartFail}
}

// RestartPolicyOf returns the policy of a task of the group: its own, else the group's, else the
// default of the job's type.
func (g *TaskGroup) RestartPolicyOf(t *Task, job JobType) RestartPolicy {
	switch {
	case t != nil && t.RestartPolicy != nil:
		return *t.RestartPolicy
	case g.RestartPolicy != nil:
		return *g.RestartPolicy
	}
	return DefaultRestartPolicy(job)
}

func (p *RestartPolicy) copy() *RestartPolicy {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

func (p *RestartPolicy) validate() error {
	if p == nil {
		return nil
	}
	var errs []error
	if p.Attempts < 0 || p.Delay < 0 {
		errs = append(errs, errors.New("RestartPolicy: Attempts and Delay must be >= 0"))
	}
	if p.Interval < MinRestartInterval {
		errs = append(errs, fmt.Errorf("RestartPolicy: Interval is %s and must be >= %s", p.Interval, MinRestartInterval))
	}
	switch p.Mode {
	case RestartFail:
	case RestartDelay:
		if p.Attempts == 0 {
			errs = append(errs, errors.New("RestartPolicy: mode delay needs at least 1 attempt"))
		}
	default:
		errs = append(errs, fmt.Errorf("RestartPolicy: invalid mode %q", p.Mode))
	}
	if len(errs) == 0 && p.Attempts > 0 && p.Delay > p.Interval/time.Duration(p.Attempts) {
		errs = append(errs, fmt.Errorf("RestartPolicy: %d attempts with a delay of %s do not fit into an interval of %s", p.Attempts, p.Delay, p.Interval))
	}
	return errors.Join(errs...)
}
