package client

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/verdict"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

type allocRunner struct {
	core  *Core
	rec   *Record
	saves saves
	job   cluster.JobType
	group *cluster.TaskGroup
	tasks []*taskRunner
	order order

	// built: the folders of the allocation exist. building: a Build call is in flight.
	// buildFull: the disk had no room for them.
	built, building, buildFull bool
	buildAt                    time.Duration
	buildFailures              int

	// pending is set for an orphan only: the allocation that must run when the remains of the
	// orphan are removed, or nil.
	pending *cluster.Allocation
	// pendingUnreadable states why the client cannot read pending, or is empty.
	pendingUnreadable string
	// decided is set for an orphan only: an answer has shown whether the servers list the allocation.
	decided bool

	// listed: an answer of the servers lists the allocation, and no later one shows that they do not.
	listed bool

	report         reportState
	discarding     bool
	discardAt      time.Duration
	discardFailing int
	restarts       restarts
	checks         allocChecks
	mounts         mounts
	in             dataIn
	out            dataOut
	visits         visits
}

func newAllocRunner(c *Core, rec *Record) *allocRunner {
	a := &allocRunner{core: c, rec: rec, job: rec.Alloc.JobType(), group: rec.Alloc.Job.Group(rec.Alloc.TaskGroup)}
	if a.group == nil {
		a.group = &cluster.TaskGroup{}
	}
	if len(rec.Tasks) == 0 {
		for _, task := range a.group.Tasks {
			if task != nil {
				rec.Tasks = append(rec.Tasks, TaskRecord{State: cluster.TaskState{Name: task.Name, State: cluster.TaskPending}})
			}
		}
	}
	for i := range rec.Tasks {
		a.tasks = append(a.tasks, newTaskRunner(a, &rec.Tasks[i]))
	}
	a.saves.alloc, a.order.alloc, a.restarts.alloc, a.mounts.alloc, a.report.alloc, a.visits = a, a, a, a, a, visits{alloc: a}
	a.in.alloc, a.out.alloc, a.checks.alloc = a, a, a
	return a
}

func (a *allocRunner) id() cluster.AllocID { return a.rec.Alloc.ID }

// touch marks the record as changed. The core then saves and reports it.
func (a *allocRunner) touch() {
	a.saves.note()
	a.report.note()
}

// received initializes an allocation that the servers have placed.
func (a *allocRunner) received() {
	started := a.rec.Alloc.ClientStatus != cluster.ClientPending
	a.rec.Disk = diskLeft(a.rec.Alloc, a.group, a.rec.Disk)
	message := "The client has received the task"
	if started && !a.rec.Alloc.ServerTerminal() {
		disk := "an empty disk"
		switch a.rec.Disk {
		case DiskFound:
			disk = "what is left of its disk"
		case DiskLost:
			disk = "an empty disk: its data is lost"
		}
		message = "The client has no record of the earlier start of the task, which starts again with " + disk
		a.core.options.Logger.Warn("the client has no record of an allocation that has started before, and starts it again", "alloc", a.id(), "disk", disk, "status", a.rec.Alloc.ClientStatus)
	}
	if started && a.rec.Alloc.JudgedHealthy() && !a.rec.Alloc.ServerTerminal() { // the verdict was for the earlier start
		a.rec.History, a.rec.HealthyAt = verdict.History{Healthy: new(false), Falses: 1}, a.core.now.Wall
	}
	for _, t := range a.tasks {
		t.rec.Unrecorded = started || a.rec.Alloc.ServerTerminal()
		t.event("Received", message)
	}
	a.in.begin()
	a.touch()
	if a.rec.Alloc.ServerTerminal() {
		a.stop("the servers stopped the allocation before it started")
	}
}

// restore continues an allocation from its record.
func (a *allocRunner) restore() {
	a.saves.version, a.saves.saved, a.saves.tried = 1, 1, 1
	rebooted := a.rec.BootID != a.core.options.BootID
	if rebooted {
		a.rec.reboot(a.core.options.BootID, a.core.now.Boot)
		a.touch()
	} else if a.rec.notAfter(a.core.now.Boot) {
		a.touch()
	}
	if !a.rec.Ended {
		for _, t := range a.tasks {
			t.restore(rebooted)
		}
	}
	a.report.restored = true
	a.report.noteUrgent() // the earlier core may not have reported it
	a.report.verdict = a.report.version
}

