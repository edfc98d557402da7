package client

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/verdict"
	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Record is the state of one allocation on disk. With it a core can undo everything that the
// allocation has left on the node. All durations in it are times since the boot that BootID names.
type Record struct {
	// Alloc is the allocation as the servers last sent it.
	Alloc *cluster.Allocation
	// Unreadable states why the client cannot read the allocation, or is empty. Such an allocation has no
	// job and no tasks, and has failed.
	Unreadable string `json:",omitempty"`
	// ClusterID names the cluster that placed the allocation.
	ClusterID string
	BootID    string
	// Received is when the client first received the allocation.
	Received time.Duration
	// Stopping: the servers or the client stop the allocation, since StopBegan and because of
	// StopReason.
	Stopping   bool
	StopBegan  time.Duration
	StopReason string
	// RunBegan is when a task of the allocation first started since the boot, or zero. Expired: the client stops the
	// allocation because it has run for as long as its group permits.
	RunBegan time.Duration `json:",omitempty"`
	Expired  bool          `json:",omitempty"`
	// RestartAll: an operator has requested that all tasks stop and then start again.
	RestartAll bool
	// RestartedAll: a restart of all tasks has stopped them at least once. The record of a task that has not
	// started again since then equals that of a task that never started.
	RestartedAll bool
	// History has the health verdict. HealthyAt is when it was given.
	verdict.History
	HealthyAt time.Time
	// UnmountBegan is when the client started to unmount the volumes, or zero. VolumesLeft: the
	// allocation has ended, and a volume is still mounted.
	UnmountBegan time.Duration
	VolumesLeft  bool
	// Volumes are the volumes that were published when a task last started. They contain what the
	// client needs to unmount the volumes if their own records are lost.
	Volumes []volume.Identity
	// HoldBegan is when the hold for volumes started, because the allocation had to stop and
	// volumes needed a storage plugin in it, or zero. HoldOver: the limit of the hold has passed,
	// so the allocation stops although volumes need the plugin.
	HoldBegan time.Duration
	HoldOver  bool
	// DataIn is the move of data into the allocation, or nil without one. DataOut is the data that the client
	// keeps after the end of the allocation, or nil.
	DataIn  *DataIn  `json:",omitempty"`
	DataOut *DataOut `json:",omitempty"`
	// Disk is what is left of the ephemeral disk of an earlier start whose record is lost. It is empty if there was none
	// whose data the group keeps.
	Disk DiskLeft `json:",omitempty"`
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
	// Unrecorded: when the client received the allocation, the allocation had to stop or a client had
	// reported it. So an earlier client may have started the task, and the record of it is lost. What
	// it may have left is removed first, in [PhaseCleaning] with an empty ID.
	Unrecorded bool `json:",omitempty"`
	// ID identifies the start to which Phase belongs. It is empty if nothing is left of any start.
	// Handle is empty until the driver has answered.
	ID     driver.TaskID
	Handle driver.Handle
	// HostCgroup: all processes of the start are in the cgroup that the shell created for the
	// start.
	HostCgroup bool
	// TurnAt is when the phase of the poststop tasks started, or zero.
	TurnAt time.Duration
	// Stopping: the task must stop since StopBegan.
	Stopping  bool
	StopBegan time.Duration
	// Restarting: an operator, or with Unhealthy a check, has requested that the task stops and starts again. The
	// restart policy counts the restart of a check.
	Restarting bool
	Unhealthy  bool `json:",omitempty"`
	// SignalAt is when the client requested the driver to send the kill signal, or zero. The kill
	// timeout counts from this time.
	SignalAt time.Duration
	// End is how the start ended, and Exit its result, or nil if there is none.
	End  End
	Exit *driver.ExitResult
	// RunningSince is when the task last started.
	RunningSince time.Duration
	// DeadSince is when the task has entered [PhaseDead], or zero.
	DeadSince time.Duration `json:",omitempty"`
	// RestartAt is the end of the wait in [PhaseBackoff].
	RestartAt time.Duration
	// Restarts counts the restarts since WindowBegan.
	Restarts    int
	WindowBegan time.Duration
	// State is the state that the client reports.
	State cluster.TaskState
}

// DiskLeft is what is left of the ephemeral disk of an allocation whose record is lost.
type DiskLeft string

// The values of [DiskLeft].
const (
	// DiskFound: the folders with the data are on the node. The allocation goes on with them.
	DiskFound DiskLeft = "found"
	// DiskLost: they are not.
	DiskLost DiskLeft = "lost"
)

