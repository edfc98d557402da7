package drainer

import (
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// HoldReporter is implemented by a job watcher that remembers since when groups
// are held; the built-in one does. Without it reasons for which the state holds
// no time have none.
type HoldReporter interface {
	// Holds returns since when each group was seen held, by reason; zero if it
	// was not. The map is the caller's. It is called between steps.
	Holds() map[cluster.GroupKey][ReasonCount]time.Time
}

// Explain reports the drain of one node, with what this term has planned and in
// flight. It reports false if the node does not drain.
func (t *Term) Explain(id cluster.NodeID, now time.Time) (Report, bool) {
	view, soft := t.state.Snapshot(), t.soft()
	report, draining := Explain(view, soft, id, now, t.config.Policy)
	if draining && report.Drain.Strategy.Finite() {
		report.EndsBy = EndBound(view, view.Node(id), now, t.config.Policy, t.config.writeTime(view))
	}
	return report, draining
}

// Reports reports every running drain, by node, as Explain does: for less, because
// a group with allocations on several of the nodes is counted once.
func (t *Term) Reports(now time.Time) []Report {
	return slices.Collect(t.reports(now))
}

// Status reports every running drain in numbers, by node.
func (t *Term) Status(now time.Time) []Status {
	var all []Status
	for r := range t.reports(now) {
		all = append(all, r.Status)
	}
	return all
}

func (t *Term) reports(now time.Time) iter.Seq[Report] {
	return func(yield func(Report) bool) {
		view, soft := t.state.Snapshot(), t.soft()
		writeTime := sync.OnceValue(func() time.Duration { return t.config.writeTime(view) })
		e := newExplainer(view, soft, now, t.config.Policy)
		for n := range view.DrainingNodes() {
			r := e.report(n)
			if n.Drain.Strategy.Finite() {
				r.EndsBy = e.on.bound(n, now, e.policy, writeTime())
			}
			if !yield(r) {
				return
			}
		}
	}
}

// Abandoned reports whether the term has stopped deciding because its store was
// replaced.
func (t *Term) Abandoned() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.abandoned
}

// writeTime bounds how long the drainer takes to have a write applied by a
// leader with a quorum: one wait before it is repeated, and the rounds that it takes to
// write everything that drains, each after those before it.
func (c NodeDrainerConfig) writeTime(v View) time.Duration {
	rounds := 2 + countAll(v)/c.leastInRound()
	apart := float64(c.MinWriteInterval) + 2*float64(c.lookInterval()) // a decision may take two looks
	bound := float64(max(0, c.DeadlineCoalesce)) + float64(c.RetryMax) + float64(rounds)*apart
	return time.Duration(min(bound, math.MaxInt64/2))
}

// countAll counts what is left to be asked or to stop on all nodes that drain, and their
// ends. It goes through no consumers, of which there may be many.
func countAll(v View) int {
	left := 0
	for n := range v.DrainingNodes() {
		left += 1 + v.Consumers(n.ID)
		for _, s := range [...]cluster.Stage{cluster.StageSystem, cluster.StagePlugins} {
			if n.Drain.Leaves(s) {
				left += countStage(v, n, s)
			}
		}
	}
	return left
}

// leastInRound is how many marks fit into the entries of one round, at the least.
func (c NodeDrainerConfig) leastInRound() int {
	inEntry := max(1, min(c.MaxIDsPerEntry/minIDsPerEntry, c.MaxBytesPerEntry/minBytesPerEntry))
	return inEntry * min(c.MaxInFlight, math.MaxInt/inEntry)
}

// termSoft is a term's [Soft]: a copy, so that a long report holds up no step.
type termSoft struct {
	pending map[cluster.AllocID]PendingWrite
	holds   map[cluster.GroupKey][ReasonCount]time.Time // or nil
	behind  PendingWrite
	isSo    bool // whether behind holds
}

func (t *Term) soft() Soft {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := termSoft{pending: map[cluster.AllocID]PendingWrite{}}
	write := PendingWrite{Attempts: t.writer.failed.count, LastError: t.writer.lastError}
	if t.writer.behind {
		s.behind = PendingWrite{Attempts: t.writer.asked.count, LastError: t.writer.lastError}
		s.isSo = true
	}
	for _, w := range t.wishes() {
		if !w.reevaluate {
			write.Since = t.wanted[w.mark.Alloc]
			s.pending[w.mark.Alloc] = write
		}
	}
	for id := range t.writer.marks { //lint:order each mark by itself
		write.Since = t.wanted[id]
		s.pending[id] = write
	}
	if h, ok := t.jobWatcher.(HoldReporter); ok {
		s.holds = h.Holds()
	}
	return s
}

func (s termSoft) Pending(id cluster.AllocID) (PendingWrite, bool) {
	write, pending := s.pending[id]
	return write, pending
}

func (s termSoft) HeldSince(key cluster.GroupKey, r Reason) (time.Time, bool) {
	at := s.holds[key][r]
	return at, !at.IsZero()
}

func (s termSoft) Behind() (PendingWrite, bool) { return s.behind, s.isSo }
