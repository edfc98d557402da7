package statestore

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/learned"
)

// health counts the healthy allocations of one group. The transaction that changes these
// allocations or their nodes writes it. A group without healthy allocations has no row.
type health struct {
	Group   cluster.GroupKey
	Healthy int
}

// healthOf returns the group's count with the changes of the transaction, or nil.
func healthOf(t *tables, g cluster.GroupKey) *health {
	if t.written != nil {
		if edit := t.written.healthy[g]; edit != nil {
			return edit.after
		}
	}
	return healthRow(t, g)
}

// healthRow returns the row of the group's count, or nil.
func healthRow(t *tables, g cluster.GroupKey) *health {
	return first[health](t, tableLedger, indexID, healthKey(g))
}

// accountAlloc updates the healthy count and the changing allocations of the group. It
// reads a node only if the allocation's health there may have changed.
func (t *rowWrites) accountAlloc(before, after *cluster.Allocation) {
	was, is := before.HealthyIfReachable(), after.HealthyIfReachable()
	if was && is && before.NodeID == after.NodeID && before.GroupKey() == after.GroupKey() {
		was, is = false, false
	}
	if was && t.state().Node(before.NodeID).Reachable() {
		t.addHealthy(before.GroupKey(), -1)
	}
	if is && t.state().Node(after.NodeID).Reachable() {
		t.addHealthy(after.GroupKey(), +1)
	}
	was, is = t.changing(before), t.changing(after)
	if was && is && before.EqualForDecisions(after) {
		return
	}
	if was && (!is || before.GroupKey() != after.GroupKey() || before.Progress() != after.Progress()) {
		t.delete(tableChanging, before)
	}
	if is {
		t.insert(tableChanging, after.Bare())
	}
}

// accountNode updates the accounts of the groups with allocations on the node, if the node was
// deleted or registered, its reachability changed, or its drain started or ended. In all cases
// except the last it also notes the groups, so that feeds need not read them.
func (t *rowWrites) accountNode(before, after *cluster.Node) {
	reached := 0
	if after.Reachable() {
		reached++
	}
	if before.Reachable() {
		reached--
	}
	regrouped := before == nil || after == nil || reached != 0
	toggled := before.Draining() != after.Draining()
	if !regrouped && !toggled {
		return
	}
	n := after
	if n == nil {
		n = before
	}
	for _, a := range slices.Collect(t.state().WorkView().LiveAllocsByNode(n.ID)) {
		if regrouped {
			t.written.changes.around.add(a.GroupKey())
		}
		if reached != 0 && a.HealthyIfReachable() {
			t.addHealthy(a.GroupKey(), reached)
		}
		switch {
		case !toggled || !a.Stable():
		case after.Draining():
			t.insert(tableChanging, a.Bare())
		default:
			t.delete(tableChanging, a)
		}
	}
}

// changing reports whether ChangingAllocs yields the allocation, which may be nil.
func (t *rowWrites) changing(a *cluster.Allocation) bool {
	return a != nil && !settled(a) && (!a.Stable() || t.written.changes.drains(a.NodeID))
}

// addHealthy changes the group's count.
func (t *rowWrites) addHealthy(g cluster.GroupKey, n int) {
	t.written.healthy.edit(g, func() *health { return healthRow(t.tables, g) }, health{Group: g}).Healthy += n
}

// flushHealth writes the counts that have changed.
func (t *rowWrites) flushHealth() {
	flushAccounts(t, t.written.healthy, cluster.GroupKey.Compare, func(h *health) bool { return h.Healthy > 0 })
}

// groupTimes are how long the allocations of one group took. Each group that has a row exists in the current version of
// its job, so the number of rows is bounded.
type groupTimes struct {
	Group cluster.GroupKey
	Times learned.Times
}

// LearnedTimes returns how long the allocations of the group took, or nil if none was counted since
// [cluster.VersionOfLearnedTimes], or since the current version of the job has the group.
func LearnedTimes(s State, g cluster.GroupKey) *learned.Times {
	if row := timesRow(s.tables, g); row != nil {
		return &row.Times
	}
	return nil
}

// timesRow returns the row of the group's times, or nil.
func timesRow(t *tables, g cluster.GroupKey) *groupTimes {
	return first[groupTimes](t, tableTimes, indexID, groupKey(g))
}

