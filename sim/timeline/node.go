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
	drains []*drain // in the order in which they began, never empty
	rows   []*row   // in the order in which they were first seen
	// statuses are those it came into since its first drain, each other than the
	// one before it; empty is one that does not exist.
	statuses []status
	// left are how many allocations the running drain had to see go.
	left []count
	// violated counts the violations that name it.
	violated int
}

type status struct {
	at     time.Duration
	status cluster.NodeStatus
}

type count struct {
	at time.Duration
	n  int
}

// drain is one drain of a node.
type drain struct {
	id    cluster.DrainID
	start time.Duration
	// initially is how many allocations had to leave when it began, most how many
	// at any time.
	initially, most int
	// deadline is when its deadline passes, or negative if it has none; a forced
	// drain's is when it was forced.
	deadline time.Duration
	// cutoff is the deadline as the state has it, which is by the clock of who led.
	cutoff   time.Time
	revision cluster.Revision
	ignores  bool // system jobs
	forced   bool
	// outcome is empty while it runs; end and stopping are set with it.
	outcome  cluster.Outcome
	end      time.Duration
	stopping int // what was still stopping
}

// running is the drain that runs, or nil.
func (n *node) running() *drain {
	if d := n.last(); d.outcome == cluster.OutcomeNone {
		return d
	}
	return nil
}

// last is the newest drain.
func (n *node) last() *drain { return n.drains[len(n.drains)-1] }

// update notes the strategy that a drain has.
func (d *drain) update(now *cluster.Drain) {
	d.revision, d.deadline, d.ignores = now.Revision, -1, now.Strategy.IgnoreSystemJobs
	d.forced = now.Strategy.Deadline < 0
}

// reset notes that the clock that deadlines are held to was set at a time, and that the
// deadline passes at another now. One that has passed has passed.
func (d *drain) reset(at, deadline time.Duration) {
	if d.deadline >= at && !d.forced {
		d.deadline = max(at, deadline)
	}
}

// finish notes how a drain ended. The record is nil if the state keeps none.
func (d *drain) finish(at time.Duration, record *cluster.Drain) {
	d.end, d.outcome = at, cluster.Outcome("no record")
	if record != nil && record.Outcome != cluster.OutcomeNone {
		d.outcome, d.stopping = record.Outcome, record.StillStopping
	}
}

// enter has the node be in a status from a time on.
func (n *node) enter(at time.Duration, s cluster.NodeStatus) {
	if len(n.statuses) == 0 || n.statuses[len(n.statuses)-1].status != s {
		n.statuses = append(n.statuses, status{at, s})
	}
}

// recount counts what has to leave when a drain has begun or ended.
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

// settle counts a row anew that has changed.
func (n *node) settle(at time.Duration, w *row) {
	was := w.counted
	w.counted = n.counts(w)
	switch left := n.nowLeft(); {
	case w.counted && !was:
		n.setLeft(at, left+1)
	case was && !w.counted:
		n.setLeft(at, left-1)
	}
}

// counts reports whether the running drain has to see the row's allocation go.
func (n *node) counts(w *row) bool {
	d := n.running()
	return d != nil && w.phase() != Gone && (!d.ignores || w.turn != opinion.System)
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
	n.left = append(n.left, count{at, left})
}

// most is the most that was left to go at any time.
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

// leftDuring are what was left while a drain of the node ran.
func (n *node) leftDuring(d *drain) []count {
	var during []count
	for _, c := range n.left {
		if c.at >= d.start && (d.outcome == cluster.OutcomeNone || c.at < d.end || c.at == d.start) {
			during = append(during, c)
		}
	}
	return during
}

// main is the drain that runs, or the one that had to see most go, the last of equals.
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

// wasAway reports whether the node was ever not what it is to be.
func (n *node) wasAway() bool {
	return slices.ContainsFunc(n.statuses, func(s status) bool { return s.status != cluster.NodeReady })
}
