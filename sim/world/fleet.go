package world

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
	"github.com/seed-f9cf0b39/nodedrain/simclient"
)

// Behaviour is how one allocation fares on its node.
type Behaviour = simclient.Behaviour

// Never is longer than any world lasts.
const Never = simclient.Never

// DefaultBehaviour is [setting.Default] for every allocation.
func DefaultBehaviour(*cluster.Allocation) Behaviour { return setting.Default() }

// fleet steps the clients of all nodes. Their clocks are right.
type fleet struct {
	world   *World
	clients *simclient.Fleet
	// at is when they are to be stepped though nobody wakes them; zero is never.
	at time.Time
	// silent are the nodes whose client says nothing and hears nothing.
	silent map[cluster.NodeID]*silence
	// ended are the allocations of which a client was told that their end was applied.
	ended map[cluster.AllocID]bool
}

func newFleet(w *World) (*fleet, error) {
	f := &fleet{world: w, silent: map[cluster.NodeID]*silence{}, ended: map[cluster.AllocID]bool{}}
	var err error
	f.clients, err = simclient.New(simclient.Options{
		Snapshot: f.state,
		Applier:  f,
		Behave:   w.behave,
	})
	return f, err
}

// state is the truth as clients see it: whose client is silent is out of touch.
func (f *fleet) state() simclient.State {
	state := f.world.Truth()
	if len(f.silent) == 0 {
		return state
	}
	return setting.Partly(state, func(id cluster.NodeID) bool { return f.silent[id] != nil })
}

func (f *fleet) wants(now time.Time) time.Time {
	if len(f.clients.Woken()) > 0 {
		return now
	}
	return f.gathered(f.at)
}

// gathered is the time at which clients say what they have to say from a time on; zero is
// never.
func (f *fleet) gathered(at time.Time) time.Time {
	gather := f.world.options.Gather
	if gather == 0 || at.IsZero() {
		return at
	}
	if since := at.Sub(Epoch) % gather; since > 0 {
		return at.Add(gather - since)
	}
	return at
}

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
	m.Evals = scheduler.ReportEvals(w.leader.server.state(), reports, w.Clock(), w.ids.eval)
	return w.log.propose(nil, FromClients, m, func(a shims.Answer) {
		f.taken(reports, a)
		reply(a.Outcome == raftwrite.Applied)
	})
}

// taken notes what clients know to have been applied.
func (f *fleet) taken(reports []cluster.AllocReport, a shims.Answer) {
	for _, r := range reports {
		if a.Outcome == raftwrite.Applied && (r.ClientStatus == cluster.ClientComplete || r.ClientStatus == cluster.ClientFailed) {
			f.ended[r.Alloc] = true
		}
	}
}

// applied tells the clients that an entry may have something for. What became of their
// own reports they are told by its answer, if anybody knows.
func (f *fleet) applied(a shims.Applied) {
	if e := f.world.Entry(a.Index); e.Proposed && e.Source == FromClients {
		return
	}
	setting.Concerned(a, f.clients.Changed)
}
