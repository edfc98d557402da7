package sim

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/demo/openb"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

const (
	// massDrains is how many nodes drain at once: a fifth of the real cluster. laterDrains begin in the pause.
	massDrains, laterDrains = 300, 20
	// massDeadline is the deadline of all. Without the pause it would be over before the resume.
	massDeadline = 20 * time.Minute
	massPause    = time.Hour
	// renamedJobs is how many jobs get other groups in the pause.
	renamedJobs = 5
)

// A fifth of the nodes of a real cluster drain, and all drains are paused in the midst, at several moments. In the
// pause further nodes drain, and some jobs get other groups. The pause lasts longer than the deadlines. With -v the
// test prints what the entries did.
//
//race:skip one goroutine
func TestPauseOfAll_openb(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("NODEDRAIN_OPENB")
	if dir == "" {
		t.Skip("NODEDRAIN_OPENB names no directory with the trace")
	}
	from, at, nodes := runningCluster(t, dir)
	gone := 0
	// At the first two moments the first entries of the drainer are in flight.
	for i, after := range []time.Duration{20 * time.Millisecond, 25 * time.Millisecond, 10 * time.Second, 40 * time.Second} {
		b := newBraked(t, from, at, uint64(i+1), nodes)
		b.play(after)
		t.Logf("paused %s after the request of %d drains: %s", after, massDrains, b.text())
		b.judge()
		gone += b.paused.marks[cluster.MarkGone]
	}
	must.Positive(t, gone, must.Sprint("no allocation without a group was marked in a pause"))
}

// runningCluster returns the state of the real cluster with all allocations that have room, and the nodes to drain: the
// first massDrains at once, and the others in the pause.
func runningCluster(t *testing.T, dir string) (from *statestore.Store, at time.Time, drained []cluster.NodeID) {
	t.Helper()
	trace, err := openb.Load(dir)
	must.NoError(t, err)
	w, err := world.New(brakedOptions(1))
	must.NoError(t, err)
	nodes := trace.Nodes()
	for _, n := range nodes {
		must.NoError(t, w.Setup.Commit(&shims.NodeRegister{At: w.Now(), Node: n}))
	}
	for _, j := range trace.Jobs() {
		w.Operator.Propose(w.Operator.Requests.Register(j), nil)
	}
	_, err = w.Run(w.Now().Add(time.Hour))
	must.NoError(t, err)
	drained, err = (&clusterFlags{seed: 1, drains: massDrains + laterDrains}).drained(nodes)
	must.NoError(t, err)
	return w.Servers.Fork(), w.Now(), drained
}

// brakedOptions are the options of [clusterFlags.scenario].
func brakedOptions(seed uint64) world.Options {
	return world.Options{
		Seed: seed, Servers: 3, Views: true, MaxSteps: 10_000_000,
		Commit:   between(2*time.Millisecond, 20*time.Millisecond),
		Wake:     between(time.Millisecond, 10*time.Millisecond),
		Schedule: between(time.Millisecond, 50*time.Millisecond),
		Client: func(a *cluster.Allocation) world.Behaviour {
			r := world.Stream(seed, "client/"+string(a.ID))
			seconds := func(least, most int) time.Duration { return time.Duration(least+r.IntN(most-least)) * time.Second }
			return world.Behaviour{Start: seconds(1, 5), Run: world.Never, Stop: seconds(1, 10)}
		},
	}
}

// braked is a play in which all drains are paused.
type braked struct {
	t            *testing.T
	world        *world.World
	first, later []cluster.NodeID
	// before are the entries until the command, flight those from the command to the entry of the pause, paused those
	// in the pause, and after those that follow the resume. now is one of them.
	before, flight, paused, after counted
	now                           *counted
	// commanded is when the operator paused all drains, and applied when that was applied. lastMark is when the last
	// mark of a class that a pause holds was applied before the resume.
	commanded, applied, lastMark time.Time
	// pausedAt and resumedAt are the times of the two requests.
	pausedAt, resumedAt time.Time
	// held are the drains at the resume, before and after it.
	held, resumed map[cluster.NodeID]cluster.DrainStrategy
}

// counted is what some entries did.
type counted struct {
	entries map[shims.MessageType]int
	marks   [cluster.MarkClassCount]int
	// ended counts drains. refused counts the marks and ends of drains that the state machine refused.
	ended, refused int
}

func newBraked(t *testing.T, from *statestore.Store, at time.Time, seed uint64, nodes []cluster.NodeID) *braked {
	t.Helper()
	o := brakedOptions(seed)
	o.From, o.Begin = from, at
	w, err := world.New(o)
	must.NoError(t, err)
	b := &braked{t: t, world: w, first: nodes[:massDrains], later: nodes[massDrains:]}
	b.now = &b.before
	w.Observe(world.Observer{Applied: b.count})
	return b
}

// count counts an entry.
func (b *braked) count(a shims.Applied) {
	if m, is := a.Message.(*shims.PauseDrains); is {
		switch {
		case m.Pause:
			b.now, b.pausedAt, b.applied = &b.paused, m.At, b.world.Now()
		default:
			b.now, b.resumedAt, b.held, b.resumed = &b.after, m.At, strategies(a.Before), strategies(a.After)
		}
		return
	}
	if b.now.entries == nil {
		b.now.entries = map[shims.MessageType]int{}
	}
	b.now.entries[a.Type]++
	switch r := a.Response.(type) {
	case shims.MarksApplied:
		b.now.refused += len(r.Refused)
		for _, m := range r.Accepted {
			b.now.marks[m.Class]++
			if m.Class != cluster.MarkGone && b.resumedAt.IsZero() {
				b.lastMark = b.world.Now()
			}
		}
	case shims.CompletionsApplied:
		b.now.ended += len(r.Ended)
		b.now.refused += len(r.Refused)
	}
}

