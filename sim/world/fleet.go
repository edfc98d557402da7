package world

import (
	"iter"
	"math/rand/v2"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Behaviour is the behaviour of one allocation on its node.
type Behaviour = simclient.Behaviour

// Never is longer than any run.
const Never = simclient.Never

// fleet steps the clients of all nodes. Their clocks are right.
type fleet struct {
	world   *World
	clients *simclient.Fleet
	// at is the next step without a wake-up; zero is never.
	at time.Time
	// silent are the nodes whose client sends and receives nothing.
	silent map[cluster.NodeID]*outage
	// ended are the allocations whose end was reported, and whose client has the answer
	// that the report was applied.
	ended map[cluster.AllocID]bool
	// real are the nodes with real clients, or nil. Then clients do nothing.
	real *cores
}

func newFleet(w *World) (*fleet, error) {
	f := &fleet{world: w, silent: map[cluster.NodeID]*outage{}, ended: map[cluster.AllocID]bool{}}
	var err error
	f.clients, err = simclient.New(simclient.Options{Snapshot: f.state, Applier: f, Behave: f.behaviour})
	if w.options.RealClients {
		f.real = newCores(f)
	}
	return f, err
}

// changed wakes the clients of nodes that have changed, or whose allocations have.
func (f *fleet) changed(nodes ...cluster.NodeID) {
	if f.real != nil {
		f.real.changed(nodes...)
		return
	}
	f.clients.Changed(nodes...)
}

// state returns the newest state as clients read it. In it, the nodes of silent clients are
// disconnected.
func (f *fleet) state() simclient.State {
	state := f.world.Truth()
	if len(f.silent) == 0 {
		return state.WorkView()
	}
	return setting.ClientState(state, func(id cluster.NodeID) bool { return f.silent[id] != nil })
}

// behaviour returns the behaviour of an allocation: that of the options, changed by faults.
func (f *fleet) behaviour(a *cluster.Allocation, _ *rand.Rand) Behaviour {
	b := f.world.options.Client(a)
	if len(f.world.Faults.armed) == 0 {
		return b
	}
	return setting.WithFaults(b, a, func(name scenario.FaultName) bool {
		_, strikes := f.world.Faults.strike(name, target{Alloc: a})
		return strikes
	})
}

// Lives yields the allocations with tasks on a node with simulated clients. It does not read the state.
func (h Hidden) Lives(id cluster.NodeID) iter.Seq[cluster.AllocID] {
	return h.world.clients.clients.Lives(id, h.world.now)
}

// nextStep returns now after a wake-up, and otherwise the next time at which clients send
// reports.
func (f *fleet) nextStep(now time.Time) time.Time {
	if f.real != nil {
		return f.real.nextStep(now)
	}
	if len(f.clients.Woken()) > 0 {
		return now
	}
	if f.at.IsZero() {
		return f.at
	}
	return f.gathered(f.at)
}

// gathered returns the first time at or after a time at which clients send reports.
func (f *fleet) gathered(at time.Time) time.Time {
	gather := f.world.options.Gather
	if gather == 0 {
		return at
	}
	if since := at.Sub(Epoch) % gather; since > 0 {
		return at.Add(gather - since)
	}
	return at
}

func (f *fleet) step() error {
	if f.real != nil {
		return f.real.step()
	}
	select {
	case <-f.clients.Woken():
	default:
	}
	f.at = f.clients.Step(f.world.now)
	return nil
}

// Report proposes the reports of clients, with the evaluations that the reports make necessary.
func (f *fleet) Report(reports []cluster.AllocReport, reply func(applied bool)) (queued bool) {
	w := f.world
	m := &shims.AllocClientUpdate{At: w.Clock(), Reports: reports}
	m.Evals = scheduler.ReportEvals(w.Servers.leader.server.state().WorkView(), reports, w.Clock(), w.ids.eval)
	return w.Log.propose(nil, FromClients, m, func(a shims.Answer) {
		applied := a.Outcome == raftwrite.Applied
		for _, r := range reports {
			if applied && (r.ClientStatus == cluster.ClientComplete || r.ClientStatus == cluster.ClientFailed) {
				f.ended[r.Alloc] = true
			}
		}
		reply(applied)
	})
}

// applied wakes the clients that an entry concerns. For the clients' own entries, the answer to
// the report wakes them, unless a move of data has ended or the entry creates a node.
func (f *fleet) applied(a shims.Applied) {
	if f.real != nil {
		f.real.transfers.Changed()
		f.real.moved(a)
	}
	m, registers := a.Message.(*shims.NodeRegister)
	creates := registers && a.Before.Node(m.Node.ID) == nil // the node was deleted while its client registered it
	if e := f.world.Log.Entry(a.Index); e.Proposed && e.Source == FromClients && !creates {
		return
	}
	shims.ChangedNodes(a, f.changed)
	if m, is := a.Message.(*shims.NodeUpdateStatus); is {
		if n := a.After.Node(m.Node); n != nil && n.Status == cluster.NodeDisconnected {
			f.world.At(f.world.now, func() error { return f.await(m.Node, n.StatusChangedAt) })
		}
	}
}
