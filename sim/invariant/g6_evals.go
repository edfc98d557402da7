package invariant

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// G6 nothing lost, of evaluations: a change that concerns a job has the scheduler
// look at it, in the entry of the change. Otherwise a drain may
// wait for a replacement that is never placed. Which jobs an entry concerns is
// counted here from its rows and the state before it; where the entry's answer is
// asked, it only says which rows to look at. What is made beside marks is judged with
// them, evaluations in a scheduler's plan are not judged.

// call is the evaluations that an entry must make: one of each of its jobs.
type call struct {
	trigger cluster.EvalTrigger
	at      time.Time
	// nodes are those that the entry is about, or nil; each evaluation names one.
	nodes []cluster.NodeID
	// jobs are in order, each once.
	jobs []cluster.JobKey
}

// evalJudge judges the evaluations of one entry.
type evalJudge struct {
	*facts
	e       *entry
	call    call
	carried []*cluster.Evaluation
	// looked are the called jobs that have their evaluation.
	looked []cluster.JobKey
	// made counts the evaluations that the entry did not carry.
	made int
}

// judgeEvals judges the evaluations of an entry: those that it carries are made,
// and of each job that it calls for and carries none of, one, and no other.
func (j *Judge) judgeEvals(e *entry) {
	switch r := e.Response.(type) {
	case shims.Refused:
		if e.changed() {
			j.find(Unanswered, Violation{}, "refused, and it has changed something: %v", r.Err)
		}
		return
	case shims.MarksApplied, shims.PlanApplied:
		return
	case shims.DrainRequestApplied:
		if r.Repeated {
			return
		}
	}
	w := evalJudge{facts: j.facts, e: e, carried: carriedBy(e.Message)}
	w.call = w.callOf()
	j.counters.Called += len(w.call.jobs)
	w.checkCarried()
	for _, c := range e.evals {
		if c.before == nil && c.after != nil && !w.carries(c.after) {
			w.judge(c.after)
		}
	}
	for _, key := range w.call.jobs {
		if !slices.Contains(w.looked, key) {
			w.find(JobForgotten, aboutJob(key), "the entry concerns job %s, and no evaluation of it was made by %s", key, w.call.trigger)
		}
	}
	if named := len(evalsMade(e.Response)); named != len(w.carried)+w.made {
		w.find(Unanswered, Violation{}, "the answer names %d evaluations; %d were carried and %d made besides", named, len(w.carried), w.made)
	}
}

func aboutJob(key cluster.JobKey) Violation { return Violation{Group: cluster.GroupKey{Job: key}} }

// carriedBy are the evaluations that an entry carries, which are made whatever it
// concerns.
func carriedBy(m shims.Message) []*cluster.Evaluation {
	switch m := m.(type) {
	case *shims.NodeRegister:
		return m.Evals
	case *shims.NodeDeregister:
		return m.Evals
	case *shims.NodeUpdateStatus:
		return m.Evals
	case *shims.NodeUpdateEligibility:
		return m.Evals
	case *shims.NodeUpdateDrain:
		return m.Evals
	case *shims.JobRegister:
		return m.Evals
	case *shims.JobDeregister:
		return m.Evals
	case *shims.AllocClientUpdate:
		return m.Evals
	case *shims.EvalUpdate:
		return m.Evals
	}
	return nil
}

// carries reports whether the entry carries the evaluation, as it is.
func (w *evalJudge) carries(row *cluster.Evaluation) bool {
	return slices.ContainsFunc(w.carried, func(e *cluster.Evaluation) bool {
		return e.ID == row.ID && jobOf(e) == jobOf(row) && e.Status == row.Status && e.TriggeredBy == row.TriggeredBy
	})
}

// checkCarried holds what was carried to what was made of it. Only what waits for
// the scheduler has a job looked at.
func (w *evalJudge) checkCarried() {
	for _, e := range w.carried {
		if row := w.e.After.Eval(e.ID); row == nil || row.ModifyIndex != w.e.Index || !w.carries(row) {
			w.find(JobForgotten, aboutJob(jobOf(e)), "the entry carries evaluation %s of job %s, and it was not made", e.ID, jobOf(e))
		}
		if e.Status == "pending" {
			w.looked = append(w.looked, jobOf(e))
		}
	}
}

// judge judges an evaluation that was made and that the entry did not carry.
func (w *evalJudge) judge(row *cluster.Evaluation) {
	w.made++
	w.counters.Evaluated++
	key := jobOf(row)
	_, called := slices.BinarySearchFunc(w.call.jobs, key, cluster.JobKey.Compare)
	switch {
	case !called:
		w.find(EvaluatedForNothing, aboutJob(key), "an evaluation was made of job %s, which the entry does not concern", key)
		return
	case slices.Contains(w.looked, key):
		w.find(EvaluatedForNothing, aboutJob(key), "another evaluation was made of job %s in one entry", key)
		return
	}
	w.looked = append(w.looked, key)
	if why := w.untrue(row); why != "" {
		w.find(JobForgotten, aboutJob(key), "the evaluation that was made of job %s %s: %+v", key, why, *row)
	}
}

