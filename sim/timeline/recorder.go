package timeline

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// Recorder remembers what a picture of one run needs. Make it with [New]; times
// count from the run's beginning, and those of one method never go back.
type Recorder struct {
	options Options
	// last is the latest time anything was recorded, end the run's or zero while it
	// is not over.
	last, end time.Duration
	applied   int // entries
	// ahead is how far the clock of who leads is ahead.
	ahead      time.Duration
	terms      []term
	faults     []fault
	violations []violation
	// writes are the drainer's entries that changed something, asked the operators'.
	writes, asked []write

	nodes     map[cluster.NodeID]*node
	nodeOrder []*node // as they were first drained
	groups    map[cluster.GroupKey]*group
	// jobs holds the groups of each job, in the order in which they were first seen.
	jobs map[cluster.JobKey][]*group
	// groupOrder are the groups in the order in which they were first seen.
	groupOrder []*group
	rows       map[cluster.AllocID]*row
	// placed are the rows by the newest allocation that was placed for them.
	placed map[cluster.AllocID]*row
}

// term is a time from which a server leads.
type term struct {
	at     time.Duration
	server int // from zero; negative is nobody
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

// write is an entry of interest in itself.
type write struct {
	at    time.Duration
	index uint64
	// end says that it ended drains; otherwise, of the drainer's, it marked.
	end  bool
	ids  int // how many allocations or nodes it changed
	text string
}

// Violation is a guarantee that was broken, or anything else for which the run
// failed.
type Violation struct {
	// Guarantee is what was broken in a word: "G1".
	Guarantee string
	// Text says how.
	Text string
	// Node and Group are whose lane it is about, or empty.
	Node  cluster.NodeID
	Group cluster.GroupKey
}

// New returns a recorder of a run that is about to begin.
func New(o Options) *Recorder {
	return &Recorder{
		options: o.withDefaults(),
		nodes:   make(map[cluster.NodeID]*node),
		groups:  make(map[cluster.GroupKey]*group),
		jobs:    make(map[cluster.JobKey][]*group),
		rows:    make(map[cluster.AllocID]*row),
		placed:  make(map[cluster.AllocID]*row),
	}
}

// Leader notes that a server, counted from zero, leads from a time on.
func (r *Recorder) Leader(at time.Duration, server int) {
	if n := len(r.terms); n > 0 && r.terms[n-1].server < 0 && server < 0 {
		return
	}
	r.terms = append(r.terms, term{r.at(at), server})
}

// NoLeader notes that nobody leads from a time on.
func (r *Recorder) NoLeader(at time.Duration) { r.Leader(at, -1) }

// Clock notes how far the clock of who leads is ahead from a time on: the state has its
// times by that clock, and a deadline passes when it says so.
func (r *Recorder) Clock(at, ahead time.Duration) {
	at = r.at(at)
	r.ahead = ahead
	for _, n := range r.nodeOrder {
		if d := n.running(); d != nil && !d.cutoff.IsZero() {
			d.reset(at, r.shown(d.cutoff))
		}
	}
}

// shown is when the clock of who leads shows a time.
func (r *Recorder) shown(t time.Time) time.Duration {
	return max(0, t.Sub(r.options.Epoch)-r.ahead)
}

// Fault notes that a fault struck, and until when its effect lasts: the same time
// for a moment. The target is whom it struck, or empty.
func (r *Recorder) Fault(at, until time.Duration, name, target string) {
	at = r.at(at)
	r.faults = append(r.faults, fault{at, max(at, until), name, target})
}

// Violation notes that a guarantee was broken.
func (r *Recorder) Violation(at time.Duration, v Violation) {
	r.violations = append(r.violations, violation{r.at(at), v})
}

// End notes that the run is over. Until then a picture shows how far it has come.
func (r *Recorder) End(at time.Duration) { r.end = r.at(at) }

// at notes that something was at a time, which is not before zero.
func (r *Recorder) at(at time.Duration) time.Duration {
	at = max(0, at)
	r.last = max(r.last, at)
	return at
}

// Applied notes an applied entry. Entries come in the order of the log, each once.
func (r *Recorder) Applied(at time.Duration, a shims.Applied) {
	at = r.at(at)
	r.applied++
	if _, refused := a.Response.(shims.Refused); refused {
		return // nothing changed
	}
	o := observer{Recorder: r, at: at, Applied: a}
	o.observe()
	w := write{at: at, index: a.Index}
	switch response := a.Response.(type) {
	case shims.MarksApplied:
		w.ids = len(response.Accepted)
	case shims.CompletionsApplied:
		w.end, w.ids = true, len(response.Ended)
	default:
		if text := asks(a); text != "" {
			w.text = text
			r.asked = append(r.asked, w)
		}
		return
	}
	if w.ids > 0 {
		w.text = describe(a)
		r.writes = append(r.writes, w)
	}
}

// times are when anything changed that a picture shows, in no order.
func (r *Recorder) times() []time.Duration {
	times := []time.Duration{0}
	for _, w := range slices.Concat(r.writes, r.asked) {
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

// times are when anything changed on the node.
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

// window is what a picture shows: from zero to here, the last of the times being
// when something changed last. If nothing was left to be done, what came after it is
// left out.
func (r *Recorder) window(last time.Duration) time.Duration {
	if slices.ContainsFunc(r.nodeOrder, func(n *node) bool { return n.running() != nil }) {
		return max(r.end, r.last)
	}
	return last
}

// serverName is what a server is called.
func serverName(n int) string { return fmt.Sprintf("s%d", n+1) }
