package timeline

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// node is a node that was drained.
type node struct {
	id     cluster.NodeID
	drains []*drain // in order, never empty
	rows   []*row   // in the order of their first appearance
	// statuses are the changes of the node's status since its first drain. An empty status
	// is a deleted node.
	statuses []status
	// left are the changes of the number of allocations for which the running drain waits.
	left []count
	// violated counts the violations that name the node.
	violated int
}

type status struct {
	moment
	status cluster.NodeStatus
}

type count struct {
	moment
	n int
}

// drain is one drain of a node.
type drain struct {
	id    cluster.DrainID
	start time.Duration
	// initially is the number of allocations to drain at the start. most is the largest number.
	initially, most int
	// deadline is the time at which the deadline passes, or negative if there is none. The
	// deadline of a forced drain is the time at which it was forced.
	deadline time.Duration
	// cutoff is the deadline in the state, as a time of the leader's clock.
	cutoff   time.Time
	revision cluster.Revision
	ignores  bool // system jobs
	forced   bool
	// outcome is empty until the drain ends. end, stopping and unconfirmed are set with it.
	outcome  cluster.Outcome
	end      time.Duration
	stopping int // allocations that were still stopping
	// unconfirmed are the allocations that the record counted at the end.
	unconfirmed int
}

// running is the current drain, or nil.
func (n *node) running() *drain {
	if d := n.last(); d.outcome == cluster.OutcomeNone {
		return d
	}
	return nil
}

// last is the newest drain.
func (n *node) last() *drain { return n.drains[len(n.drains)-1] }

// update records the strategy of a drain.
func (d *drain) update(now *cluster.Drain) {
	d.revision, d.deadline, d.ignores = now.Revision, -1, now.Strategy.IgnoreSystemJobs
	d.forced = now.Strategy.Deadline < 0
}

// moveDeadline moves the deadline, because the leader's clock was set at the time at. A deadline
// that has passed does not move.
func (d *drain) moveDeadline(at, deadline time.Duration) {
	if d.deadline >= at && !d.forced {
		d.deadline = max(at, deadline)
	}
}

// finish records the end of a drain. record is nil if the state has no record of the drain.
func (d *drain) finish(at time.Duration, record *cluster.Drain) {
	d.end, d.outcome = at, cluster.Outcome("no record")
	if record != nil && record.Outcome != cluster.OutcomeNone {
		d.outcome, d.stopping, d.unconfirmed = record.Outcome, record.StillStopping, record.CountUnconfirmed()
	}
}

// enter records a status of the node.
func (n *node) enter(at time.Duration, s cluster.NodeStatus) {
	if len(n.statuses) == 0 || n.statuses[len(n.statuses)-1].status != s {
		n.statuses = append(n.statuses, status{moment{at}, s})
	}
}

// recount counts the allocations to drain, when a drain has started or ended.
func (n *node) recount(at time.Duration) {
	left := 0
	for _, w := range n.rows {
		w.counted = n.counts(w)
		if w.counted {
			left++
		}
	}
	n.setLeft(at, left)
}

// recountRow updates the number of allocations to drain after a change of a row.
func (n *node) recountRow(at time.Duration, w *row) {
	was := w.counted
	w.counted = n.counts(w)
	switch left := n.nowLeft(); {
	case w.counted && !was:
		n.setLeft(at, left+1)
	case was && !w.counted:
		n.setLeft(at, left-1)
	}
}

// counts reports whether the running drain waits for the row's allocation.
func (n *node) counts(w *row) bool {
	d := n.running()
	return d != nil && w.phase() != Gone && (!d.ignores || w.stage != opinion.System)
}

func (n *node) nowLeft() int {
	if len(n.left) == 0 {
		return 0
	}
	return n.left[len(n.left)-1].n
}

func (n *node) setLeft(at time.Duration, left int) {
	if d := n.running(); d != nil {
		d.most = max(d.most, left)
	}
	if last := len(n.left) - 1; last >= 0 && n.left[last].at == at {
		n.left[last].n = left
		return
	}
	n.left = append(n.left, count{moment{at}, left})
}

// most is the largest number of allocations to drain.
func (n *node) most() int {
	most := 0
	for _, d := range n.drains {
		most = max(most, d.most)
	}
	return most
}

// moved counts the allocations that were marked and left.
func (n *node) moved() int {
	moved := 0
	for _, w := range n.rows {
		if w.moved() {
			moved++
		}
	}
	return moved
}

// leftDuring returns the numbers of allocations to drain during one drain.
func (n *node) leftDuring(d *drain) []count {
	var during []count
	for _, c := range n.left {
		if c.at >= d.start && (d.outcome == cluster.OutcomeNone || c.at < d.end || c.at == d.start) {
			during = append(during, c)
		}
	}
	return during
}

// main returns the running drain. If none runs, it returns the drain with the most allocations at
// its start, and the last of several such drains.
func (n *node) main() *drain {
	main := n.drains[0]
	if d := n.running(); d != nil {
		return d
	}
	for _, d := range n.drains[1:] {
		if d.initially >= main.initially {
			main = d
		}
	}
	return main
}

// wasNotReady reports whether the node was ever not ready.
func (n *node) wasNotReady() bool {
	return slices.ContainsFunc(n.statuses, func(s status) bool { return s.status != cluster.NodeReady })
}
