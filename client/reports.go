package client

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Bounds on one batch. The servers refuse a batch of more than 1 MiB as a whole.
const (
	maxReports = 250
	// maxReportBytes bounds the bytes that the reports of a batch need as JSON.
	maxReportBytes = 768 << 10
)

// What reports, tasks, events, details and volumes need as JSON beside their texts, at most.
const (
	jsonOfReport = 256
	jsonOfTask   = 384
	jsonOfEvent  = 128
	jsonOfDetail = 8
	jsonOfHold   = 160
)

// reports takes the state of the allocations to the servers, in one batch at a time, until the
// servers have it.
type reports struct {
	core     *Core
	inFlight bool
	failures int
	retryAt  time.Duration
}

// reportDelay is how long a change waits for others that go in the same report. Each report is an entry
// in the log of the servers. A new status, a verdict and the end of a task do not wait.
const reportDelay = 500 * time.Millisecond

// reportState is what the servers know of one allocation.
type reportState struct {
	core *Core
	// version counts the changes. sent is the newest in a report, and taken the newest that the servers
	// have. urgent is the newest that does not wait for others.
	version, sent, taken, urgent uint64
	// due is when the first change after sent has waited long enough.
	due time.Duration
	// endTaken: the servers know the end of the allocation.
	endTaken bool
	// restored: the earlier core may have reported the newest state. The first answer of the servers shows it.
	restored bool
	// endOnly: the servers have said that the allocation has ended, or that they do not know it. They may
	// still take its true end.
	endOnly bool
}

func (r *reports) step() {
	if r.inFlight || !r.core.reached(r.retryAt) {
		return
	}
	var batch []cluster.AllocReport
	var sent []sentReport
	size := 0
	if !r.due() {
		return
	}
	for _, a := range r.core.allocs {
		if !a.reportable() {
			continue
		}
		report, bytes := a.newReport()
		if size += bytes; len(batch) == maxReports || size > maxReportBytes {
			break
		}
		a.report.sent = a.report.version
		batch = append(batch, report)
		sent = append(sent, sentReport{alloc: a, version: a.report.version, ended: a.rec.Ended})
	}
	r.inFlight = true
	r.core.options.Shell.Report(batch, reply(r.core, func(taken bool) { r.answer(sent, taken) }))
}

// due reports whether a report must go now. The others that are ready then go with it.
func (r *reports) due() (due bool) {
	for _, a := range r.core.allocs {
		if a.reportable() {
			s := &a.report
			due = s.urgent > s.taken || s.sent > s.taken || r.core.reached(s.due) || due
		}
	}
	return due
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

// note notes a change that the servers must learn within [reportDelay].
func (s *reportState) note() {
	if s.version == s.sent {
		s.due = s.core.now.Boot + reportDelay
	}
	s.version++
	s.core.changed = true
}

// noteUrgent notes a change that the servers must learn at once.
func (s *reportState) noteUrgent() {
	s.note()
	s.urgent = s.version
}

// reportable reports whether the servers do not know the newest state and would take it. The end of an
// allocation is reported after the client has tried to save it: after a crash it is then still known.
func (a *allocRunner) reportable() bool {
	s := &a.report
	switch {
	case s.version == s.taken || a.orphan():
		return false
	case a.rec.Ended:
		return a.saves.tried == a.saves.version
	}
	return !s.endOnly && (!s.restored || a.core.contacted)
}

// knows reports whether the servers have all that a report says.
func knows(row *cluster.Allocation, r cluster.AllocReport) bool {
	return r.ClientStatus == row.ClientStatus && r.ClientDescription == row.ClientDescription && r.TaskStates.Equal(row.TaskStates) &&
		r.VolumeHolds.Bounded().Equal(row.VolumeHolds) && (r.Healthy == nil || agrees(row, *r.Healthy))
}

// agrees reports whether the servers know the verdict.
func agrees(row *cluster.Allocation, healthy bool) bool {
	return row.HasVerdict() && row.JudgedHealthy() == healthy
}

// newReport returns the report of the allocation and the bytes that it needs as JSON. It has what the
// servers keep of the texts. One report fits in a batch: with so many tasks that it does not, it
// leaves the states of the tasks out.
func (a *allocRunner) newReport() (cluster.AllocReport, int) {
	states := &cluster.TaskStates{Tasks: make([]cluster.TaskState, 0, len(a.tasks))}
	for _, t := range a.tasks {
		state := t.rec.State
		state.Waiting = t.wait.report()
		states.Tasks = append(states.Tasks, state)
	}
	r := cluster.AllocReport{
		Alloc: a.id(), Node: a.core.options.Node, ClientStatus: a.rec.ClientStatus, ClientDescription: cluster.CutText(a.description()),
		TaskStates: states.Bounded(a.group), VolumeHolds: a.mounts.reported, Healthy: a.rec.Healthy, HealthyAt: a.rec.HealthyAt, At: a.core.now.Wall,
	}
	size := jsonOfReport + jsonOf(string(r.Alloc)) + jsonOf(r.ClientDescription) + jsonOfHolds(r.VolumeHolds)
	tasks := jsonOfTasks(r.TaskStates)
	if size+tasks > maxReportBytes {
		r.TaskStates, tasks = nil, 0
	}
	return r, size + tasks
}

func jsonOfTasks(states *cluster.TaskStates) (size int) {
	for _, t := range states.Tasks {
		size += jsonOfTask + jsonOf(t.Name)
		if t.Waiting != nil {
			size += jsonOf(string(t.Waiting.For)) + jsonOf(t.Waiting.Detail)
		}
		for _, e := range t.Events {
			size += jsonOfEvent + jsonOf(e.Type) + jsonOf(e.Message)
			for key, value := range e.Details {
				size += jsonOfDetail + jsonOf(key) + jsonOf(value)
			}
		}
	}
	return size
}

func jsonOfHolds(holds *cluster.VolumeHolds) (size int) {
	if holds == nil {
		return 0
	}
	for _, h := range holds.Volumes {
		size += jsonOfHold + jsonOf(string(h.Namespace)) + jsonOf(string(h.Volume)) + jsonOf(string(h.Alloc)) + jsonOf(h.Path) + jsonOf(h.Reason)
	}
	return size
}

// jsonOf is how many bytes the text needs inside a JSON string, at most.
func jsonOf(text string) (size int) {
	for _, b := range []byte(text) {
		switch {
		case b < ' ', b == '<', b == '>', b == '&':
			size += 6 // such as \u003c
		case b == '"', b == '\\', b >= 0x7f: // U+2028 has three bytes and needs six
			size += 2
		default:
			size++
		}
	}
	return size
}
