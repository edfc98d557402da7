package plan

import (
	"math/rand/v2"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/client/verdict"
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
	// unit is the unit to whose nearest multiple times are rounded. Zero rounds none.
	unit time.Duration
}

// unitOf returns the unit of the times of a play, for the number of allocations on the nodes of the question. Each part of
// a play makes a step at each time at which something happens. With many allocations and exact times something happens at
// each millisecond. With rounded times a play takes half as long, and its end hardly changes: some times become shorter
// and others longer.
func unitOf(allocs int) time.Duration {
	if allocs < manyAllocs {
		return 0
	}
	return 500 * time.Millisecond
}

// manyAllocs is the number of allocations from which times are rounded. Real clients, too, send the events of half a
// second in one report.
const manyAllocs = 500

// behaviour returns what an allocation does on its node.
func (t times) behaviour(a *cluster.Allocation, r *rand.Rand) simclient.Behaviour {
	b := simclient.Behaviour{Start: declaredStart, Stop: t.declaredStop(a), Run: simclient.Never}
	o := t.observed(a.GroupKey())
	if o == nil {
		o = new(learned.Times)
	}
	if o.Start.Total() > 0 {
		b.Start = t.draw(&o.Start, r, t.startedFor(a), free)
	} else {
		b.Start = max(0, b.Start-t.startedFor(a))
	}
	if o.Stop.Total() > 0 {
		passed := t.stoppedFor(a)
		b.Stop = passed + t.draw(&o.Stop, r, passed, atMost(a.StopTime())) // simulated clients count it from the order
	}
	if o.Verdict.Total() > 0 {
		b.Verdict = max(1, t.draw(&o.Verdict, r, t.ranFor(a), atLeast(verdict.TermsOf(a.Job.Group(a.TaskGroup)).Least)))
	}
	if t.unit > 0 {
		b.Start, b.Stop = b.Start.Round(t.unit), b.Stop.Round(t.unit)
		if b.Verdict != 0 { // zero has another meaning
			b.Verdict = max(1, b.Verdict.Round(t.unit))
		}
	}
	return b
}

// declaredStop is the longest time that an allocation may take to stop and to unmount its volumes. A storage plugin
// waits for no volume: in a play it stops after the allocations that use its volumes.
func (t times) declaredStop(a *cluster.Allocation) time.Duration {
	if a.Job.StoragePlugin() {
		return a.StopTime()
	}
	return a.StopTimeOn(t.state.Node(a.NodeID))
}

// observed returns the observed times of a group, or nil. An allocation ends when its volumes are unmounted, and a
// storage plugin when it holds for none, so the observed stops of a group contain these times.
func (t times) observed(g cluster.GroupKey) *learned.Times {
	return statestore.LearnedTimes(t.state.State, g)
}

// complete reports whether all times that a move of the group needs were observed.
func (t times) complete(g cluster.GroupKey, kind cluster.JobType) bool {
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
func (t times) draw(h *learned.Histogram, r *rand.Rand, passed time.Duration, within limit) time.Duration {
	if t.typical {
		if median := within(h.Median()); median > passed {
			return median - passed
		}
		return passed / 4
	}
	for range mostDraws {
		if d := within(h.Draw(r)); d >= passed {
			return d - passed
		}
	}
	return passed / 4
}

// limit changes a drawn time by what is sure about it. A bucket is wide, and a time that is counted in the bucket
// of its limit is mostly the limit itself: checks pass at once, or the client kills what does not end.
type limit func(time.Duration) time.Duration

func free(d time.Duration) time.Duration { return d }

// atLeast takes a time in the bucket of the least time close above that.
func atLeast(least time.Duration) limit {
	begin, end := learned.Bucket(least)
	return func(d time.Duration) time.Duration {
		if d < begin || d >= end {
			return d
		}
		return least + near(d-begin, end-begin, end-least)
	}
}

// atMost takes a time in the bucket of the longest time close below that, and what the order and the report take.
func atMost(most time.Duration) limit {
	begin, end := learned.Bucket(most)
	most += most / 50
	return func(d time.Duration) time.Duration {
		if d < begin || d >= end {
			return d
		}
		return most - near(d-begin, end-begin, most-begin)
	}
}

// near is a distance within a width. Its part of the width is the cube of the part of the whole: it is mostly short.
func near(part, whole, width time.Duration) time.Duration {
	p := float64(part) / float64(whole)
	return time.Duration(p * p * p * float64(width))
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
