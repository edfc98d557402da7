package client

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/driver"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Record is what the core keeps on disk about one allocation. It is enough to undo everything that
// the allocation has left on the node. All durations in it are times since the boot that BootID
// names.
type Record struct {
	// Alloc is the allocation as the servers last sent it.
	Alloc *cluster.Allocation
	// ClusterID names the cluster that placed the allocation.
	ClusterID string
	BootID    string
	// Received is when the client first saw the allocation.
	Received time.Duration
	// Stopping: the servers or the client itself wanted the allocation to stop, at StopBegan and for
	// StopReason.
	Stopping   bool
	StopBegan  time.Duration
	StopReason string
	// RestartAll: an operator wants all tasks to stop, and then to start again.
	RestartAll bool
	// RestartedAll: that has happened. Tasks that have not started since look as if they never had.
	RestartedAll bool
	// Healthy is the verdict on the allocation's health, or nil while there is none.
	Healthy   *bool
	HealthyAt time.Time
	// UnmountBegan is when the client began to take the volumes off the node, or zero. VolumesLeft: the
	// allocation has ended, and they are not off.
	UnmountBegan time.Duration
	VolumesLeft  bool
	// HoldBegan is when the allocation had to stop and a storage plugin in it was needed, or zero.
	// HoldOver: it stops although the plugin is needed.
	HoldBegan time.Duration
	HoldOver  bool
	// Tasks are in the order of the group.
	Tasks []TaskRecord
	// Ended: all tasks are dead, and ClientStatus is terminal.
	Ended        bool
	EndedAt      time.Time
	ClientStatus cluster.ClientStatus
}

// TaskRecord is the part of a [Record] about one task.
type TaskRecord struct {
	Phase Phase
	// ID is the start that Phase is about, or empty if nothing is left of any start. Handle is empty
	// until the driver has answered.
	ID     driver.TaskID
	Handle driver.Handle
	// HostCgroup: all processes of the start are in the cgroup that the shell made for it.
	HostCgroup bool
	// TurnAt is when the turn of a poststop task came, or zero.
	TurnAt time.Duration
	// Stopping: the task's turn to stop came at StopBegan.
	Stopping  bool
	StopBegan time.Duration
	// Restarting: an operator wants the task to stop and to start again.
	Restarting bool
	// SignalAt is when the driver was asked to send the kill signal, or zero. The grace counts from
	// it.
	SignalAt time.Duration
	// End is how the start ended, and Exit its result, or nil if there is none.
	End  End
	Exit *driver.ExitResult
	// RunningSince is when the task last started.
	RunningSince time.Duration
	// RestartAt is the end of the wait in [PhaseBackoff].
	RestartAt time.Duration
	// Restarts counts the restarts since WindowBegan.
	Restarts    int
	WindowBegan time.Duration
	// State is what the servers are told.
	State cluster.TaskState
}

// Phase is the position of a task between its starts.
type Phase uint8

// The phases of a task.
const (
	// PhaseWaiting: the task's turn to start has not come.
	PhaseWaiting Phase = iota
	// PhaseStarting: the driver was or will be asked to start the task. It may run.
	PhaseStarting
	// PhaseRunning: the driver has started the task.
	PhaseRunning
	// PhaseCleaning: the start has ended, or is given up, and what it left must be removed.
	PhaseCleaning
	// PhaseBackoff: the next start waits for RestartAt. Nothing is left of the last one.
	PhaseBackoff
	// PhaseDead: the task will not start again, and nothing of it is left.
	PhaseDead
)

// String returns the name of the phase.
func (p Phase) String() string {
	return [...]string{"waiting", "starting", "running", "cleaning", "backoff", "dead"}[min(p, PhaseDead)]
}

// End is how a start of a task ended.
type End uint8

// The ends of a start.
const (
	// EndNone: it has not ended.
	EndNone End = iota
	// EndExit: the task ended by itself.
	EndExit
	// EndStopped: the client stopped the task.
	EndStopped
	// EndNotStarted: the driver could not start the task. A later start may succeed.
	EndNotStarted
	// EndRefused: the driver will never start the task.
	EndRefused
	// EndLost: the client could not take the task over, and destroys what is left of it.
	EndLost
)

// OrphanRecord returns the record of an allocation of which the node has only processes: its own
// record is damaged or missing. The core destroys what is left of the tasks. It reports nothing.
func OrphanRecord(alloc cluster.AllocID, tasks []string, bootID string) *Record {
	r := &Record{Alloc: &cluster.Allocation{ID: alloc}, BootID: bootID, Stopping: true, StopReason: "no record knows the allocation"}
	for _, name := range tasks {
		r.Tasks = append(r.Tasks, TaskRecord{
			Phase: PhaseCleaning, End: EndLost, Exit: &driver.ExitResult{Unknown: true},
			State: cluster.TaskState{Name: name, State: cluster.TaskPending},
		})
	}
	return r
}

// copy returns a copy that later changes of the record do not reach. Both share the exits and events of
// tasks: the core replaces them, or adds behind the last event, and never writes to them.
func (r *Record) copy() *Record {
	c := *r
	c.Tasks = slices.Clone(r.Tasks)
	for i := range c.Tasks {
		c.Tasks[i].State.Events = slices.Clip(c.Tasks[i].State.Events)
	}
	return &c
}
