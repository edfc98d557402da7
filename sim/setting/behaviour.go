package setting

import (
	"math/rand/v2"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/simclient"
)

// Default is how an allocation fares of which a scenario says nothing: it starts
// within a second, is judged healthy after its group's MinHealthyTime, runs for an
// hour if it is to end by itself, and stops within two seconds.
func Default() simclient.Behaviour {
	return simclient.Behaviour{Start: time.Second, Run: time.Hour, Stop: 2 * time.Second}
}

// Behaviour is how an allocation fares by what a scenario says of clients. What a
// range leaves open is drawn; without a generator it is the least, and what is
// likely is not.
func Behaviour(clients []scenario.Client, a *cluster.Allocation, r *rand.Rand) simclient.Behaviour {
	b := Default()
	for i := range clients { // not by value: there are many, and most are of other jobs
		c := &clients[i]
		if !c.Match.Matches(a) {
			continue
		}
		for _, field := range []struct {
			says *scenario.Range
			is   *time.Duration
		}{
			{c.Start, &b.Start}, {c.Copy, &b.Copy}, {c.Verdict, &b.Verdict}, {c.Run, &b.Run}, {c.Stop, &b.Stop},
		} {
			if field.says != nil {
				*field.is = Draw(r, *field.says)
			}
		}
		if c.Unhealthy != nil {
			b.Unhealthy = *c.Unhealthy >= 1 || r != nil && r.Float64() < *c.Unhealthy
		}
	}
	return b
}

// Draw draws a time from a range: the least without a generator.
func Draw(r *rand.Rand, from scenario.Range) time.Duration {
	if r == nil || from.Max <= from.Min {
		return from.Min
	}
	return from.Min + time.Duration(r.Uint64N(uint64(from.Max-from.Min)+1))
}
