package client

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// maxReports bounds the reports of one batch.
const maxReports = 250

// reports takes the state of the allocations to the servers, in one batch at a time, until the
// servers have it.
type reports struct {
	core     *Core
	inFlight bool
	failures int
	retryAt  time.Duration
}

// reportState is what the servers know of one allocation.
type reportState struct {
	// version counts the changes, and taken is the newest that the servers have.
	version, taken uint64
	// endTaken: the servers know the end of the allocation.
	endTaken bool
}

func (r *reports) step() {
	if r.inFlight || !r.core.reached(r.retryAt) {
		return
	}
	var batch []cluster.AllocReport
	var sent []sentReport
	for _, a := range r.core.allocs {
		if len(batch) < maxReports && a.reportable() {
			batch = append(batch, a.newReport())
			sent = append(sent, sentReport{alloc: a, version: a.report.version, ended: a.rec.Ended})
		}
	}
	if len(batch) == 0 {
		return
	}
	r.inFlight = true
	r.core.options.Shell.Report(batch, reply(r.core, func(taken bool) { r.answer(sent, taken) }))
}

// sentReport is a report in flight.
type sentReport struct {
	alloc   *allocRunner
	version uint64
	ended   bool
}

func (r *reports) answer(sent []sentReport, taken bool) {
	r.inFlight = false
	if !taken {
		r.failures++
		r.retryAt = r.core.now.Boot + backoff(r.failures, r.core.options.MinRetry, r.core.options.MaxRetry)
		return
	}
	r.failures, r.retryAt = 0, 0
	for _, s := range sent {
		s.alloc.report.taken = max(s.alloc.report.taken, s.version)
		s.alloc.report.endTaken = s.alloc.report.endTaken || s.ended
	}
	r.core.changed = true
}

// reportable reports whether the servers do not know the newest state. The end of an allocation is
// reported after the client has tried to save it: after a crash it is then still known.
func (a *allocRunner) reportable() bool {
	return a.report.version != a.report.taken && !a.orphan() && (!a.rec.Ended || a.saves.tried == a.saves.version)
}

func (a *allocRunner) newReport() cluster.AllocReport {
	states := &cluster.TaskStates{}
	for _, t := range a.tasks {
		state := t.rec.State
		state.Waiting = t.wait.report()
		state.Events = slices.Clone(state.Events)
		states.Tasks = append(states.Tasks, state)
	}
	slices.SortFunc(states.Tasks, func(a, b cluster.TaskState) int { return strings.Compare(a.Name, b.Name) })
	return cluster.AllocReport{
		Alloc: a.id(), Node: a.core.options.Node, ClientStatus: a.rec.ClientStatus, ClientDescription: a.description(),
		TaskStates: states, Healthy: a.rec.Healthy, HealthyAt: a.rec.HealthyAt, At: a.core.now.Wall,
	}
}