// learner counts how long allocations take, in the transaction of the report that ends the time. It reads only the
// times of proposers. The clocks of clients are not compared with them.
type learner struct{ rows *rowWrites }

// alloc counts the times that end with a write to an allocation. Only the first report that it runs, its first verdict and
// the end of one that runs count. So the later reports of a client that has lost its record do not, nor what a
// client reports of an allocation that was lost or unknown. A bad verdict does not count: its time is
// the healthy deadline of the group.
func (w learner) alloc(before, after *cluster.Allocation) {
	at := w.rows.written.journals.at
	if before == nil || after == nil || at.IsZero() {
		return
	}
	ordered := orderedAt(after)
	began := before.StartTook == 0 && after.StartTook != 0
	judged := !before.HasVerdict() && after.JudgedHealthy() && after.StartTook != 0 && before.ClientStatus != cluster.ClientUnknown
	ended := before.ClientStatus == cluster.ClientRunning && endedByClient(after) && !ordered.IsZero()
	if !began && !judged && !ended || versionIn(w.rows.tables) < cluster.VersionOfLearnedTimes {
		return
	}
	times := w.edit(after.GroupKey())
	switch {
	case began && after.PreviousAllocation != "":
		w.rows.written.began = append(w.rows.written.began, after)
	case began:
		times.Start.Add(after.StartTook)
	}
	if judged {
		times.Verdict.Add(at.Sub(after.CreateTime.Add(after.StartTook)))
	}
	if ended {
		times.Stop.Add(at.Sub(ordered))
	}
}

// edit returns the times of a group for a change.
func (w learner) edit(g cluster.GroupKey) *learned.Times {
	return &w.rows.written.times.edit(g, func() *groupTimes { return timesRow(w.rows.tables, g) }, groupTimes{Group: g}).Times
}

// starts counts the starts of replacements. The rows are those after the entry, so the order of its reports does not
// matter.
func (w learner) starts() {
	for _, a := range w.rows.written.began {
		took := a.StartTook
		if p := w.rows.state().Alloc(a.PreviousAllocation); waitedFor(a, p) {
			took = min(took, a.CreateTime.Add(took).Sub(p.ModifyTime))
		}
		w.edit(a.GroupKey()).Start.Add(took)
	}
}

// waitedFor reports whether an allocation that began to run has waited for the end of its predecessor, which may be nil.
// A client lets it wait if both are on one node, or if it copies the data of the predecessor. A placement writes both
// rows, so a predecessor that had been stopped then and was written later has ended later. No plan writes it again, so
// its ModifyTime is that of the entry of the end.
func waitedFor(a, p *cluster.Allocation) bool {
	if !endedByClient(p) || p.ModifyIndex <= a.CreateIndex || p.StoppedAt.IsZero() || p.StoppedAt.After(a.CreateTime) {
		return false
	}
	return p.NodeID == a.NodeID || a.DataIn.StateOf() == cluster.DataCopied && a.DataIn.Peer == p.ID
}

// orderedAt returns when a drain marked the allocation, or when a plan stopped it without such a mark. It is zero
// if neither happened.
func orderedAt(a *cluster.Allocation) time.Time {
	if m := a.DesiredTransition; m.Migrate && !m.MarkedAt.IsZero() {
		return m.MarkedAt
	}
	return a.StoppedAt
}

// job deletes the times of the groups that a job no longer has. after is nil if the job is deleted.
func (w learner) job(before, after *cluster.Job) {
	if before == nil {
		return
	}
	for _, row := range slices.Collect(scan[groupTimes](w.rows.tables, tableTimes, indexID, jobKey(before.Key()))) {
		if after.Group(row.Group.Name) == nil {
			w.rows.delete(tableTimes, row)
		}
	}
}

// flush writes the times that have changed. The allocations of a job may end after the job or the group is gone.
func (w learner) flush() {
	if len(w.rows.written.times) == 0 {
		return // most entries change none
	}
	w.starts()
	for _, g := range slices.SortedFunc(maps.Keys(w.rows.written.times), cluster.GroupKey.Compare) {
		if w.rows.state().Job(g.Job).Group(g.Name) != nil {
			w.rows.insert(tableTimes, w.rows.written.times[g].after)
		}
	}
}

func groupTimesID(r *groupTimes) key {
	if r.Group.Job.ID == "" {
		return nil
	}
	return groupKey(r.Group)
}
