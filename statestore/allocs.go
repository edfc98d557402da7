package statestore

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// UpdateAllocsFromClient applies the reports of clients about their allocations. A client owns the
// status, its description, the states of tasks, the volumes that it holds, the health verdict and
// ModifyTime. All other fields stay. The transaction does not write to the nodes table.
//
// From cluster version 4 on the description is cut to [cluster.MaxTaskEventBytes].
//
// A report is ignored, without an effect on the other reports, if
//   - its allocation does not exist or belongs to another node,
//   - its status is lost or unknown, which only servers may set,
//   - it contains nothing new,
//   - its allocation is complete or failed, or is lost and the report does not have
//     the status complete or failed.
//
// If the allocation is complete or failed and the report has the same status, only the volumes of
// the report are applied, because the client continues to unmount them. The claims stay: only
// [cluster.CauseNode] ends them then.
//
// at is the proposer's time of the entry, or zero if it has none. From [cluster.VersionOfConfirmation]
// on it is the time since which a healthy allocation is unhealthy: no clock of a client decides.
func (t *Txn) UpdateAllocsFromClient(reports []cluster.AllocReport, at time.Time) {
	edits := editAllocs(&t.rows)
	if versionIn(t.rows.tables) < cluster.VersionOfConfirmation {
		at = time.Time{}
	}
	cuts := versionIn(t.rows.tables) >= cluster.VersionOfDrivers
	var ended []confirmation
	for _, r := range reports {
		a := edits.row(r.Alloc)
		if a == nil || a.NodeID != r.Node {
			continue
		}
		if !mayReport(a, r.ClientStatus) {
			edits.applyHolds(a, r)
			continue
		}
		verdict := newVerdict(a, r)
		if cuts {
			r.ClientDescription = cluster.CutText(r.ClientDescription)
		}
		states := a.TaskStates
		if r.TaskStates != nil {
			states = r.TaskStates.Bounded(a.Job.Group(a.TaskGroup))
		}
		holds := a.VolumeHolds
		if r.VolumeHolds != nil {
			holds = r.VolumeHolds.Bounded()
		}
		if a.ClientStatus == r.ClientStatus && a.ClientDescription == r.ClientDescription && !verdict && states.Equal(a.TaskStates) &&
			holds.Equal(a.VolumeHolds) {
			continue
		}
		if r.ClientStatus == cluster.ClientComplete || r.ClientStatus == cluster.ClientFailed {
			// Not a: an earlier report of the entry may have begun the edit that this one continues.
			ended = append(ended, confirmation{t.rows.state().Alloc(r.Alloc), r.At})
		}
		c := edits.edit(a, r.At.UTC())
		c.AwaySince = time.Time{}
		c.ClientStatus, c.ClientDescription, c.TaskStates, c.VolumeHolds = r.ClientStatus, r.ClientDescription, states, holds
		if verdict {
			judge(c, r, at, t.rows.written.index)
		}
	}
	edits.write()
	if ended != nil {
		confirmations{&t.rows}.lower(ended)
	}
}

// MigrateAlloc marks an allocation to leave its node, without a drain. The scheduler stops it and
// places its replacement. An allocation that is leaving or has ended does not change. The error is
// [ErrAllocNotFound].
func (t *Txn) MigrateAlloc(id cluster.AllocID, at time.Time) error {
	at = at.UTC()
	allocs := editAllocs(&t.rows)
	a := allocs.row(id)
	switch {
	case a == nil:
		return ErrAllocNotFound
	case a.Leaving() || a.ClientTerminal():
		return nil
	}
	edited := allocs.edit(a, at)
	edited.DesiredTransition.Migrate = true
	edited.AllocModifyIndex = t.rows.written.index
	allocs.write()
	return nil
}

// DeleteAllocs deletes ended allocations. It ignores those that do not exist or are not
// client-terminal. The caller has checked that nothing needs them. So the deletion changes no
// account except the marks, and concerns no feed. The exception is a canary that GroupAllocs still
// yields, whose group does not exist any more or whose job is stopped.
func (t *Txn) DeleteAllocs(ids []cluster.AllocID) {
	for _, a := range rowsOf(ids, t.State().Alloc) {
		switch {
		case settled(a):
			t.rows.accountMark(a, nil)
			t.rows.noteRemoval(a)
			put(&t.rows, TableAllocs, a, nil)
		case a.ClientTerminal():
			t.rows.putAlloc(a, nil)
		}
	}
}

// mayReport reports whether a client may give the allocation the status.
func mayReport(a *cluster.Allocation, s cluster.ClientStatus) bool {
	switch s {
	case cluster.ClientComplete, cluster.ClientFailed:
		return !a.ClientTerminal() || a.ClientStatus == cluster.ClientLost
	case cluster.ClientPending, cluster.ClientRunning:
		return !a.ClientTerminal()
	}
	return false
}

// applyHolds applies the volumes of a report to an allocation that its client has ended. All other
// fields, including its time, stay.
func (e *allocEdits) applyHolds(a *cluster.Allocation, r cluster.AllocReport) {
	if !endedByClient(a) || a.ClientStatus != r.ClientStatus || r.VolumeHolds == nil {
		return
	}
	if holds := r.VolumeHolds.Bounded(); !holds.Equal(a.VolumeHolds) {
		e.edit(a, a.ModifyTime).VolumeHolds = holds
	}
}

// endedByClient reports whether the client has ended the allocation, which may be nil.
func endedByClient(a *cluster.Allocation) bool {
	return a != nil && (a.ClientStatus == cluster.ClientComplete || a.ClientStatus == cluster.ClientFailed)
}

// newVerdict reports whether the report changes the health verdict.
func newVerdict(a *cluster.Allocation, r cluster.AllocReport) bool {
	return r.Healthy != nil && (!a.HasVerdict() || a.JudgedHealthy() != *r.Healthy)
}

// judge writes the health verdict of a report.
func judge(a *cluster.Allocation, r cluster.AllocReport, at time.Time, index uint64) {
	if a.DeploymentStatus == nil {
		a.DeploymentStatus = &cluster.DeploymentStatus{}
	}
	a.DeploymentStatus.Judge(*r.Healthy, at)
	a.DeploymentStatus.Timestamp = r.HealthyAt.UTC()
	a.DeploymentStatus.ModifyIndex = index
}
