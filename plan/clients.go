package plan

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// clients take the reports of the simulated clients to the copy.
type clients struct {
	play *play
	ids  *names
}

// newClients returns the clients of the copy. Those of nodes on which nothing changes have nothing to do
// until an entry concerns their node.
func newClients(p *play, copied *statestore.Store, seed uint64, ids *names) (*simclient.Fleet, error) {
	return simclient.New(simclient.Options{
		Snapshot: func() simclient.State { return busy{copied.Snapshot().WorkView()} },
		Applier:  &clients{p, ids},
		Seed:     seed,
		Behave:   p.times.behaviour,
		Uncut:    true,
	})
}

// Report proposes the reports, with the evaluations that they require.
func (c *clients) Report(reports []cluster.AllocReport, reply func(applied bool)) (queued bool) {
	state := c.play.fsm.Store().Snapshot()
	m := &shims.AllocClientUpdate{At: c.play.now, Reports: reports}
	m.Evals = scheduler.ReportEvals(state.WorkView(), reports, c.play.now, c.ids.eval)
	c.play.log.Propose(m, func(a shims.Answer) { reply(a.Outcome == raftwrite.Applied) })
	if u := release(state, reports); len(u.Changes) > 0 {
		u.At = c.play.now
		c.play.log.Propose(&shims.ClaimUpdate{ClaimUpdate: u}, func(shims.Answer) {})
	}
	return true
}

// release detaches the volumes of allocations that have ended.
func release(state *statestore.Snapshot, reports []cluster.AllocReport) (u cluster.ClaimUpdate) {
	for _, r := range reports {
		if r.ClientStatus != cluster.ClientComplete && r.ClientStatus != cluster.ClientFailed {
			continue
		}
		for c := range state.WorkView().ClaimsOfAlloc(r.Alloc) {
			if len(u.Changes)+2 > cluster.MaxClaimChanges {
				return u
			}
			u.Changes = append(u.Changes, cluster.ClaimChange{Claim: c.Key(), Node: c.Node, Cause: cluster.CauseNode})
			if c.Controller {
				u.Changes = append(u.Changes, cluster.ClaimChange{Claim: c.Key(), Node: c.Node, Cause: cluster.CauseDetached})
			}
		}
	}
	return u
}

// busy is a state of which the first step reads only the nodes with work that changes by itself: an
// allocation that starts, has no verdict yet, or stops. Entries name the others.
type busy struct{ simclient.State }

// Nodes yields the nodes with such an allocation.
func (b busy) Nodes() iter.Seq[*cluster.Node] {
	return func(yield func(*cluster.Node) bool) {
		for n := range b.State.Nodes() {
			if b.changes(n) && !yield(n) {
				return
			}
		}
	}
}

func (b busy) changes(n *cluster.Node) bool {
	for a := range b.LiveAllocsByNode(n.ID) {
		if a.ServerTerminal() || a.ClientStatus != cluster.ClientRunning || !a.HasVerdict() && a.JobType() == cluster.JobService {
			return true
		}
	}
	return false
}
