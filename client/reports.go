package client

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Limits of one batch. The servers refuse a whole batch if it has more than 1 MiB.
const (
	maxReports = 250
	// maxReportBytes is the largest size of the reports of a batch as JSON.
	maxReportBytes = 768 << 10
)

// reports sends the state of the allocations to the servers, one batch at a time, until the servers
// have it.
type reports struct {
	core     *Core
	inFlight bool
	failures int
	retryAt  time.Duration
}

// reportDelay is how long a change waits for other changes, so that they go in the same report.
// Each report is an entry in the raft log of the servers. A new status, a health verdict and the
// end of a task do not wait.
const reportDelay = 500 * time.Millisecond

// reportState states which changes of one allocation the servers have.
type reportState struct {
	alloc *allocRunner
	// version counts the changes. sent is the newest change in a report, taken is the newest change
	// that the servers have, and urgent is the newest change that does not wait for others.
	version, sent, taken, urgent uint64
	// verdict is the change of the last health verdict.
	verdict uint64
	// due is when the first change after sent must be reported.
	due time.Duration
	// endTaken: the servers have the end of the allocation, as far as their answers show.
	endTaken bool
	// restored: the earlier core may have reported the newest state. The first answer of the
	// servers shows whether it did.
	restored bool
	// endOnly: for the servers the allocation has ended or does not exist, so the client reports
	// only its end. The servers may still accept the end.
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
		report, bytes := bounded(a.newReport())
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

// due reports whether a report must be sent now. The batch then contains all reports that are
// ready.
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
		s.alloc.restarts.taken()
		s.alloc.visits.mark() // data that is lost can be given up
	}
}

// note counts a change that must be reported within [reportDelay].
func (s *reportState) note() {
	if s.version == s.sent {
		s.due = s.alloc.core.now.Boot + reportDelay
	}
	s.version++
}

// noteUrgent counts a change that must be reported at once.
func (s *reportState) noteUrgent() {
	s.note()
	s.urgent = s.version
}

// repeat reports again what the rows of an answer with all allocations lack.
func repeat(c *Core, w Changes) {
	rows := slices.Clone(w.Allocs)
	for _, u := range w.Unreadable {
		rows = append(rows, u.Alloc)
	}
	for _, row := range rows {
		if a := c.alloc(row.ID); a != nil && !a.orphan() {
			a.out.compare(row)
			a.report.repeat(row)
		}
	}
}

// repeat reports the state again if the row of the servers lacks a part of it, although it was sent: the servers
// may have lost the report. What was not sent is reported in any case.
func (s *reportState) repeat(row *cluster.Allocation) {
	if s.version == max(s.sent, s.taken) && !inRow(row, s.alloc.newReport()) {
		s.noteUrgent()
	}
}

// reportable reports whether the servers need and accept the newest state. The client tries to save
// what it reports first: the next client must not have less than the servers do. Otherwise it would
// destroy a task that the servers have as running, without its signal, because its record states that
// the start was never answered.
func (a *allocRunner) reportable() bool {
	s := &a.report
	if s.version == s.taken || a.orphan() || a.saves.tried != a.saves.version {
		return false
	}
	return a.rec.Ended || !s.endOnly && (!s.restored || a.core.contacted)
}

// inRow reports whether the row of the servers contains everything in the report.
func inRow(row *cluster.Allocation, r cluster.AllocReport) bool {
	return r.ClientStatus == row.ClientStatus && r.ClientDescription == row.ClientDescription && r.TaskStates.Equal(row.TaskStates) &&
		r.VolumeHolds.Bounded().Equal(row.VolumeHolds) && sameMove(r.DataIn, row.DataIn) && sameMove(r.DataOut, row.DataOut) && (r.Healthy == nil || agrees(row, *r.Healthy))
}

// sameMove reports whether the row of the servers contains a reported move of data.
func sameMove(reported, row *cluster.DataMove) bool {
	return reported == nil || reported.StateOf() == row.StateOf() && reported.Bytes == row.Bytes
}

// agrees reports whether the row of the servers contains the verdict.
func agrees(row *cluster.Allocation, healthy bool) bool {
	return row.HasVerdict() && row.JudgedHealthy() == healthy
}

// newReport returns the report of the allocation. It cuts the strings as the servers do.
func (a *allocRunner) newReport() cluster.AllocReport {
	states := &cluster.TaskStates{Tasks: make([]cluster.TaskState, 0, len(a.tasks))}
	for _, t := range a.tasks {
		state := t.rec.State
		state.Waiting = t.waits.present.report()
		states.Tasks = append(states.Tasks, state)
	}
	return cluster.AllocReport{
		Alloc: a.id(), Node: a.core.options.Node, ClientStatus: a.rec.ClientStatus, ClientDescription: cluster.CutText(a.description()),
		TaskStates: states.Bounded(a.group), VolumeHolds: a.mounts.reported, DataIn: a.in.report(), DataOut: a.out.report(),
		Healthy: a.rec.Healthy, HealthyAt: a.rec.HealthyAt, At: a.core.now.Wall,
	}
}

// bounded returns a report that fits in a batch, and its size. It omits the states of the tasks if they
// are too large, or if JSON cannot contain them, such as a time after the year 9999. A report that JSON
// still cannot contain is as large as a batch, so that it does not prevent other reports.
func bounded(r cluster.AllocReport) (cluster.AllocReport, int) {
	size := sizeOf(r)
	if size > maxReportBytes {
		r.TaskStates = nil
		size = min(sizeOf(r), maxReportBytes)
	}
	return r, size
}

// sizeOf returns the size of a report as JSON, with the comma after it. A report that JSON cannot
// contain is larger than a batch.
func sizeOf(r cluster.AllocReport) int {
	text, err := json.Marshal(wire.NewAllocReport(r))
	if err != nil {
		return maxReportBytes + 1
	}
	return len(text) + 1
}
