package main

import (
	"fmt"
	"io"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// picture records a run for a timeline and a trace.
type picture struct {
	recorder *timeline.Recorder
	// trace is where the trace goes, or nil.
	trace *timeline.Trace
	world *world.World // nil before it is watched
	// applied counts the entries that were recorded.
	applied int
}

// newPicture is of a scenario that is about to be played. The trace goes to a writer,
// or nowhere if that is nil.
func newPicture(s *scenario.Scenario, replay string, trace io.Writer) *picture {
	p := &picture{recorder: timeline.New(timeline.Options{
		Name: s.Name, Seed: s.Seed, Epoch: world.Epoch, Replay: replay, Servers: max(1, s.Cluster.Servers),
	})}
	if trace != nil {
		p.trace = timeline.NewTrace(trace)
	}
	for _, e := range s.Events {
		p.disturbed(e)
	}
	return p
}

// disturbed notes what a scenario does to servers: it is no strike of a fault and no
// entry, and still what a reader asks for first. What comes before an entry comes
// nobody knows when.
func (p *picture) disturbed(e scenario.Event) {
	if e.Before != "" {
		return
	}
	switch op := e.Op.(type) {
	case *scenario.Pause:
		p.recorder.Fault(e.At, e.At+op.For, "pause", serverName(op.Server))
	case *scenario.Clock:
		p.recorder.Fault(e.At, e.At, "clock", serverName(op.Server))
	case *scenario.Restore:
		p.recorder.Fault(e.At, e.At, "restore", "")
	case *scenario.Forget:
		p.recorder.Fault(e.At, e.At, "forget", "")
	}
}

// serverName is a server by its number from 1, as scenarios name it; zero is the
// leader, whoever that is.
func serverName(n int) string {
	if n == 0 {
		return "the leader"
	}
	return fmt.Sprintf("s%d", n)
}

// watch begins to record.
func (p *picture) watch(w *world.World) {
	p.world = w
	p.recorder.Leader(0, w.Leader())
	w.OnApply(func(a world.Applied) {
		p.applied++
		p.recorder.Applied(p.now(), a)
	})
	w.OnClock(func(term int, ahead time.Duration) {
		if term == w.Term() { // and not of who led before
			p.recorder.Clock(p.now(), ahead)
		}
	})
	w.OnElect(func(server int) { p.recorder.Leader(p.now(), server) })
	w.OnStrike(func(s world.Strike) { p.recorder.Fault(s.At, s.At+s.For, string(s.Name), s.Target) })
	if p.trace != nil {
		newTracer(p.trace, w).watch()
	}
}

// now is the time since the run began.
func (p *picture) now() time.Duration { return p.world.Now().Sub(world.Epoch) }

// end ends the recording with what came of the run, and says whether the trace could
// be written.
func (p *picture) end(r *sim.Result) error {
	for _, v := range r.Violations {
		at := v.At.Sub(world.Epoch)
		p.recorder.Violation(at, timeline.Violation{
			Guarantee: v.Guarantee, Text: v.Check + ": " + v.Text, Node: v.Node, Group: v.Group,
		})
		if p.trace != nil {
			p.trace.Event(timeline.Moment{Step: uint64(r.Steps), At: at, Server: -1},
				timeline.Event{Kind: "violation", Index: v.Index, Text: v.String()})
		}
	}
	p.recorder.End(r.Lasted)
	if p.trace != nil {
		return p.trace.Err()
	}
	return nil
}
