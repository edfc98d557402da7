package collected

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// maxViolations is the largest number of violations that a judge keeps.
const maxViolations = 100

// Judge collects the violations of one run. The zero value is ready to use. A Judge is not safe
// for concurrent use. It never changes the rows that it reads.
type Judge struct {
	invariant.Findings
	// changed is the time of the last entry.
	changed time.Time
	// still is the index of the last state that Still has judged.
	still uint64
}

// Applied checks an entry, if it deletes ended rows. Call it once for each entry, in the order of
// the log.
func (j *Judge) Applied(now time.Time, a shims.Applied) {
	j.changed = now
	m, isCollect := a.Message.(*shims.Collect)
	if !isCollect {
		return
	}
	e := &entry{judge: j, now: now, index: a.Index, before: a.Before, after: a.After, message: m}
	e.compare(a.Response)
	for _, alloc := range e.allocs {
		e.judgeAlloc(alloc)
	}
	for _, eval := range e.evals {
		e.judgeEval(eval)
	}
	for _, job := range e.jobs {
		e.judgeJob(job)
	}
	e.judgeGroups()
}

// Still checks that the state holds no ended row without a use. age is the age of collected rows,
// and the time between two searches. clock is the time on the leader's clock. The caller calls it
// when no fault has been active for longer than a search takes. It checks nothing if the state has
// changed lately, or contains times that the leader's clock has not reached.
func (j *Judge) Still(now, clock time.Time, age time.Duration, s *statestore.Snapshot) {
	const searches = 3 // one with a pause of the leader, one that deletes, and one that finds nothing
	if s.Index() == j.still || now.Sub(j.changed) <= searches*age+time.Minute || newest(s).After(clock.Add(-searches*age)) {
		return
	}
	j.still = s.Index()
	e := &entry{judge: j, now: now, index: s.Index(), before: s, after: s}
	for a := range s.Allocs() {
		if !opensOf(s, a.JobKey()) && useOfAlloc(s, a) == "" {
			e.report(Kept, a, "it ended, and it has no use")
		}
	}
	for eval := range s.Evals() {
		if useOfEval(s, eval) == "" {
			e.report(Kept, nil, "evaluation %s of job %s has no use", eval.ID, eval.JobKey())
		}
	}
	for job := range s.Jobs() {
		if useOfJob(s, job) == "" {
			e.report(Kept, nil, "job %s has no use", job.Key())
		}
	}
}

// newest returns the newest time from which an age counts.
func newest(s *statestore.Snapshot) (newest time.Time) {
	note := func(t time.Time) {
		if t.After(newest) {
			newest = t
		}
	}
	for a := range s.Allocs() {
		note(a.ModifyTime)
	}
	for e := range s.Evals() {
		note(e.ModifyTime)
	}
	for n := range s.Nodes() {
		note(n.StatusChangedAt)
	}
	return newest
}

// entry is one applied entry, with the rows that it deleted.
type entry struct {
	judge         *Judge
	now           time.Time
	index         uint64
	before, after *statestore.Snapshot
	message       *shims.Collect

	allocs []*cluster.Allocation
	evals  []*cluster.Evaluation
	jobs   []*cluster.Job
}

// judgeAlloc checks one deleted allocation.
func (e *entry) judgeAlloc(a *cluster.Allocation) {
	if e.isFinished(a.JobKey()) {
		return // it is deleted with its job, which is checked
	}
	if !a.ModifyTime.Before(e.message.Before.Allocs) {
		e.report(TooYoung, a, "it was written at %s", a.ModifyTime)
	}
	n := e.before.Node(a.NodeID)
	if a.ClientStatus == "lost" && n != nil && !n.StatusChangedAt.Before(e.message.Before.Allocs) {
		e.report(TooYoung, a, "it is lost, and the status of its node changed at %s", n.StatusChangedAt)
	}
	if use := useOfAlloc(e.before, a); use != "" {
		e.report(StillOfUse, a, "%s", use)
	}
	if use := e.useAfterRestart(a); use != "" {
		e.report(TooYoung, a, "%s", use)
	}
}

// isFinished reports whether the entry deleted a job that was not stopped, with all its rows.
func (e *entry) isFinished(k cluster.JobKey) bool {
	job := e.before.Job(k)
	return job != nil && !job.Stop && e.after.Job(k) == nil
}

// judgeEval checks one deleted evaluation.
func (e *entry) judgeEval(eval *cluster.Evaluation) {
	job := eval.JobKey()
	if e.after.Job(job) == nil && e.before.Job(job) != nil {
		return // it is deleted with its job, which is checked
	}
	if !eval.ModifyTime.Before(e.message.Before.Evals) {
		e.report(TooYoung, nil, "evaluation %s was written at %s", eval.ID, eval.ModifyTime)
	}
	switch blocked := e.before.Eval(eval.BlockedEval); {
	case isOpen(eval):
		e.report(StillOfUse, nil, "evaluation %s is open", eval.ID)
	case blocked != nil && isOpen(blocked):
		e.report(StillOfUse, nil, "evaluation %s has created %s, which is open", eval.ID, blocked.ID)
	}
	for a := range e.after.AllocsByJob(job) {
		if a.EvalID == eval.ID {
			e.report(StillOfUse, a, "it names evaluation %s, which is deleted", eval.ID)
		}
	}
	for range e.after.EvalsByJob(job) {
		return
	}
	if e.after.Job(job) != nil {
		e.report(StillOfUse, nil, "evaluation %s was the last of job %s", eval.ID, job)
	}
}

// judgeJob checks one deleted job.
func (e *entry) judgeJob(job *cluster.Job) {
	if use := useOfRunning(e.before, job); !job.Stop && use != "" {
		e.report(StillOfUse, nil, "job %s is not stopped, and %s", job.Key(), use)
	}
	for a := range e.before.AllocsByJob(job.Key()) {
		if !a.ModifyTime.Before(e.message.Before.Jobs) {
			e.report(TooYoung, a, "job %s is deleted, and this allocation was written at %s", job.Key(), a.ModifyTime)
		}
	}
	for a := range e.after.AllocsByJob(job.Key()) {
		e.report(StillOfUse, a, "job %s is deleted, and this allocation is left", job.Key())
	}
	for eval := range e.before.EvalsByJob(job.Key()) {
		switch {
		case isOpen(eval):
			e.report(StillOfUse, nil, "job %s has the open evaluation %s", job.Key(), eval.ID)
		case !eval.ModifyTime.Before(e.message.Before.Jobs):
			e.report(TooYoung, nil, "evaluation %s of job %s was written at %s", eval.ID, job.Key(), eval.ModifyTime)
		}
	}
}

// report records a violation. The allocation may be nil.
func (e *entry) report(c invariant.Check, a *cluster.Allocation, format string, args ...any) {
	v := invariant.Violation{At: e.now, Index: e.index}
	if a != nil {
		v.Node, v.Alloc, v.Group = a.NodeID, a.ID, a.GroupKey()
	}
	e.judge.Add(maxViolations, c, v, format, args...)
}
