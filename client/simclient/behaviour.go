package simclient

import (
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/verdict"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Never is longer than anything lasts.
const Never time.Duration = math.MaxInt64

// Behaviour is what one allocation does on its node. Each duration may be [Never]; one below
// zero counts as zero.
type Behaviour struct {
	// Start is the time until the allocation runs: from the client's first read of it, from the
	// end of the predecessor that it waits for, or from the end of the copy if it inherits data.
	// Zero is at once.
	Start time.Duration
	// Copy is how long the copy of inherited data takes, from the end of the predecessor.
	// Zero is at once.
	Copy time.Duration
	// Verdict is the time from running to the verdict on its health. Zero is the group's
	// MinHealthyTime, or its HealthyDeadline if Unhealthy is set. Batch and sysbatch
	// allocations get no verdict, nor does one that stops.
	Verdict   time.Duration
	Unhealthy bool
	// Worsen is the time from a good verdict to a bad one, Recover the time from a bad one to a
	// good one. A verdict that an earlier fleet gave counts from the first read. Each happens
	// at most once, and not to an allocation that stops. Zero is never.
	Worsen  time.Duration
	Recover time.Duration
	// Crash is how long the main task runs until it exits with 1, again and again. It starts again after
	// the delay of its restart policy, without a limit. Then the verdicts follow the rule of package
	// verdict, and the four fields above have no effect. Zero is never.
	Crash time.Duration
	// Run is how long a batch or sysbatch allocation runs until it ends by itself. Zero is
	// no time.
	Run time.Duration
	// Stop is the time from the order to stop until the allocation has ended. Zero is at
	// once. A client kills an allocation after [cluster.Allocation.StopTime], so a longer
	// Stop is cut to that; with Never it cannot be killed.
	Stop time.Duration
}

// Draw draws an ordinary behaviour: the allocation starts within MinStart to MaxStart, is
// healthy after its group's MinHealthyTime, runs for RunTime if it ends by itself, and takes at
// least half of its stop time and its whole shutdown delays to stop. A custom Behave may call it and
// change the result.
func (o Options) Draw(a *cluster.Allocation, rng *rand.Rand) Behaviour {
	o = o.withDefaults()
	return Behaviour{
		Start: o.MinStart + upTo(rng, o.MaxStart-o.MinStart),
		Copy:  o.CopyTime,
		Run:   o.RunTime,
		Stop:  drawStop(a, rng),
	}
}

// drawStop draws the time that an allocation takes to stop. Clients wait for shutdown delays in
// full, and many tasks end only when they are killed.
func drawStop(a *cluster.Allocation, rng *rand.Rand) time.Duration {
	longest := a.StopTime()
	least := longest / 2
	if g := a.Job.Group(a.TaskGroup); g != nil {
		least = max(least, min(g.ShutdownDelay, longest))
	}
	return least + upTo(rng, longest-least)
}

// upTo draws from [0, limit].
func upTo(rng *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(rng.Uint64N(uint64(max(0, limit)) + 1))
}

// stream is the allocation's own generator. Draws for one allocation do not change those for
// another, and a new fleet draws the same again.
func (o Options) stream(id cluster.AllocID) *rand.Rand {
	h := fnv.New64a()
	_, _ = io.WriteString(h, string(id)) // a hash takes all
	return rand.New(rand.NewPCG(o.Seed, h.Sum64()))
}

// verdict is the time from running to the verdict.
func (o Options) verdict(a *cluster.Allocation, b Behaviour) time.Duration {
	switch {
	case a.JobType().ToCompletion():
		return Never
	case b.Verdict != 0:
		return b.Verdict
	}
	terms := o.terms(a)
	if b.Unhealthy {
		return terms.Deadline
	}
	return terms.Least
}

// terms are the times that decide about the health of an allocation.
func (o Options) terms(a *cluster.Allocation) verdict.Terms {
	g := a.Job.Group(a.TaskGroup)
	terms := verdict.TermsOf(g)
	if g == nil || g.Migrate == nil {
		terms.Least = o.MinHealthyTime
	}
	return terms
}

// run is the time from running until the allocation ends by itself.
func (b Behaviour) run(a *cluster.Allocation) time.Duration {
	if a.JobType().ToCompletion() {
		return b.Run
	}
	return Never
}

// stop is the time from the order to stop until the allocation has ended.
func (b Behaviour) stop(a *cluster.Allocation) time.Duration {
	if b.Stop == Never {
		return Never
	}
	return min(b.Stop, a.StopTime())
}
