package timeline

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline/drawing"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// Recorder records one run for its pictures. Make it with [New]. Times count from the start of the
// run. The caller calls each method with times that never decrease.
type Recorder struct {
	options Options
	// last is the latest recorded time. end is the end of the run, or zero before it.
	last, end time.Duration
	applied   int // entries
	// ahead is the time by which the leader's clock is ahead.
	ahead      time.Duration
	terms      []term
	faults     []fault
	violations []violation
	// writes are the entries of the drainer that changed something. requests are those of the
	// operators.
	writes, requests []write

	nodes     map[cluster.NodeID]*node
	nodeOrder []*node // by their first drain
	groups    map[cluster.GroupKey]*group
	// groupOrder, and the groups of each job, are in the order of their first appearance.
	groupOrder []*group
	jobs       map[cluster.JobKey][]*group
	rows       map[cluster.AllocID]*row
	// placed are the rows by the ids of their replacements.
	placed map[cluster.AllocID]*row
}

// term is the term of a leader, from a time on.
type term struct {
	moment
	server int // from zero
}

// fault is one strike of a fault.
type fault struct {
	at, until    time.Duration
	name, target string
}

// violation is a [Violation] and its time.
type violation struct {
	at time.Duration
	Violation
}

func (v violation) title() string {
	return fmt.Sprintf("%s at %s: %s", v.Guarantee, drawing.Rounded(v.at), v.Text)
}

// write is an entry that the picture shows.
type write struct {
	at    time.Duration
	index uint64
	// end means that an entry of the drainer ended drains. Otherwise it marked allocations.
	end  bool
	ids  int // the number of marks or ended drains
	text string
}

// Violation is a violated guarantee, or another reason why the run failed.
type Violation struct {
	// Guarantee is a short name: "G1".
	Guarantee string
	Text      string
	// Node and Group are those that the violation concerns, or empty.
	Node  cluster.NodeID
	Group cluster.GroupKey
}

// New returns a recorder for a run.
func New(o Options) *Recorder {
	return &Recorder{
		options: o,
		nodes:   make(map[cluster.NodeID]*node),
		groups:  make(map[cluster.GroupKey]*group),
		jobs:    make(map[cluster.JobKey][]*group),
		rows:    make(map[cluster.AllocID]*row),
		placed:  make(map[cluster.AllocID]*row),
	}
}

// Leader records that a server, counted from zero, leads from a time on.
func (r *Recorder) Leader(at time.Duration, server int) {
	r.terms = append(r.terms, term{moment{r.at(at)}, server})
}

// Clock records the time by which the leader's clock is ahead, from a time on. Times in the state,
// and so deadlines, are times of that clock.
func (r *Recorder) Clock(at, ahead time.Duration) {
	at = r.at(at)
	r.ahead = ahead
	for _, n := range r.nodeOrder {
		if d := n.running(); d != nil && !d.cutoff.IsZero() {
			d.moveDeadline(at, r.timeOf(d.cutoff))
		}
	}
}

// timeOf returns the time of the run at which the leader's clock shows t.
func (r *Recorder) timeOf(t time.Time) time.Duration {
	return max(0, t.Sub(r.options.Epoch)-r.ahead)
}

// Fault records a strike of a fault, and the end of its effect: the same time if the effect
// has no duration. target may be empty.
func (r *Recorder) Fault(at, until time.Duration, name, target string) {
	at = r.at(at)
	r.faults = append(r.faults, fault{at, max(at, until), name, target})
}

// Violation records a violation.
func (r *Recorder) Violation(at time.Duration, v Violation) {
	r.violations = append(r.violations, violation{r.at(at), v})
}

// End records the end of the run. A picture may also be drawn before it.
func (r *Recorder) End(at time.Duration) { r.end = r.at(at) }

// at records a time. Negative times become zero.
func (r *Recorder) at(at time.Duration) time.Duration {
	at = max(0, at)
	r.last = max(r.last, at)
	return at
}