// update handles a newer version of the allocation.
func (a *allocRunner) update(alloc *cluster.Allocation) {
	a.list(cluster.IsListed(alloc))
	if a.orphan() {
		a.core.adoptVolumes(alloc)
		a.pending, a.pendingUnreadable, a.decided = alloc, "", true
		return
	}
	a.report.endOnly = false
	a.out.update(alloc)
	if a.report.restored {
		a.report.restored = false
		if inRow(alloc, a.newReport()) {
			a.report.taken, a.report.endTaken = a.report.version, a.rec.Ended
			a.visits.mark()
		}
	}
	if alloc.ClientStatus != a.rec.ClientStatus {
		a.report.endTaken = false // or the record could be removed before the servers have the end
	}
	if alloc.ClientStatus != a.rec.ClientStatus || a.rec.Healthy != nil && !agrees(alloc, *a.rec.Healthy) {
		a.report.noteUrgent() // the servers have lost the report, or marked the node as down
	}
	// The index can also be lower than before, after the servers restored an older state.
	if alloc.AllocModifyIndex != a.rec.Alloc.AllocModifyIndex {
		// The devices, the ports and the cores of an allocation never change on the client: the ledger uses those with
		// which this allocation started. Its job changes only to a version with the same tasks, whose services
		// may differ. Any other version has a separate allocation.
		alloc.Devices, alloc.Ports, alloc.Cores = a.rec.Alloc.Devices, a.rec.Alloc.Ports, a.rec.Alloc.Cores
		if cluster.RunsLike(a.rec.Alloc.Job, alloc.Job, alloc.TaskGroup) {
			a.group = alloc.Job.Group(alloc.TaskGroup)
			a.checks.update()
		} else {
			alloc.Job = a.rec.Alloc.Job
		}
		a.rec.Alloc = alloc
		a.saves.note()
	}
	if alloc.ServerTerminal() {
		a.stop(alloc.DesiredDescription)
	}
}

// stopUnknown stops an allocation that the servers do not have, or have marked as lost. It keeps an
// ended allocation: the servers do not list allocations whose end they have.
func (a *allocRunner) stopUnknown() {
	a.pending, a.report.endOnly, a.decided = nil, true, true
	a.out.forget()
	if !a.rec.Ended {
		a.stop("the servers do not have the allocation")
	}
}

// orphan reports whether the record comes from [OrphanRecord]: the client has found remains of the
// allocation on the node, without a record of the allocation.
func (a *allocRunner) orphan() bool { return a.rec.Alloc.Job == nil && a.rec.Alloc.NodeID == "" }

// stop marks the allocation as stopping. The steps of its tasks then stop them.
func (a *allocRunner) stop(reason string) {
	if a.rec.Stopping || a.rec.Ended {
		return
	}
	a.rec.Stopping, a.rec.StopBegan, a.rec.StopReason = true, a.core.now.Boot, reason
	a.touch()
}

// stopsAfter is how long the allocation may run without servers, or zero for ever.
func stopsAfter(a *allocRunner) time.Duration { return a.group.Disconnect.StopOnClientAfter }

// cutOff reports whether the client has not reached the servers for so long that the allocation
// must stop.
func cutOff(a *allocRunner) bool {
	after := stopsAfter(a)
	return after > 0 && a.core.reached(a.core.contact.StopAt(after))
}

// stopCutOff stops an allocation that has run without servers for as long as it may.
func (a *allocRunner) stopCutOff() {
	if a.rec.Stopping || a.rec.Ended {
		return
	}
	reason := a.core.contact.Reason(stopsAfter(a))
	for _, t := range a.tasks {
		if t.rec.Phase != PhaseDead && !t.task.Poststop() {
			t.event("Disconnected", "The client stops the task: "+reason)
		}
	}
	a.stop(reason)
}

// expire stops an allocation that has run for as long as its group permits. One that ends already is not stopped.
func expire(a *allocRunner) {
	limit := a.group.MaxRunDuration
	if limit <= 0 || a.rec.RunBegan == 0 || a.order.ends() || !a.core.reached(later(a.rec.RunBegan, limit)) {
		return
	}
	reason := "the allocation has run for its max_run_duration of " + limit.String()
	for _, t := range a.tasks {
		if t.rec.Phase != PhaseDead && !t.task.Poststop() {
			t.event("Expired", "The client stops the task: "+reason)
		}
	}
	a.rec.Expired = true
	a.stop(reason)
}

func (a *allocRunner) step() {
	defer a.restarts.sendReplies()
	if a.rec.Ended {
		a.mounts.left()
		a.mounts.note()
		a.out.step()
		if !a.discarding {
			a.saves.step()
		}
		return
	}
	if !a.rec.Stopping && cutOff(a) {
		a.stopCutOff()
	}
	expire(a)
	a.build()
	a.in.step()
	for _, t := range a.tasks {
		t.step()
	}
	a.checks.step()
	a.restarts.step()
	a.judgeHealth()
	a.updateStatus()
	a.mounts.note()
	a.saves.step()
}

// build creates the folders of an allocation that will start a task.
func (a *allocRunner) build() {
	if a.built || a.building || a.saves.saved == 0 || a.order.ending() && !a.order.anyStarted() || !a.core.reached(a.buildAt) {
		return
	}
	a.building = true
	a.core.options.Shell.Build(a.rec.Alloc, allocReply(a, func(err error) {
		a.building, a.built, a.buildFull = false, err == nil, noRoom(err)
		if err != nil {
			a.buildFailures++
			a.buildAt = a.core.now.Boot + backoff(a.buildFailures, a.core.options.MinRetry, a.core.options.MaxRetry)
			a.core.options.Logger.Error("the folders of an allocation could not be created; the client retries", "alloc", a.id(), "error", err)
			if a.buildFailures == 1 {
				for _, t := range a.tasks {
					t.event("Setup Failure", "The client could not create the folders of the allocation, and retries: "+err.Error())
				}
				a.touch()
			}
		}
	}))
}