// Phase is the position of a task between its starts.
type Phase uint8

// The phases of a task.
const (
	// PhaseWaiting: the task has not started, because other tasks must start or end first.
	PhaseWaiting Phase = iota
	// PhaseStarting: the client has requested or will request the driver to start the task. The task may
	// run.
	PhaseStarting
	// PhaseRunning: the driver has started the task.
	PhaseRunning
	// PhaseCleaning: the start has ended or has failed, and its remains must be removed.
	PhaseCleaning
	// PhaseBackoff: the next start waits until RestartAt. Nothing is left of the last start.
	PhaseBackoff
	// PhaseDead: the task will not start again, and nothing is left of it.
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
	// EndNone: the start has not ended.
	EndNone End = iota
	// EndExit: the task ended by itself.
	EndExit
	// EndStopped: the client stopped the task.
	EndStopped
	// EndNotStarted: the driver could not start the task. A later start may succeed.
	EndNotStarted
	// EndRefused: the driver will never start the task.
	EndRefused
	// EndLost: the client could not take the task over, and destroys it.
	EndLost
	// EndInterrupted: the process of the driver ended while it started the task.
	EndInterrupted
)

// OrphanRecord returns a record for an allocation whose record is damaged or missing, and whose
// processes or folders are still on the node. The core destroys the tasks and reports nothing about
// the allocation. The caller sets Disk to [DiskFound] if the folders with the data are on the node.
func OrphanRecord(alloc cluster.AllocID, tasks []string, bootID string) *Record {
	r := &Record{Alloc: &cluster.Allocation{ID: alloc}, BootID: bootID, Stopping: true, StopReason: "the client has no record of the allocation"}
	for _, name := range tasks {
		r.Tasks = append(r.Tasks, TaskRecord{
			Phase: PhaseCleaning, End: EndLost, Exit: &driver.ExitResult{Unknown: true},
			State: cluster.TaskState{Name: name, State: cluster.TaskPending},
		})
	}
	return r
}

// reboot removes all times of an earlier boot. A time that is not removed is far in the future for a
// machine that had run for long before.
func (r *Record) reboot(bootID string, now time.Duration) {
	r.BootID = bootID
	r.Received, r.StopBegan = now, now
	r.RunBegan, r.UnmountBegan, r.HoldBegan = 0, 0, 0
	r.Rebooted()
	if r.DataIn != nil {
		r.DataIn.EndedAt = 0
	}
	if r.DataOut != nil {
		r.DataOut.Since = now
	}
	for i := range r.Tasks {
		t := &r.Tasks[i]
		t.StopBegan, t.SignalAt, t.RestartAt, t.WindowBegan, t.RunningSince, t.TurnAt = 0, 0, 0, 0, 0, 0
		t.DeadSince = 0
	}
}

// notAfter sets the times that are later than now to now: the boot clock went back, for example because the
// client runs in another time namespace. It returns whether there was such a time.
func (r *Record) notAfter(now time.Duration) (changed bool) {
	limit := func(times ...*time.Duration) (after bool) {
		for _, at := range times {
			after = after || *at > now
			*at = min(*at, now)
		}
		return after
	}
	changed = limit(&r.Received, &r.RunBegan, &r.StopBegan, &r.UnmountBegan, &r.HoldBegan, &r.TrueAt)
	if r.DataIn != nil {
		changed = limit(&r.DataIn.EndedAt) || changed
	}
	if r.DataOut != nil {
		changed = limit(&r.DataOut.Since) || changed
	}
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if limit(&t.TurnAt, &t.StopBegan, &t.SignalAt, &t.RunningSince, &t.WindowBegan, &t.DeadSince) {
			t.RestartAt, changed = min(t.RestartAt, now), true
		}
	}
	return changed
}

// copy returns a copy that later changes of the record do not affect. Both share the exits and
// events of tasks. This is safe because the core only replaces these or appends events, and never
// changes them.
func (r *Record) copy() *Record {
	c := *r
	c.Tasks = slices.Clone(r.Tasks)
	if r.DataIn != nil {
		c.DataIn = new(*r.DataIn)
	}
	if r.DataOut != nil {
		c.DataOut = new(*r.DataOut)
	}
	for i := range c.Tasks {
		c.Tasks[i].State.Events = slices.Clip(c.Tasks[i].State.Events)
	}
	return &c
}
