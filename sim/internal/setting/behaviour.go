package setting

import (
	"math/rand/v2"
	"slices"
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

// Clients is what a scenario says of clients, by job: of most jobs little is said, and all
// that is said is much.
type Clients struct {
	// ofJob holds what may be about each job that is named, ofAny what is about none by
	// name; each in the order in which it was said.
	ofJob map[cluster.JobKey][]*scenario.Client
	ofAny []*scenario.Client
}

// NewClients sorts what a scenario says of clients. What is said is not written to any
// more.
func NewClients(said []scenario.Client) *Clients {
	cs := &Clients{ofJob: make(map[cluster.JobKey][]*scenario.Client)}
	for i := range said {
		c := &said[i]
		if job := c.Match.Job; job != (cluster.JobKey{}) {
			cs.ofJob[job] = append(slices.Clip(cs.of(job)), c)
			continue
		}
		cs.ofAny = append(cs.ofAny, c)
		for job, ofJob := range cs.ofJob {
			cs.ofJob[job] = append(ofJob, c)
		}
	}
	return cs
}

// of is what may be about the allocations of a job.
func (cs *Clients) of(job cluster.JobKey) []*scenario.Client {
	if ofJob, named := cs.ofJob[job]; named {
		return ofJob
	}
	return cs.ofAny
}

// Behaviour is how an allocation fares by what is said of clients. What a
// range leaves open is drawn; without a generator it is the least, and what is
// likely is not.
func (cs *Clients) Behaviour(a *cluster.Allocation, r *rand.Rand) simclient.Behaviour {
	b := Default()
	for _, c := range cs.of(a.JobKey()) {
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
