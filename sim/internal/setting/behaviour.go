package setting

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Default is the behaviour of an allocation without a client line: it starts after a second, is
// healthy after the MinHealthyTime of its group, runs for an hour if it is batch work, and stops
// after two seconds.
func Default() simclient.Behaviour {
	return simclient.Behaviour{Start: time.Second, Run: time.Hour, Stop: 2 * time.Second}
}

// Clients indexes the client lines of a scenario by job. Most jobs match few of many lines.
type Clients struct {
	// byJob holds the lines that may match each job with a line of its own. anyJob holds the lines
	// without a job. Both are in the order of the file.
	byJob  map[cluster.JobKey][]*scenario.Client
	anyJob []*scenario.Client
}

// NewClients indexes client lines. The caller must not change the lines later.
func NewClients(lines []scenario.Client) *Clients {
	cs := &Clients{byJob: make(map[cluster.JobKey][]*scenario.Client)}
	for i := range lines {
		c := &lines[i]
		if job := c.Match.Job; job != (cluster.JobKey{}) {
			cs.byJob[job] = append(slices.Clip(cs.forJob(job)), c)
			continue
		}
		cs.anyJob = append(cs.anyJob, c)
		for job, lines := range cs.byJob {
			cs.byJob[job] = append(lines, c)
		}
	}
	return cs
}

// forJob returns the lines that may match allocations of a job.
func (cs *Clients) forJob(job cluster.JobKey) []*scenario.Client {
	if lines, has := cs.byJob[job]; has {
		return lines
	}
	return cs.anyJob
}

// Behaviour returns the behaviour of an allocation. r draws from ranges and probabilities. If r is
// nil, a range gives its least time and a probability below 1 gives no.
func (cs *Clients) Behaviour(a *cluster.Allocation, r *rand.Rand) simclient.Behaviour {
	b := Default()
	for _, c := range cs.forJob(a.JobKey()) {
		if !c.Match.Matches(a) {
			continue
		}
		for _, field := range []struct {
			from *scenario.Range
			to   *time.Duration
		}{
			{c.Start, &b.Start}, {c.Copy, &b.Copy}, {c.Verdict, &b.Verdict}, {c.Run, &b.Run}, {c.Stop, &b.Stop},
			{c.Worsen, &b.Worsen}, {c.Recover, &b.Recover}, {c.Crash, &b.Crash},
		} {
			if field.from != nil {
				*field.to = Draw(r, *field.from)
			}
		}
		if c.Unhealthy != nil {
			b.Unhealthy = *c.Unhealthy >= 1 || r != nil && r.Float64() < *c.Unhealthy
		}
	}
	return b
}

// Draw draws a time from a range. It returns the least time if r is nil.
func Draw(r *rand.Rand, from scenario.Range) time.Duration {
	if r == nil || from.Max <= from.Min {
		return from.Min
	}
	return from.Min + time.Duration(r.Uint64N(uint64(from.Max-from.Min)+1))
}
