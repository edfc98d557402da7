package world

import (
	"math/rand/v2"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/simclient"
)

// Behaviour is how one allocation fares on its node.
type Behaviour = simclient.Behaviour

// Never is longer than any world lasts.
const Never = simclient.Never

// DefaultBehaviour starts within a second, is judged healthy after the group's
// MinHealthyTime, runs for an hour if it is to end by itself, and stops within two
// seconds.
func DefaultBehaviour(*cluster.Allocation) Behaviour {
	return Behaviour{Start: time.Second, Run: time.Hour, Stop: 2 * time.Second}
}

// fleet steps the clients of all nodes. Their clocks are right.
type fleet struct {
	world   *World
	clients *simclient.Fleet
	// at is when they are to be stepped though nobody wakes them; zero is never.
	at time.Time
}

func newFleet(w *World) (*fleet, error) {
	f := &fleet{world: w}
	var err error
	f.clients, err = simclient.New(simclient.Options{
		Snapshot: func() simclient.State { return w.State() },
		Applier:  f,
		Behave:   func(a *cluster.Allocation, _ *rand.Rand) Behaviour { return w.options.Client(a) },
	})
	return f, err
}

func (f *fleet) ready() bool {
	return len(f.clients.Woken()) > 0 || !f.at.IsZero() && !f.world.now.Before(f.at)
}

func (f *fleet) due() time.Time { return f.at }

func (f *fleet) step() error {
	select {
	case <-f.clients.Woken():
	default:
	}
	f.at = f.clients.Step(f.world.now)
	return nil
}

// Report proposes what clients say, with the evaluations that it calls for.
func (f *fleet) Report(reports []cluster.AllocReport, reply func(applied bool)) (queued bool) {
	w := f.world
	m := &shims.AllocClientUpdate{Reports: reports}
	m.Evals = scheduler.ReportEvals(w.State(), reports, w.Clock(), w.ids.eval)
	return w.log.propose(FromClients, m, func(a shims.Answer) { reply(a.Outcome == drainer.Applied) })
}

// applied tells the clients that an entry may have something for.
func (f *fleet) applied(a shims.Applied) {
	switch m := a.Message.(type) {
	case *shims.NodeRegister:
		f.clients.Changed(m.Node.ID)
	case *shims.NodeDeregister:
		f.clients.Changed(m.Nodes...)
	case *shims.NodeUpdateStatus:
		f.clients.Changed(m.Node)
	case *shims.NodeUpdateDrain: // it may withdraw marks
		f.clients.Changed(m.Node)
	case *shims.AllocUpdateDesiredTransition:
		for _, mark := range m.Marks.Marks {
			f.clients.Changed(mark.Node)
		}
	case *shims.ApplyPlan:
		for _, stop := range m.Stops {
			if alloc := a.After.Alloc(stop.Alloc); alloc != nil {
				f.clients.Changed(alloc.NodeID)
			}
		}
		for _, place := range m.Places {
			f.clients.Changed(place.NodeID)
		}
	case *shims.JobDeregister:
		for alloc := range a.Before.AllocsByJob(m.Job) {
			f.clients.Changed(alloc.NodeID)
		}
	}
}
