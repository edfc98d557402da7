package drainer

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// holdDater is implemented by a job watcher that remembers since when a group is
// held; the built-in one does.
type holdDater interface {
	heldSince(cluster.GroupKey, Reason) (time.Time, bool)
}

// Explain reports the drain of one node, with what this term has planned and in
// flight. It reports false if the node does not drain.
func (t *Term) Explain(id cluster.NodeID, now time.Time) (Report, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	view := t.state.Snapshot()
	report, draining := Explain(view, t.soft(), id, now, t.config.Policy)
	if draining {
		report.EndsBy = EndBound(view, view.Node(id), t.config.Policy, t.config.writeTime())
	}
	return report, draining
}

// Status reports every running drain in numbers, by node.
func (t *Term) Status(now time.Time) []Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	view := t.state.Snapshot()
	e := newExplainer(view, t.soft(), now, t.config.Policy)
	var all []Status
	for n := range view.DrainingNodes() {
		s := e.report(n).Status
		s.EndsBy = EndBound(view, n, t.config.Policy, t.config.writeTime())
		all = append(all, s)
	}
	return all
}

// writeTime bounds how long the drainer takes to have a write applied by a
// leader with a quorum: the write itself, and one wait before it is repeated.
func (c NodeDrainerConfig) writeTime() time.Duration {
	return max(0, c.DeadlineCoalesce) + c.MinWriteInterval + c.RetryMax
}

// termSoft is a term's [Soft]. It is used with the term's lock held.
type termSoft struct {
	*Term
	planned map[cluster.AllocID]bool
}

func (t *Term) soft() Soft {
	s := termSoft{Term: t, planned: map[cluster.AllocID]bool{}}
	for _, w := range t.wishes() {
		if !w.reevaluates() {
			s.planned[w.mark.Alloc] = true
		}
	}
	return s
}

func (s termSoft) Pending(id cluster.AllocID) (PendingWrite, bool) {
	if !s.planned[id] && !s.writer.marks[id] {
		return PendingWrite{}, false
	}
	return PendingWrite{Since: s.wanted[id], Attempts: s.writer.failed.count, LastError: s.writer.lastError}, true
}

func (s termSoft) HeldSince(key cluster.GroupKey, r Reason) (time.Time, bool) {
	if d, ok := s.jobWatcher.(holdDater); ok {
		return d.heldSince(key, r)
	}
	return time.Time{}, false
}