// Applied records an applied entry. The caller passes each entry once, in the order of the log.
func (r *Recorder) Applied(at time.Duration, a shims.Applied) {
	at = r.at(at)
	r.applied++
	if _, refused := a.Response.(shims.Refused); refused {
		return // nothing changed
	}
	o := observer{run: r, at: at, entry: a}
	o.observe()
	w := write{at: at, index: a.Index}
	switch response := a.Response.(type) {
	case shims.MarksApplied:
		w.ids = len(response.Accepted)
	case shims.CompletionsApplied:
		w.end, w.ids = true, len(response.Ended)
	default:
		if text := requestText(a); text != "" {
			w.text = text
			r.requests = append(r.requests, w)
		}
		return
	}
	if w.ids > 0 {
		w.text = describe(a)
		r.writes = append(r.writes, w)
	}
}

// Watch begins to record a world. It is for [sim.Options] and is called once.
func (r *Recorder) Watch(w *world.World) {
	now := func() time.Duration { return w.Now().Sub(world.Epoch) }
	r.Leader(0, w.Leader())
	w.Observe(world.Observer{
		Applied: func(a world.Applied) { r.Applied(now(), a) },
		ClockSet: func(term int, ahead time.Duration) {
			if term == w.Term() { // and not of an earlier leader
				r.Clock(now(), ahead)
			}
		},
		Elected: func(server int) { r.Leader(now(), server) },
		Struck:  func(s world.Strike) { r.Fault(s.At, s.At+s.For, string(s.Name), s.Target) },
	})
}

// Operations records a scenario's operations on servers as faults, although they are neither strikes
// nor entries. It skips an operation tied to an entry: its time depends on the entry.
func (r *Recorder) Operations(events []scenario.Event) {
	for _, e := range events {
		if e.Before != "" {
			continue
		}
		switch op := e.Op.(type) {
		case *scenario.Pause:
			r.Fault(e.At, e.At+op.For, "pause", serverOrLeader(op.Server))
		case *scenario.Clock:
			r.Fault(e.At, e.At, "clock", serverOrLeader(op.Server))
		case *scenario.Restore:
			r.Fault(e.At, e.At, "restore", "")
		case *scenario.Forget:
			r.Fault(e.At, e.At, "forget", "")
		}
	}
}

// serverOrLeader is the name of a server by its number in scenarios, from 1. Zero is the present
// leader.
func serverOrLeader(n int) string {
	if n == 0 {
		return "the leader"
	}
	return serverName(n - 1)
}

// Result records the violations of a run, and its end.
func (r *Recorder) Result(result *sim.Result) {
	for _, v := range result.Violations {
		r.Violation(v.At.Sub(world.Epoch), Violation{Guarantee: v.Guarantee, Text: v.Check + ": " + v.Text, Node: v.Node, Group: v.Group})
	}
	r.End(result.Lasted)
}

// Entries counts the entries that were applied.
func (r *Recorder) Entries() int { return r.applied }

// times are the times of all changes that a picture shows, in no order.
func (r *Recorder) times() []time.Duration {
	times := []time.Duration{0}
	for _, w := range slices.Concat(r.writes, r.requests) {
		times = append(times, w.at)
	}
	for _, t := range r.terms {
		times = append(times, t.at)
	}
	for _, f := range r.faults {
		times = append(times, f.at)
	}
	for _, v := range r.violations {
		times = append(times, v.at)
	}
	for _, n := range r.nodeOrder {
		times = append(times, n.times()...)
	}
	for _, g := range r.groupOrder {
		for _, l := range g.levels {
			times = append(times, l.at)
		}
	}
	return times
}

// times are the times of all changes on the node.
func (n *node) times() (times []time.Duration) {
	for _, d := range n.drains {
		times = append(times, d.start, max(d.start, d.end))
	}
	for _, s := range n.statuses {
		times = append(times, s.at)
	}
	for _, w := range n.rows {
		for _, c := range w.changes {
			times = append(times, c.at)
		}
		if w.next != nil {
			times = append(times, w.next.placed, max(w.next.placed, w.next.healthy))
		}
	}
	return times
}

// window returns the end of the time that a picture shows. If all drains have ended, the picture
// ends at the last change.
func (r *Recorder) window(last time.Duration) time.Duration {
	if slices.ContainsFunc(r.nodeOrder, func(n *node) bool { return n.running() != nil }) {
		return max(r.end, r.last)
	}
	return last
}

// serverName is the name of a server, counted from zero: "s1".
func serverName(n int) string { return fmt.Sprintf("s%d", n+1) }
