package foretell

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// spread is a log-normal distribution of times.
type spread struct {
	median time.Duration
	sigma  float64
}

// draw returns a time. The zero spread has only zero.
func (s spread) draw(r *rand.Rand) time.Duration {
	return time.Duration(float64(s.median) * math.Exp(s.sigma*r.NormFloat64()))
}

// drawSpread draws a distribution with a median of any order of magnitude within bounds.
func drawSpread(r *rand.Rand, least, most time.Duration) spread {
	return spread{
		median: time.Duration(float64(least) * math.Pow(float64(most)/float64(least), r.Float64())),
		sigma:  0.05 + 0.65*r.Float64(),
	}
}

// truth is how long the allocations of a group take. The servers see it only in what the clients report.
type truth struct {
	start spread
	// passes is the time from running until all checks pass. The verdict follows after the least healthy time.
	passes spread
	// stop is cut at the stop time of the group: clients kill what is left.
	stop spread
}

// drawTruth draws the times of a group. In some groups all checks pass at once, and some groups end only when they
// are killed.
func drawTruth(r *rand.Rand) truth {
	t := truth{
		start: drawSpread(r, time.Second/2, 30*time.Second),
		stop:  drawSpread(r, time.Second/5, 25*time.Second),
	}
	if r.IntN(2) == 0 {
		t.passes = drawSpread(r, time.Second/5, 15*time.Second)
	}
	if r.IntN(6) == 0 {
		t.stop = spread{median: time.Hour}
	}
	return t
}

// clients returns the behaviour of the clients of a world with a seed. They take slower times as long as they should.
func (d *draft) clients(seed uint64, slower float64) func(*cluster.Allocation) world.Behaviour {
	return func(a *cluster.Allocation) world.Behaviour {
		r, t := world.Stream(seed, "client/"+string(a.ID)), d.truths[a.GroupKey()]
		times := func(s spread) time.Duration { return time.Duration(slower * float64(s.draw(r))) }
		b := world.Behaviour{Start: times(t.start), Run: world.Never, Stop: times(t.stop)}
		if g := a.Job.Group(a.TaskGroup); g.Migrate != nil {
			b.Verdict = times(t.passes) + time.Duration(slower*float64(g.Migrate.MinHealthyTime))
		}
		return b
	}
}
