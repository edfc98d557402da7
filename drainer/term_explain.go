package drainer

import (
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// holdReporter is a job watcher that keeps since when groups are held, as the built-in watcher
// does. With another watcher, reasons whose time is not in the state have no time.
type holdReporter interface {
	// holds returns since when groups are held. It leaves out groups that are due, because their
	// times may be outdated. The map is the caller's.
	holds(now time.Time) map[cluster.GroupKey][]hold
}

// Explain reports the drain of one node, with what this term has planned and in flight. The
// error wraps [rules.ErrNotDraining].
func (t *Term) Explain(id cluster.NodeID, now time.Time) (rules.Report, error) {
	view, state := t.forReport(now)
	return rules.Explain(view, state, id, now, t.config.Policy)
}

// Reports reports every running drain, by node, as Explain does. It costs less, because a
// group with allocations on several of the nodes is counted once.
func (t *Term) Reports(now time.Time) []rules.Report { return slices.Collect(t.reports(now)) }

// Status reports every running drain in numbers, by node.
func (t *Term) Status(now time.Time) []rules.Status {
	var all []rules.Status
	for r := range t.reports(now) {
		all = append(all, r.Status)
	}
	return all
}

func (t *Term) reports(now time.Time) iter.Seq[rules.Report] {
	return func(yield func(rules.Report) bool) {
		view, state := t.forReport(now)
		e := rules.NewExplainer(view, state, now, t.config.Policy)
		for n := range view.DrainingNodes() {
			if !yield(e.Report(n)) {
				return
			}
		}
	}
}

// isAbandoned reports whether the term decides nothing any more because its store was replaced.
func (t *Term) isAbandoned() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reader.changes.Abandoned
}

// forReport returns a view, and the state of the term that the view does not contain. Both are
// copies, so a long report delays no step.
func (t *Term) forReport(now time.Time) (rules.View, rules.TermState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	view := t.reader.state.Snapshot()
	if !t.closed { // a closed feed must not be used
		t.reader.note()
	}
	changes := t.reader.changes
	p := t.outbox.report(now, !changes.Empty())
	p.Placed = t.nodes.placements()
	p.WriteTime = sync.OnceValue(func() time.Duration { return t.config.writeTime(view) })
	reporter, ok := t.nodes.jobs.(holdReporter)
	if !ok || changes.All || len(changes.Nodes) > 0 { // a drain that began or was cancelled changes what groups wait for
		return view, p
	}
	holds := reporter.holds(now)
	for _, key := range changes.Groups {
		delete(holds, key)
	}
	changed := map[cluster.JobKey]bool{}
	for _, job := range changes.Jobs {
		changed[job] = true
	}
	p.HeldSince = func(key cluster.GroupKey, reason rules.Reason) time.Time {
		for _, h := range holds[key] {
			if h.reason == reason && !changed[key.Job] {
				return h.since
			}
		}
		return time.Time{}
	}
	return view, p
}

// writeTime bounds the time from a plan until its write is applied, on a leader with a quorum: one
// wait before a retry, and the rounds that write everything on draining nodes, one after another.
func (c NodeDrainerConfig) writeTime(v rules.View) time.Duration {
	left := 0
	for n := range v.DrainingNodes() {
		left += 1 + rules.CountLeft(v, n)
	}
	rounds := 2 + left/c.leastInRound()
	apart := float64(c.MinWriteInterval) + 2*float64(c.readInterval()) // a decision may take two reads
	bound := float64(max(0, c.DeadlineCoalesce)) + float64(c.Retry.Max) + float64(rounds)*apart
	return time.Duration(min(bound, math.MaxInt64/2))
}

// leastInRound is the least number of marks that fit into the entries of one round.
func (c NodeDrainerConfig) leastInRound() int {
	inEntry := max(1, min(c.MaxIDsPerEntry/minIDsPerEntry, c.MaxBytesPerEntry/minBytesPerEntry))
	return inEntry * min(c.MaxInFlight, math.MaxInt/inEntry)
}
