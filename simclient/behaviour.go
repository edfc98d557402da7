package simclient

import (
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Never is longer than anything lasts.
const Never time.Duration = math.MaxInt64

// Behaviour is how one allocation fares on its node. Any of its times may be
// [Never]; one below zero counts as zero.
type Behaviour struct {
	// Start is from its client's first sight of it to its running; zero is at
	// once. If it inherits data it is from the end of the copy.
	Start time.Duration
	// Copy is how long it takes to copy the data it inherits, once its predecessor
	// has ended; zero is at once.
	Copy time.Duration
	// Verdict is from its running to the verdict on its health. Zero is what its
	// group says: MinHealthyTime, or HealthyDeadline if it is Unhealthy. Batch and
	// sysbatch are never judged, nor is what stops.
	Verdict   time.Duration
	Unhealthy bool
	// Run is from its running to its end by itself, if it is batch or sysbatch;
	// zero is at once.
	Run time.Duration
	// Stop is from its being told to stop to its end; zero is at once. A client
	// kills what has not stopped within [cluster.Allocation.StopTime], so it is
	// never longer than that, unless it is Never: then not even that helps.
	Stop time.Duration
}

// Draw is how an allocation fares ordinarily: it starts within MinStart to
// MaxStart, is healthy after its group's MinHealthyTime, runs for RunTime if it is
// to end by itself, and stops within its stop time. A Behave of one's own may
// begin with it and change what it likes.
func (o Options) Draw(a *cluster.Allocation, rng *rand.Rand) Behaviour {
	o = o.withDefaults()
	return Behaviour{
		Start: o.MinStart + upTo(rng, o.MaxStart-o.MinStart),
		Copy:  o.CopyTime,
		Run:   o.RunTime,
		Stop:  upTo(rng, a.StopTime()),
	}
}

// upTo draws from [0, limit].
func upTo(rng *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(rng.Uint64N(uint64(max(0, limit)) + 1))
}

// stream is the allocation's own generator: what is drawn for one shifts no other,
// and a new fleet draws the same again.
func (o Options) stream(id cluster.AllocID) *rand.Rand {
	h := fnv.New64a()
	_, _ = io.WriteString(h, string(id)) // a hash takes all
	return rand.New(rand.NewPCG(o.Seed, h.Sum64()))
}

// verdict is from the allocation's running to its verdict.
func (o Options) verdict(a *cluster.Allocation, b Behaviour) time.Duration {
	switch {
	case a.JobType().ToCompletion():
		return Never
	case b.Verdict != 0:
		return b.Verdict
	}
	healthy, deadline := o.MinHealthyTime, o.HealthyDeadline
	if g := a.Job.Group(a.TaskGroup); g != nil && g.Migrate != nil {
		healthy, deadline = g.Migrate.MinHealthyTime, g.Migrate.HealthyDeadline
	}
	if b.Unhealthy {
		return deadline
	}
	return healthy
}

// run is from the allocation's running to its end by itself.
func (b Behaviour) run(a *cluster.Allocation) time.Duration {
	if a.JobType().ToCompletion() {
		return b.Run
	}
	return Never
}

// stop is from the allocation's being told to stop to its end.
func (b Behaviour) stop(a *cluster.Allocation) time.Duration {
	if b.Stop == Never {
		return Never
	}
	return min(b.Stop, a.StopTime())
}