// untrue says in which way an evaluation is not the one that was called for, or
// returns the empty string.
func (w *evalJudge) untrue(row *cluster.Evaluation) string {
	job := w.e.After.Job(jobOf(row))
	switch {
	case row.Status != "pending":
		return "does not wait for the scheduler"
	case row.TriggeredBy != w.call.trigger:
		return "has another cause"
	case len(w.call.nodes) == 0 && row.NodeID != "", len(w.call.nodes) > 0 && !slices.Contains(w.call.nodes, row.NodeID):
		return "names another node"
	case !row.CreateTime.Equal(w.call.at) || !row.ModifyTime.Equal(w.call.at):
		return "dates from another time"
	case job != nil && (row.Type != job.Type || row.Priority != cmp.Or(job.Priority, cluster.DefaultJobPriority)):
		return "is of another type or priority than the job"
	}
	return ""
}

// callOf returns the evaluations that an entry must make, by the state before it.
func (w *evalJudge) callOf() call {
	switch m := w.e.Message.(type) {
	case *shims.NodeRegister:
		return w.nodeCall(m.At, m.Node.ID)
	case *shims.NodeDeregister:
		return w.nodeCall(m.At, m.Nodes...)
	case *shims.NodeUpdateStatus:
		if slices.ContainsFunc(w.e.nodes, changedStatus) {
			return w.nodeCall(m.At, m.Node)
		}
	case *shims.NodeUpdateEligibility:
		if slices.ContainsFunc(w.e.nodes, returned) {
			return w.nodeCall(m.At, m.Node)
		}
	case *shims.NodeUpdateDrain:
		if slices.ContainsFunc(w.e.nodes, returned) {
			return w.nodeCall(m.At, m.Node)
		}
	case *shims.JobDeregister:
		if !m.Purge { // the scheduler ignores evaluations of a job that is gone
			return call{trigger: "job-deregister", jobs: []cluster.JobKey{m.Job}}
		}
	case *shims.AllocClientUpdate:
		return w.reportCall(m)
	}
	return call{}
}

// changedStatus reports whether a node has taken another status.
func changedStatus(c change[cluster.Node]) bool {
	return c.before != nil && c.after != nil && c.before.Status != c.after.Status
}

// returned reports whether the scheduler has got a node back.
func returned(c change[cluster.Node]) bool {
	return c.before != nil && c.after != nil &&
		c.after.SchedulingEligibility == "eligible" && c.before.SchedulingEligibility != "eligible"
}

// nodeCall is what a change of nodes calls for: the jobs with something on them that
// may run, and those that run on every node which can have them.
func (w *evalJudge) nodeCall(at time.Time, ids ...cluster.NodeID) call {
	c := call{trigger: "node-update", at: at, nodes: ids}
	for _, id := range ids {
		if n := w.tables.nodes[id]; n != nil {
			for _, a := range n.live {
				c.jobs = append(c.jobs, a.group.key.Job)
			}
		}
		n := w.e.After.Node(id)
		for _, job := range w.tables.everywhere {
			if n != nil && comesTo(job.row, n) {
				c.jobs = append(c.jobs, job.key)
			}
		}
	}
	return c.sorted()
}

// comesTo reports whether a job that runs on every node may run on this one. System
// jobs wait for the node, the others come when it is ready.
func comesTo(j *cluster.Job, n *cluster.Node) bool {
	ready := n.Status == "ready" && n.SchedulingEligibility == "eligible" && n.Drain == nil
	return (j.Type == "system" || ready) &&
		cmp.Or(j.NodePool, "default") == cmp.Or(n.NodePool, "default") &&
		(len(j.Datacenters) == 0 || slices.Contains(j.Datacenters, n.Datacenter))
}

// reportCall is what reports call for: the jobs of which something has ended that was
// to run on. It is as old as the newest of all reports.
func (w *evalJudge) reportCall(m *shims.AllocClientUpdate) call {
	c := call{trigger: "alloc-failure"}
	for _, r := range m.Reports {
		c.at = later(c.at, r.At)
	}
	for _, a := range w.e.allocs {
		if a.before != nil && a.after != nil && endedEarly(a.before, a.after) {
			c.jobs = append(c.jobs, groupOf(a.after).Job)
		}
	}
	return c.sorted()
}

// endedEarly reports whether an allocation has ended that was to run on. Work that is
// done well may end; on every node it is tried once.
func endedEarly(before, after *cluster.Allocation) bool {
	if opinion.Stopping(before) || !opinion.Live(before) {
		return false
	}
	switch kind := opinion.TypeOf(after); after.ClientStatus {
	case "failed":
		return kind != "sysbatch"
	case "complete":
		return kind != "batch" && kind != "sysbatch"
	}
	return false
}

// sorted has the jobs in order, each once.
func (c call) sorted() call {
	slices.SortFunc(c.jobs, cluster.JobKey.Compare)
	c.jobs = slices.Compact(c.jobs)
	return c
}
