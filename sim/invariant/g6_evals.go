package invariant

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// G6 nothing lost, for evaluations: an entry that concerns a job makes an evaluation of that
// job. Otherwise a drain may wait for a replacement that the scheduler never places. The judge
// finds the concerned jobs from the rows of the entry and from the state before it. It takes
// only the ids of the new evaluations from the answer. [itemJudge.judgeMarks] judges the evaluations
// of an entry of marks. The evaluations of a scheduler's plan are not judged.

// requirement describes the evaluations that an entry must make: one for each job.
type requirement struct {
	trigger cluster.EvalTrigger
	at      time.Time
	// nodes are the nodes of the entry, or nil. Each evaluation names one of them.
	nodes []cluster.NodeID
	// jobs are sorted and unique.
	jobs []cluster.JobKey
}

// evalJudge judges the evaluations of one entry.
type evalJudge struct {
	*facts
	e        *entry
	required requirement
	carried  []*cluster.Evaluation
	// evaluated are the jobs with an evaluation in the entry.
	evaluated []cluster.JobKey
	// created counts the evaluations that the FSM created itself, because the entry did not carry
	// them.
	created int
}

// judgeEvals judges the evaluations of an entry. The FSM must write each carried evaluation.
// For each other required job it must make one evaluation, and no further one.
func (j *Judge) judgeEvals(e *entry) {
	switch r := e.Response.(type) {
	case shims.Refused:
		if j.changed(e) {
			j.find(WrongAnswer, Violation{}, "the FSM refused the entry, but changed rows: %v", r.Err)
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
	w.required = w.requirementOf()
	w.checkCarried()
	for _, c := range e.evals {
		if c.before == nil && c.after != nil && !w.carries(c.after) {
			w.judge(c.after)
		}
	}
	for _, key := range w.required.jobs {
		if !slices.Contains(w.evaluated, key) {
			w.find(JobForgotten, ofJob(key), "the entry concerns job %s, but created no evaluation %s of it", key, w.required.trigger)
		}
	}
	if named := len(createdEvals(e.Response)); named != len(w.carried)+w.created {
		w.find(WrongAnswer, Violation{}, "the answer names %d evaluations, but the entry carried %d and the FSM created %d more", named, len(w.carried), w.created)
	}
}

func ofJob(key cluster.JobKey) Violation { return Violation{Group: cluster.GroupKey{Job: key}} }

// carriedBy returns the evaluations that an entry carries. The FSM writes them in any case.
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

// carries reports whether the entry carries the evaluation with the same content.
func (w *evalJudge) carries(row *cluster.Evaluation) bool {
	return slices.ContainsFunc(w.carried, func(e *cluster.Evaluation) bool {
		return e.ID == row.ID && jobOf(e) == jobOf(row) && e.Status == row.Status && e.TriggeredBy == row.TriggeredBy
	})
}

// checkCarried finds carried evaluations that the FSM did not write. Only a pending evaluation
// makes the scheduler plan its job.
func (w *evalJudge) checkCarried() {
	for _, e := range w.carried {
		if row := w.e.After.Eval(e.ID); row == nil || row.ModifyIndex != w.e.Index || !w.carries(row) {
			w.find(JobForgotten, ofJob(jobOf(e)), "the entry carries evaluation %s of job %s, but the FSM did not write it", e.ID, jobOf(e))
		}
		if e.Status == "pending" {
			w.evaluated = append(w.evaluated, jobOf(e))
		}
	}
}

// judge judges an evaluation that the entry did not carry.
func (w *evalJudge) judge(row *cluster.Evaluation) {
	w.created++
	key := jobOf(row)
	_, required := slices.BinarySearchFunc(w.required.jobs, key, cluster.JobKey.Compare)
	switch {
	case !required:
		w.find(NeedlessEvaluation, ofJob(key), "the FSM created an evaluation of job %s, but the entry does not concern that job", key)
		return
	case slices.Contains(w.evaluated, key):
		w.find(NeedlessEvaluation, ofJob(key), "the FSM created a second evaluation of job %s in one entry", key)
		return
	}
	w.evaluated = append(w.evaluated, key)
	if why := w.mistake(row); why != "" {
		w.find(JobForgotten, ofJob(key), "the evaluation of job %s %s: %+v", key, why, *row)
	}
}

// mistake describes how an evaluation differs from the required one. It is empty if they are equal.
func (w *evalJudge) mistake(row *cluster.Evaluation) string {
	job := w.e.After.Job(jobOf(row))
	switch {
	case row.Status != "pending":
		return "is not pending"
	case row.TriggeredBy != w.required.trigger:
		return "has the wrong trigger"
	case len(w.required.nodes) == 0 && row.NodeID != "", len(w.required.nodes) > 0 && !slices.Contains(w.required.nodes, row.NodeID):
		return "names the wrong node"
	case !row.CreateTime.Equal(w.required.at) || !row.ModifyTime.Equal(w.required.at):
		return "has the wrong time"
	case job != nil && (row.Type != job.Type || row.Priority != cmp.Or(job.Priority, cluster.DefaultJobPriority)):
		return "does not have the type and the priority of the job"
	}
	return ""
}

// requirementOf returns the evaluations that the entry must make.
func (w *evalJudge) requirementOf() requirement {
	switch m := w.e.Message.(type) {
	case *shims.NodeRegister:
		return w.forNodes(m.At, m.Node.ID)
	case *shims.NodeDeregister:
		return w.forNodes(m.At, m.Nodes...)
	case *shims.NodeUpdateStatus:
		if slices.ContainsFunc(w.e.nodes, changedStatus) {
			return w.forNodes(m.At, m.Node)
		}
	case *shims.NodeUpdateEligibility:
		if slices.ContainsFunc(w.e.nodes, becameEligible) {
			return w.forNodes(m.At, m.Node)
		}
	case *shims.NodeUpdateDrain:
		if slices.ContainsFunc(w.e.nodes, becameEligible) {
			return w.forNodes(m.At, m.Node)
		}
		if m.Spec == nil {
			return w.forWithdrawn(m)
		}
	case *shims.JobDeregister:
		if !m.Purge || w.keepsWork(m) {
			return requirement{trigger: "job-deregister", at: m.At, jobs: []cluster.JobKey{m.Job}}
		}
	case *shims.AllocClientUpdate:
		return w.forReports(m)
	case *shims.VolumeDetach:
		return w.forMarked(m.At)
	case *shims.ConfirmStops:
		return w.forConfirmed(m.At)
	case *shims.ConfirmDrain:
		return w.forConfirmed(m.At)
	}
	return requirement{}
}

// forMarked returns the evaluations for a forced detach of a volume: those of the jobs whose
// allocations the entry marked.
func (w *evalJudge) forMarked(at time.Time) requirement {
	r := requirement{trigger: "alloc-stop", at: at}
	for _, a := range w.e.allocs {
		if a.before != nil && a.after != nil && !opinion.Leaving(a.before) && opinion.Leaving(a.after) {
			r.jobs = append(r.jobs, groupOf(a.after).Job)
		}
	}
	return r.sorted()
}

// forWithdrawn returns the evaluations for a cancel: those of the jobs with a replacement that nothing requests any more.
func (w *evalJudge) forWithdrawn(m *shims.NodeUpdateDrain) requirement {
	r, n := requirement{trigger: "node-drain", at: m.At}, w.tables.node(m.Node)
	for _, a := range n.live {
		if opinion.RequestedBy(a.row, n.drain()) {
			r.jobs = append(r.jobs, a.group.key.Job)
		}
	}
	return r.sorted()
}

// keepsWork reports whether a purge must keep an allocation. Its node may be down, and only the
// scheduler gives it up then.
func (w *evalJudge) keepsWork(m *shims.JobDeregister) bool {
	if w.e.Before.ClusterVersion() < opinion.CountsUnconfirmed {
		return false
	}
	for a := range w.e.Before.AllocsByJob(m.Job) {
		if opinion.Live(a) {
			return true
		}
	}
	return false
}

// changedStatus reports whether the status of a node changed.
func changedStatus(c change[cluster.Node]) bool {
	return c.before != nil && c.after != nil && c.before.Status != c.after.Status
}

// becameEligible reports whether a node became eligible.
func becameEligible(c change[cluster.Node]) bool {
	return c.before != nil && c.after != nil &&
		c.after.SchedulingEligibility == "eligible" && c.before.SchedulingEligibility != "eligible"
}

// forNodes returns the evaluations for a change of nodes: of the jobs with live allocations on
// the nodes, and of the system and sysbatch jobs that may run there.
func (w *evalJudge) forNodes(at time.Time, ids ...cluster.NodeID) requirement {
	r := requirement{trigger: "node-update", at: at, nodes: ids}
	for _, id := range ids {
		if n := w.tables.nodes[id]; n != nil {
			for _, a := range n.live {
				r.jobs = append(r.jobs, a.group.key.Job)
			}
		}
		n := w.e.After.Node(id)
		for _, job := range w.tables.everywhere {
			if n != nil && mayRunOn(job.row, n, w.e.After.ClusterVersion()) {
				r.jobs = append(r.jobs, job.key)
			}
		}
	}
	return r.sorted()
}

// mayRunOn reports whether a system or sysbatch job may run on the node. Only a sysbatch job
// needs a node that is ready.
func mayRunOn(j *cluster.Job, n *cluster.Node, in cluster.Version) bool {
	ready := n.Status == "ready" && n.SchedulingEligibility == "eligible" && n.Drain == nil
	return (j.Type == "system" || ready) &&
		(j.NodePool == "all" && in >= 9 || cmp.Or(j.NodePool, "default") == cmp.Or(n.NodePool, "default")) &&
		(len(j.Datacenters) == 0 || slices.Contains(j.Datacenters, n.Datacenter))
}

// forReports returns the evaluations for reports of clients: of the jobs with an allocation
// that ended unexpectedly, that came back and may have a replacement, or whose health lets a rollout
// continue. Their time is that of the newest report of the entry.
func (w *evalJudge) forReports(m *shims.AllocClientUpdate) requirement {
	r := requirement{trigger: "alloc-failure"}
	reported := make(map[cluster.AllocID]bool, len(m.Reports))
	for _, report := range m.Reports {
		r.at = later(r.at, report.At)
		reported[report.Alloc] = true
	}
	for _, a := range w.e.allocs {
		if a.before != nil && a.after != nil && reported[a.after.ID] && (endedUnexpectedly(a.before, a.after) || w.reconciles(a.before, a.after) || w.continues(a.before, a.after)) {
			r.jobs = append(r.jobs, groupOf(a.after).Job)
		}
	}
	return r.sorted()
}

// reconciles reports whether a report may end the time in which two allocations have one slot. The
// allocation was unknown, or it runs now in place of one that has not ended, or it is lost and its
// group has no other one until the client reports the end.
func (w *evalJudge) reconciles(before, after *cluster.Allocation) bool {
	switch {
	case w.e.Before.ClusterVersion() < cluster.VersionOfConfirmation:
		return false
	case opinion.Stopping(before):
		return w.isHeld(before) && (w.e.Before.ClusterVersion() < cluster.VersionOfConfirmingReports || !opinion.Unconfirmed(after))
	case before.ClientStatus == "unknown":
		return true
	case before.ClientStatus != "pending" || after.ClientStatus != "running" || before.Standby:
		return false
	}
	for a := before; a.PreviousAllocation != ""; { // an earlier one may be back, and later ones ended
		if a = w.e.Before.Alloc(a.PreviousAllocation); a == nil {
			return false
		}
		if opinion.Live(a) && !opinion.Stopping(a) {
			return true
		}
	}
	return false
}

// continues reports whether an allocation has become healthy, or begins to run with such a verdict, while another
// one of its job has other tasks than the job.
func (w *evalJudge) continues(before, after *cluster.Allocation) bool {
	was, _ := opinion.Verdict(before)
	is, _ := opinion.Verdict(after)
	job := w.e.Before.Job(groupOf(after).Job)
	begins := before.ClientStatus != "running" && after.ClientStatus == "running"
	if was && !begins || !is || !opinion.Live(before) || opinion.Stopping(before) || job == nil || job.Stop || w.e.Before.ClusterVersion() < cluster.VersionOfRollouts {
		return false
	}
	for a := range w.e.Before.AllocsByJob(groupOf(after).Job) {
		if a.Job == nil || a.Job.Type != job.Type || !opinion.Live(a) || opinion.Leaving(a) || opinion.Canary(a) {
			continue
		}
		old, present := groupIn(a.Job, a.TaskGroup), groupIn(job, a.TaskGroup)
		if old != nil && present != nil && !reflect.DeepEqual(old.Tasks, present.Tasks) {
			return true
		}
	}
	return false
}

func groupIn(j *cluster.Job, name string) *cluster.TaskGroup {
	i := slices.IndexFunc(j.TaskGroups, func(g *cluster.TaskGroup) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return j.TaskGroups[i]
}

// isHeld reports whether a lost allocation has no replacement because its group permits none as long
// as its tasks may run.
func (w *evalJudge) isHeld(a *cluster.Allocation) bool {
	job := w.e.Before.Job(groupOf(a).Job)
	if job == nil || job.Stop || a.Job != nil && a.Job.Type != job.Type || !opinion.Unconfirmed(a) || a.DesiredDescription != cluster.DescLost || a.NextAllocation != "" || a.DesiredTransition.Migrate {
		return false
	}
	g := groupIn(job, a.TaskGroup)
	return g != nil && g.Disconnect.NoReplace
}

// forConfirmed returns the evaluations for confirmed ends: of the jobs whose lost allocations had no
// replacement until then.
func (w *evalJudge) forConfirmed(at time.Time) requirement {
	r := requirement{trigger: "node-update", at: at}
	for _, a := range w.e.allocs {
		if a.before != nil && w.isHeld(a.before) && a.after != nil && !opinion.Unconfirmed(a.after) {
			r.jobs = append(r.jobs, groupOf(a.before).Job)
		}
	}
	return r.sorted()
}

// endedUnexpectedly reports whether an allocation ended that should have run on. Batch work may
// complete. Sysbatch work may also fail, because it has only one attempt.
func endedUnexpectedly(before, after *cluster.Allocation) bool {
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

// sorted sorts the jobs and removes duplicates.
func (r requirement) sorted() requirement {
	slices.SortFunc(r.jobs, cluster.JobKey.Compare)
	r.jobs = slices.Compact(r.jobs)
	return r
}
