package statestore

import (
	"cmp"
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
// If the allocation is complete or failed and the report has the same status, only the volumes and the
// move of the data are applied, because the client continues to unmount volumes and may give the data up. The claims stay: only
// [cluster.CauseNode] ends them then.
//
// at is the proposer's time of the entry, or zero if it has none. From [cluster.VersionOfConfirmation]
// on it is the time since which a healthy allocation is unhealthy, and from [cluster.VersionOfRescheduling] on
// the time at which an allocation that the servers let run has ended: no clock of a client decides. From
// [cluster.VersionOfLearnedTimes] on it is also the time by which the state learns how long allocations take, see
// [LearnedTimes], and the ModifyTime of an allocation that its client has ended.
func (t *Txn) UpdateAllocsFromClient(reports []cluster.AllocReport, at time.Time) {
	t.rows.written.journals.at = at
	edits := editAllocs(&t.rows)
	if versionIn(t.rows.tables) < cluster.VersionOfConfirmation {
		at = time.Time{}
	}
	cuts, dates := versionIn(t.rows.tables) >= cluster.VersionOfDrivers, versionIn(t.rows.tables) >= cluster.VersionOfRescheduling
	learns := versionIn(t.rows.tables) >= cluster.VersionOfLearnedTimes
	var ended []confirmation
	for _, r := range reports {
		a := edits.row(r.Alloc)
		if a == nil || a.NodeID != r.Node {
			continue
		}
		if !mayReport(a, r.ClientStatus) {
			edits.applyLate(a, r, at)
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
		in, out := dataIn(a, r, at), edits.dataOut(a, r, at)
		if a.ClientStatus == r.ClientStatus && a.ClientDescription == r.ClientDescription && !verdict && states.Equal(a.TaskStates) &&
			holds.Equal(a.VolumeHolds) && in.Equal(a.DataIn) && out.Equal(a.DataOut) {
			continue
		}
		ends := r.ClientStatus == cluster.ClientComplete || r.ClientStatus == cluster.ClientFailed
		if ends {
			// Not a: an earlier report of the entry may have begun the edit that this one continues.
			ended = append(ended, confirmation{t.rows.state().Alloc(r.Alloc), r.At})
		}
		took := startTook(&t.rows, a, r)
		modified := r.At
		if ends && learns && !at.IsZero() {
			modified = at // a replacement's start may count from it
		}
		c := edits.edit(a, modified.UTC())
		if dates && ends && !a.Terminal() {
			c.EndedAt = at.UTC()
		}
		c.AwaySince, c.StartTook = time.Time{}, took
		c.ClientStatus, c.ClientDescription, c.TaskStates, c.VolumeHolds = r.ClientStatus, r.ClientDescription, states, holds
		c.DataIn, c.DataOut = in, out
		if out.StateOf().Ended() && !a.DataOut.StateOf().Ended() {
			c.AllocModifyIndex = t.rows.written.index // its client deletes the data when it has this
		}
		edits.endMove(c, at)
		if verdict {
			judge(c, r, at, t.rows.written.index)
		}
	}
	edits.write()
	if ended != nil {
		confirmations{rows: &t.rows}.lower(ended)
	}
}

// MigrateAlloc marks an allocation to leave its node, without a drain. The scheduler stops it and
// places its replacement. An allocation that is leaving or has ended does not change. The error is
// [ErrAllocNotFound].
func (t *Txn) MigrateAlloc(id cluster.AllocID, at time.Time) error {
	t.rows.written.journals.at = at
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

// startTook returns how long the allocation took to run, after a report. An allocation that was unknown may have
// run for long, so its time is unknown. A time of zero counts as a nanosecond.
func startTook(t *rowWrites, a *cluster.Allocation, r cluster.AllocReport) time.Duration {
	at := t.written.journals.at
	if a.StartTook != 0 || a.ClientStatus != cluster.ClientPending || r.ClientStatus != cluster.ClientRunning ||
		at.IsZero() || versionIn(t.tables) < cluster.VersionOfLearnedTimes {
		return a.StartTook
	}
	return cmp.Or(at.Sub(a.CreateTime), 1)
}

// applyLate applies the volumes and the move of the data of a report to an allocation that its client
// has ended. All other fields, including its time, stay.
func (e *allocEdits) applyLate(a *cluster.Allocation, r cluster.AllocReport, at time.Time) {
	if !endedByClient(a) || a.ClientStatus != r.ClientStatus {
		return
	}
	if holds := r.VolumeHolds.Bounded(); r.VolumeHolds != nil && !holds.Equal(a.VolumeHolds) {
		e.edit(a, a.ModifyTime).VolumeHolds = holds
		a = e.row(a.ID)
	}
	if out := e.dataOut(a, r, at); !out.Equal(a.DataOut) {
		c := e.edit(a, a.ModifyTime)
		c.DataOut = out
		if out.State.Ended() {
			c.AllocModifyIndex = e.rows.written.index // its client deletes the data when it has this
		}
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

// dataIn returns the move into an allocation after a report. A move that has ended stays as it is.
func dataIn(a *cluster.Allocation, r cluster.AllocReport, at time.Time) *cluster.DataMove {
	if r.DataIn == nil || a.DataIn != nil && a.DataIn.State.Ended() {
		return a.DataIn
	}
	return received(r.DataIn, at)
}

// dataOut returns the move out of an allocation after a report of its own client. The client may keep the
// data when it ends the allocation, and give the data up later, unless a replacement waits for it. The data of a lost
// allocation is given up: its replacement does not wait for it.
func (e *allocEdits) dataOut(a *cluster.Allocation, r cluster.AllocReport, at time.Time) *cluster.DataMove {
	switch {
	case r.DataOut == nil:
		return a.DataOut
	case a.DataOut == nil && (a.ClientStatus == cluster.ClientLost || a.DesiredDescription == cluster.DescLost):
		return received(&cluster.DataMove{State: cluster.DataGivenUp, Why: "the allocation was lost"}, at)
	case a.DataOut == nil && r.DataOut.State == cluster.DataKept:
		return received(r.DataOut, at)
	case !a.DataOut.Kept() || r.DataOut.State != cluster.DataGivenUp:
		return a.DataOut
	}
	if taker, _ := cluster.DataTaker(a, e.row); taker != nil {
		return a.DataOut
	}
	return received(r.DataOut, at)
}

// received returns a reported move as the state stores it: with a text of bounded length and the time of
// the entry.
func received(m *cluster.DataMove, at time.Time) *cluster.DataMove {
	c := *m
	c.Why, c.EndedAt = cluster.CutText(c.Why), time.Time{}
	if c.StartedAt = c.StartedAt.UTC(); m.StartedAt.IsZero() {
		c.StartedAt = time.Time{}
	}
	if c.State.Ended() {
		c.EndedAt = at.UTC()
	}
	return &c
}

// endMove writes the end of the move into an allocation to the row of the allocation whose data it is,
// so that its client deletes the data. It ignores an end that names another allocation than one that the
// allocation replaces.
func (e *allocEdits) endMove(to *cluster.Allocation, at time.Time) {
	in := to.DataIn
	if in == nil || !in.State.Ended() || in.Peer == "" {
		return
	}
	from := e.predecessor(to, in.Peer)
	if from == nil || !from.DataOut.Kept() {
		return
	}
	c := e.edit(from, from.ModifyTime)
	c.DataOut = &cluster.DataMove{State: in.State, Peer: to.ID, Why: in.Why, Bytes: in.Bytes, Skipped: in.Skipped, StartedAt: in.StartedAt, EndedAt: at.UTC()}
	c.AllocModifyIndex = e.rows.written.index
}

// predecessor returns the allocation with the id if the other one replaces it, or replaces one that never
// got its data. Otherwise it returns nil.
func (e *allocEdits) predecessor(a *cluster.Allocation, id cluster.AllocID) *cluster.Allocation {
	for range cluster.MaxFailedCopies {
		a = e.row(a.PreviousAllocation)
		switch {
		case a == nil:
			return nil
		case a.ID == id:
			return a
		case a.DataIn != nil && a.DataIn.State.Ended():
			return nil
		}
	}
	return nil
}