// strategies are the strategies of all drains.
func strategies(s *statestore.Snapshot) map[cluster.NodeID]cluster.DrainStrategy {
	all := map[cluster.NodeID]cluster.DrainStrategy{}
	nodes, _ := s.Draining()
	for n := range nodes {
		all[n.ID] = n.Drain.Strategy
	}
	return all
}

// play drains, pauses after a time, resumes, and waits until nothing happens any more.
func (b *braked) play(after time.Duration) {
	o, begun := b.world.Operator, b.world.Now()
	drain := func(nodes []cluster.NodeID) {
		for _, id := range nodes {
			o.Propose(o.Requests.Drain(id, &cluster.DrainSpec{Deadline: massDeadline}, ""), nil)
		}
	}
	drain(b.first)
	for _, step := range []struct {
		at time.Duration
		do func()
	}{
		{after, func() {
			b.commanded, b.now = b.world.Now(), &b.flight
			o.Propose(o.Requests.Pause("", true), nil)
		}},
		{after + massPause/4, func() { drain(b.later) }},
		{after + massPause/2, func() { b.rename() }},
		{after + massPause, func() { o.Propose(o.Requests.Pause("", false), nil) }},
	} {
		b.world.At(begun.Add(step.at), func() error { step.do(); return nil })
	}
	idle, err := b.world.Run(begun.Add(24 * time.Hour))
	must.NoError(b.t, err)
	must.True(b.t, idle)
}

// rename registers some jobs of held allocations again, with another name of their group.
func (b *braked) rename() {
	renamed := map[cluster.JobKey]bool{}
	for _, id := range b.first {
		for a := range b.world.Truth().AllocsByNode(id) {
			if len(renamed) == renamedJobs || a.Terminal() || a.Marked() || renamed[a.JobKey()] {
				continue
			}
			renamed[a.JobKey()] = true
			job := a.Job.Copy()
			job.TaskGroups[0].Name = "renamed"
			b.world.Operator.Propose(b.world.Operator.Requests.Register(job), nil)
		}
	}
}

// judge checks that the pause held everything, and that everything went on after it.
func (b *braked) judge() {
	t := b.t
	t.Helper()
	for class := range cluster.MarkClassCount {
		if class != cluster.MarkGone {
			must.Zero(t, b.paused.marks[class], must.Sprint("marks in the pause: ", class))
		}
	}
	must.Zero(t, b.paused.ended, must.Sprint("drains that ended in the pause"))
	must.Positive(t, len(b.held)-len(b.later), must.Sprint("all drains ended before the pause"))
	must.MapLen(t, len(b.held), b.resumed)
	for _, id := range slices.Sorted(maps.Keys(b.held)) {
		before, after := b.held[id], b.resumed[id]
		since := b.pausedAt
		if before.StartedAt.After(since) {
			since = before.StartedAt
		}
		must.EqOp(t, b.resumedAt.Sub(since), after.ForceDeadline.Sub(before.ForceDeadline), must.Sprint(id))
		must.True(t, after.ForceDeadline.After(b.resumedAt), must.Sprint(id))
	}
	must.MapEmpty(t, strategies(b.world.Truth()))
	ended := 0
	for d := range b.world.Truth().Drains() {
		ended++
		must.SliceContains(t, []cluster.Outcome{cluster.OutcomeComplete, cluster.OutcomeDeadlineReached}, d.Outcome, must.Sprint(d.NodeID))
		must.Zero(t, d.StillStopping, must.Sprint(d.NodeID))
	}
	must.EqOp(t, len(b.first)+len(b.later), ended)
}

// text shows the counts.
func (b *braked) text() string {
	text := fmt.Sprintf("%d drains held", len(b.held))
	switch {
	case b.lastMark.IsZero():
		text += ", no mark before it"
	case b.lastMark.After(b.commanded):
		text += fmt.Sprintf(", the last mark %s after the command", b.lastMark.Sub(b.commanded))
	default:
		text += fmt.Sprintf(", the last mark %s before the command", b.commanded.Sub(b.lastMark))
	}
	text += fmt.Sprintf(", the entry of the pause %s after it", b.applied.Sub(b.commanded))
	for _, part := range []struct {
		name string
		counted
	}{{"before the command", b.before}, {"until its entry", b.flight}, {"in the pause", b.paused}, {"after it", b.after}} {
		text += fmt.Sprintf("\n  %s: %s", part.name, part.counted)
	}
	return text
}

// String lists what is not zero.
func (c counted) String() string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(c.entries)) {
		parts = append(parts, fmt.Sprint(c.entries[kind], " ", kind))
	}
	parts = append(parts, fmt.Sprint(c.ended, " drains ended"), fmt.Sprint(c.refused, " refused"))
	for class := range cluster.MarkClassCount {
		if n := c.marks[class]; n > 0 {
			parts = append(parts, fmt.Sprint(n, " marks ", class))
		}
	}
	return strings.Join(parts, ", ")
}
