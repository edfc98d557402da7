package plan

import (
	"math/rand/v2"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/learned"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// declaredStart is the time from placement to running where nothing was observed: a job declares none.
const declaredStart = 2 * time.Second

// times decides how long allocations take: as the state has observed of their groups, or else as their jobs
// declare.
type times struct {
	// state is the state at the begin of the play, at the time began.
	state *statestore.Snapshot
	began time.Time
	// typical takes the median of the observed times, and no random one.
	typical bool
}

// behaviour returns what an allocation does on its node.
func (t times) behaviour(a *cluster.Allocation, r *rand.Rand) simclient.Behaviour {
	b := simclient.Behaviour{Start: declaredStart, Stop: a.StopTime(), Run: simclient.Never}
	o := t.observed(a.GroupKey())
	if o == nil {
		o = new(learned.Times)
	}
	if o.Start.Total() > 0 {
		b.Start = t.draw(&o.Start, r, t.startedFor(a))
	} else {
		b.Start = max(0, b.Start-t.startedFor(a))
	}
	if o.Stop.Total() > 0 {
		passed := t.stoppedFor(a)
		b.Stop = passed + t.draw(&o.Stop, r, passed) // simulated clients count it from the order
	}
	if o.Verdict.Total() > 0 {
		b.Verdict = max(1, t.draw(&o.Verdict, r, t.ranFor(a)))
	}
	return b
}

// observed returns the observed times of a group, or nil.
func (t times) observed(g cluster.GroupKey) *learned.Times {
	return statestore.LearnedTimes(t.state.State, g)
}

// knows reports whether all times that a move of the group needs were observed.
func (t times) knows(g cluster.GroupKey, kind cluster.JobType) bool {
	o := t.observed(g)
	if o == nil || o.Stop.Total() == 0 {
		return false
	}
	return kind != cluster.JobService || o.Start.Total() > 0 && o.Verdict.Total() > 0
}

// mostDraws bounds the draws of a time that has to be longer than what has passed.
const mostDraws = 16

// draw returns the rest of a time of which a part has passed. If it takes longer than the observed ones, it is
// taken to need a quarter of that again.
func (t times) draw(h *learned.Histogram, r *rand.Rand, passed time.Duration) time.Duration {
	if t.typical {
		if median := h.Median(); median > passed {
			return median - passed
		}
		return passed / 4
	}
	for range mostDraws {
		if d := h.Draw(r); d >= passed {
			return d - passed
		}
	}
	return passed / 4
}

// startedFor is how long an allocation of the state has been starting.
func (t times) startedFor(a *cluster.Allocation) time.Duration {
	if a.CreateIndex > t.state.Index() || a.ClientStatus != cluster.ClientPending {
		return 0
	}
	from := a.CreateTime
	if p := t.state.Alloc(a.PreviousAllocation); p != nil {
		if !p.ClientTerminal() {
			return 0 // it waits for the end of that one
		}
		from = latest(from, p.ModifyTime)
	}
	return max(0, t.began.Sub(from))
}

// ranFor is how long an allocation of the state has run without a verdict.
func (t times) ranFor(a *cluster.Allocation) time.Duration {
	if a.CreateIndex > t.state.Index() || a.ClientStatus != cluster.ClientRunning || a.HasVerdict() || a.StartTook == 0 {
		return 0
	}
	return max(0, t.began.Sub(a.CreateTime.Add(a.StartTook)))
}

// stoppedFor is how long an allocation of the state has been stopping.
func (t times) stoppedFor(a *cluster.Allocation) time.Duration {
	if a.CreateIndex > t.state.Index() || a.StoppedAt.IsZero() || a.StoppedAt.After(t.began) {
		return 0
	}
	return t.began.Sub(a.StoppedAt)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