// updateStatus derives the status that the client reports.
func (a *allocRunner) updateStatus() {
	status := a.rec.ClientStatus
	switch {
	case a.order.allDead() && (!a.mounts.gone() || a.in.busy()):
	case a.order.allDead():
		status = cluster.ClientComplete
		if a.order.failed() || a.rec.Expired {
			status = cluster.ClientFailed
		}
		if len(a.tasks) == 0 && !a.rec.Stopping {
			status = cluster.ClientFailed // the job does not contain the group
		}
		a.rec.Ended, a.rec.EndedAt = true, a.core.now.Wall
		a.out.keep()
		a.touch()
		a.core.visiting.ended()
		if !a.listed {
			a.core.publisher.note()
		}
	case status == cluster.ClientPending && a.order.mainsStarted():
		status = cluster.ClientRunning
	}
	if status != a.rec.ClientStatus {
		a.rec.ClientStatus = status
		a.touch()
		a.report.noteUrgent()
	}
}

// description is a text for operators that explains the status.
func (a *allocRunner) description() string {
	switch {
	case a.rec.ClientStatus == cluster.ClientFailed && a.rec.Unreadable != "":
		return "the client cannot read the allocation: " + a.rec.Unreadable
	case a.rec.ClientStatus == cluster.ClientFailed && len(a.tasks) == 0:
		return "the job of the allocation does not contain its task group"
	case a.rec.ClientStatus == cluster.ClientFailed && a.rec.Expired:
		return a.rec.StopReason + a.order.poststopFailure()
	case a.rec.ClientStatus == cluster.ClientFailed:
		return "failed tasks" + a.order.poststopFailure()
	case a.rec.VolumesLeft:
		return "all tasks have ended" + a.order.poststopFailure() + "; volumes are left on the node, and the client retries to unmount them"
	case a.rec.Ended:
		return "all tasks have ended" + a.order.poststopFailure()
	case a.order.allDead():
		return "all tasks have ended" + a.order.poststopFailure() + ", and volumes must be unmounted"
	case a.mounts.held():
		return fmt.Sprintf("stopping (%s): %s", a.mounts.waitText(), a.rec.StopReason)
	case a.rec.Stopping:
		return "stopping: " + a.rec.StopReason
	case a.rec.ClientStatus == cluster.ClientRunning:
		return "tasks are running"
	case diskTrouble(a) != "":
		return "waiting for the disk: " + diskTrouble(a)
	case a.in.pending():
		return a.in.text()
	case a.order.predecessor() != nil:
		return "waiting for the end of the allocation that this one replaces"
	case a.waitsFor(cluster.WaitDevice):
		return "waiting for devices"
	case a.waitsFor(cluster.WaitPort):
		return "waiting for ports"
	case a.waitsFor(cluster.WaitCore):
		return "waiting for cores"
	}
	return "no tasks have started"
}

// over reports whether the allocation has ended, the servers have its end, and nothing needs its data. The data of an
// orphan stays until the servers have shown whether the allocation needs it.
func (a *allocRunner) over() bool {
	known := a.report.endTaken
	if a.orphan() {
		known = a.decided || a.rec.Disk != DiskFound
	}
	return a.rec.Ended && !a.rec.VolumesLeft && known && a.out.settled()
}

// discard removes the record and the folders. An orphan leaves its folders to its allocation if that keeps its data.
func (a *allocRunner) discard() {
	if a.discarding || a.saves.busy() || !a.core.reached(a.discardAt) {
		return
	}
	a.discarding = true
	if keepsDisk(a) {
		allocReply(a, func(disk DiskLeft) {
			if a.discarding = false; keepsDisk(a) { // the servers may have changed the allocation
				a.removed(disk)
			}
		})(DiskFound)
		return
	}
	a.core.options.Shell.Discard(a.id(), allocReply(a, func(err error) {
		a.discarding = false
		if err != nil {
			a.discardFailing++
			a.discardAt = a.core.now.Boot + backoff(a.discardFailing, a.core.options.MinRetry, a.core.options.MaxRetry)
			a.core.options.Logger.Error("the folders of an ended allocation could not be removed; the client retries", "alloc", a.id(), "error", err)
			return
		}
		a.removed("")
	}))
}

// removed handles that the record is removed. The allocation of an orphan begins.
func (a *allocRunner) removed(disk DiskLeft) {
	a.core.remove(a)
	a.core.visiting.ended()
	roomFreed(a.core)
	switch {
	case a.pending == nil:
	case a.pendingUnreadable != "":
		receiveUnreadable(a.core, Unreadable{Alloc: a.pending, Reason: a.pendingUnreadable})
	default:
		a.core.receiveAlloc(a.pending, disk)
	}
}
