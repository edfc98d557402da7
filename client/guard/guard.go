package guard

import (
	"math"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Guard describes when and how the tasks of an allocation stop without a client.
type Guard struct {
	Alloc cluster.AllocID
	// After is the group's StopOnClientAfter. It is positive.
	After time.Duration
	// Delay is the time between the deadline and the stop of the first phase.
	Delay time.Duration
	// StopTime is how long a client may take to stop all tasks, after the deadline.
	StopTime time.Duration
	Tasks    []Task
}

// Task is a task of a [Guard].
type Task struct {
	Name string
	// Group is the name of the task's control group. The owner of the guard sets it.
	Group string
	Phase cluster.StopPhase
	// Signal is the name of the kill signal. Empty is SIGINT, which is also the default of
	// raw_exec.
	Signal        string
	ShutdownDelay time.Duration
	KillTimeout   time.Duration
}

// Of returns the guard of an allocation. It reports false for an allocation that may run without
// servers. holdLimit is how long a group with a storage plugin waits for the volumes that it
// serves.
func Of(a *cluster.Allocation, holdLimit time.Duration) (Guard, bool) {
	group := a.Job.Group(a.TaskGroup)
	if group == nil || group.Disconnect.StopOnClientAfter <= 0 {
		return Guard{}, false
	}
	g := Guard{Alloc: a.ID, After: group.Disconnect.StopOnClientAfter, Delay: group.ShutdownDelay, StopTime: group.StopTime()}
	holds := func(t *cluster.Task) bool { return t != nil && t.CSIPlugin != nil }
	if slices.ContainsFunc(group.Tasks, holds) {
		g.Delay, g.StopTime = later(g.Delay, holdLimit), later(g.StopTime, holdLimit)
	}
	for _, t := range group.Tasks {
		if t != nil {
			g.Tasks = append(g.Tasks, Task{
				Name: t.Name, Phase: t.StopPhase(), Signal: t.KillSignal, ShutdownDelay: t.ShutdownDelay, KillTimeout: t.KillTimeout,
			})
		}
	}
	return g, len(g.Tasks) > 0
}

// Never means that no step is needed.
const Never time.Duration = math.MaxInt64

// later returns the time after a wait. A sum that overflows is [Never], because a job may contain
// waits of centuries.
func later(at, wait time.Duration) time.Duration {
	if wait > Never-at {
		return Never
	}
	return at + wait
}
