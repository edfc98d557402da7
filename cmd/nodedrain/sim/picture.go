package sim

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
	// trace writes the trace, or is nil.
	trace *timeline.Trace
	world *world.World // nil before watch
	// applied counts the recorded entries.
	applied int
}

// newPicture returns the picture of a scenario before it is played. There is no trace if
// the writer is nil.
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

// disturbed records a scenario's operations on servers as faults of the timeline, although
// they are neither strikes nor entries. It skips an operation tied to an entry: its time is
// not known in advance.
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

// serverName returns the name of a server by its number in scenarios, from 1. Zero is the
// present leader.
func serverName(n int) string {
	if n == 0 {
		return "the leader"
	}
	return fmt.Sprintf("s%d", n)
}

// watch starts the recording.
func (p *picture) watch(w *world.World) {
	p.world = w
	p.recorder.Leader(0, w.Leader())
	w.Observe(world.Observer{
		Applied: func(a world.Applied) {
			p.applied++
			p.recorder.Applied(p.now(), a)
		},
		ClockSet: func(term int, ahead time.Duration) {
			if term == w.Term() { // and not of an earlier leader
				p.recorder.Clock(p.now(), ahead)
			}
		},
		Elected: func(server int) { p.recorder.Leader(p.now(), server) },
		Struck:  func(s world.Strike) { p.recorder.Fault(s.At, s.At+s.For, string(s.Name), s.Target) },
	})
	if p.trace != nil {
		newTracer(p.trace, w).watch()
	}
}

// now is the time since the run began.
func (p *picture) now() time.Duration { return p.world.Now().Sub(world.Epoch) }

// end ends the recording with the result of the run. The error is that of the trace.
func (p *picture) end(r *sim.Result) error {
	for _, v := range r.Violations {
		at := v.At.Sub(world.Epoch)
		p.recorder.Violation(at, timeline.Violation{
			Guarantee: v.Guarantee, Text: v.Check + ": " + v.Text, Node: v.Node, Group: v.Group,
		})
		if p.trace != nil {
			p.trace.Event(timeline.Position{Step: uint64(r.Steps), At: at, Server: -1},
				timeline.Event{Kind: "violation", Index: v.Index, Text: v.String()})
		}
	}
	p.recorder.End(r.Lasted)
	if p.trace != nil {
		return p.trace.Err()
	}
	return nil
}
