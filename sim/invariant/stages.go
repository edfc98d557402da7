package invariant

import (
	"cmp"
	"iter"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// stageCounts counts the allocations on a draining node by stage, in one snapshot.
type stageCounts struct {
	snapshot uint64
	// These are the allocation with the lowest id of each stage, or nil: one that the next
	// stage waits for, one without a mark or a stop, and one that is in touch.
	awaited, staying, inTouch [opinion.StageCount]*alloc
	// left counts the live allocations that have to leave, by stage.
	left [opinion.StageCount]int
}

// stages returns the counts of a draining node.
func (m *snapshot) stages(n *node) *stageCounts {
	t := &n.stages
	if t.snapshot == m.number {
		return t
	}
	*t = stageCounts{snapshot: m.number}
	d := n.drain()
	for _, a := range n.live {
		if !a.hasToLeave() {
			continue
		}
		t.left[a.stage]++
		if !opinion.WaitOver(a.row, n.row, d, m.at, m.policy.StopMargin) {
			keepLowest(&t.awaited[a.stage], a)
		}
		if !a.leaving() {
			keepLowest(&t.staying[a.stage], a)
		}
		if a.inTouch() {
			keepLowest(&t.inTouch[a.stage], a)
		}
	}
	return t
}

// keepLowest keeps the allocation with the lower id.
func keepLowest(kept **alloc, a *alloc) {
	if *kept == nil || a.id() < (*kept).id() {
		*kept = a
	}
}

// total counts the live allocations that have to leave.
func (t *stageCounts) total() (total int) {
	for _, left := range t.left {
		total += left
	}
	return total
}

// waitsFor is an allocation that the stage waits for, or nil if its turn has come. With the policy
// [rules.PluginsAfterStop], storage plugins wait for all other allocations in touch, even after
// the deadline.
func (m *snapshot) waitsFor(n *node, stage opinion.Stage) *alloc {
	t := m.stages(n)
	toTheEnd := stage == opinion.Plugin && m.policy.PluginsAfterDeadline == rules.PluginsAfterStop
	for before := range stage {
		if t.awaited[before] != nil {
			return t.awaited[before]
		}
		if toTheEnd && t.inTouch[before] != nil {
			return t.inTouch[before]
		}
	}
	return nil
}

// unfinished returns an allocation that keeps the drain from its end, and why. The allocation is nil if the
// drain is paused. The reason is empty if the completion contract holds.
func (m *snapshot) unfinished(n *node) (who *alloc, why string) {
	d, contract := n.drain(), m.policy.Completion
	if paused(m, n) {
		return nil, "the drain is paused"
	}
	if contract != rules.CompletionMarked && passed(m, n) {
		contract = rules.CompletionStopped
	}
	t := m.stages(n)
	for stage := range opinion.StageCount {
		switch {
		case contract == rules.CompletionMarked && t.staying[stage] != nil:
			return t.staying[stage], "was not requested to leave"
		case contract != rules.CompletionMarked && t.awaited[stage] != nil:
			return t.awaited[stage], "has not left"
		}
	}
	if awaited := m.awaitedData(n); len(awaited) > 0 {
		return awaited[0], "has ended, and its replacement may still get its data"
	}
	if contract != rules.CompletionReplaced && contract != rules.CompletionMigrated {
		return nil, ""
	}
	for _, a := range m.marked[d.ID] {
		switch {
		case m.allocs[a.id()] != a || !a.markedBy(d.ID):
		case !a.replaced():
			return a, "has no replacement and may still get one"
		case contract == rules.CompletionMigrated && !migrated(m, a):
			return a, "has not moved its data"
		}
	}
	return nil, ""
}

func (a *alloc) markedBy(d cluster.DrainID) bool {
	return a.marked() && a.row.DesiredTransition.Drain == d
}

// replaced reports whether an allocation that left has a replacement, or a blocked evaluation, or
// gets no replacement. A pending evaluation means that the scheduler has not decided yet.
func (a *alloc) replaced() bool {
	if a.row.NextAllocation != "" || !a.service() || a.row.DesiredTransition.MigrateDisablePlacement {
		return true
	}
	if j := a.group.job.row; j == nil || j.Stop || !a.group.exists() {
		return true
	}
	if a.group.job.pending() {
		return false
	}
	return !a.live() || a.stopping() || len(a.group.job.open) > 0
}

// migrated reports whether the data of an allocation that left has moved or cannot move. A
// replacement with data starts only when it has the data.
func migrated(m *snapshot, a *alloc) bool {
	if !movesData(a.row) || a.row.ClientStatus == "lost" || a.row.DataOut != nil { // see awaitedData
		return true
	}
	if a.row.NextAllocation == "" {
		return a.replaced() && len(a.group.job.open) == 0
	}
	next := m.allocs[a.row.NextAllocation]
	return next == nil || next.row.ClientStatus != "pending"
}

// awaitedData returns, by id, the ended allocations for whose data the drain of their node waits. A drain
// waits for no data after its deadline, or if it only has to mark all allocations.
func (m *snapshot) awaitedData(n *node) (awaited []*alloc) {
	if m.policy.Completion == rules.CompletionMarked || passed(m, n) {
		return nil
	}
	for _, a := range n.ended {
		if _, may := opinion.MayMove(a.row, state{m.tables}); may && opinion.KeepsData(a.row) && a.hasToLeave() {
			awaited = append(awaited, a)
		}
	}
	slices.SortFunc(awaited, func(a, b *alloc) int { return cmp.Compare(a.id(), b.id()) })
	return awaited
}

func movesData(a *cluster.Allocation) bool {
	if a.Job == nil {
		return false
	}
	for _, g := range a.Job.TaskGroups {
		if g != nil && g.Name == a.TaskGroup {
			return g.EphemeralDisk.Migrate
		}
	}
	return false
}

// hasToLeave reports whether the drain of the allocation's node has to wait for it: the request
// does not exclude it. The node drains.
func (a *alloc) hasToLeave() bool {
	d := a.node.drain()
	if !d.Strategy.IgnoreSystemJobs || a.stage == opinion.Consumer {
		return true
	}
	return !opinion.Excluded(a.row, d, a.node.rows(), a.node.tables.volumes)
}

// rows yields the rows of the node's live allocations.
func (n *node) rows() iter.Seq[*cluster.Allocation] {
	return func(yield func(*cluster.Allocation) bool) {
		for _, a := range n.live {
			if !yield(a.row) {
				return
			}
		}
	}
}

// volumes reads a state without the store's indexes of claims.
type volumes struct{ *statestore.Snapshot }

var _ opinion.Volumes = volumes{}

func (v volumes) ClaimsOnNode(n cluster.NodeID) iter.Seq[*cluster.VolumeClaim] {
	return func(yield func(*cluster.VolumeClaim) bool) {
		for c := range v.WorkView().Claims() {
			if c.Node == n && !yield(c) {
				return
			}
		}
	}
}

// mayExclude returns the nodes on which the entry may change the storage plugins that a drain
// excludes: the nodes of system allocations that ended, and all draining nodes if the entry changes
// volumes.
func (e *entry) mayExclude(b *tables) (nodes []*node) {
	switch e.Message.(type) {
	case *shims.VolumeDeregister, *shims.VolumeDetach, *shims.ClaimUpdate:
		nodes = append(nodes, b.draining...)
	}
	for _, c := range e.allocs {
		if c.before != nil && opinion.Live(c.before) && opinion.StageOf(c.before) == opinion.System {
			nodes = append(nodes, b.node(c.before.NodeID))
		}
	}
	return nodes
}
