package collected

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/placement"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// longestChain is how many times in a row the scheduler replaces an allocation of a group without a policy.
const longestChain = 10

// longestSuccession bounds a chain of replacements.
const longestSuccession = 1000

// longestWait bounds a chain of replacements that ended before they had data.
const longestWait = 64

// useOfAlloc returns the use of an allocation of any age, or the empty string.
func useOfAlloc(s *statestore.Snapshot, a *cluster.Allocation) string {
	if opinion.Live(a) {
		return "it has not ended"
	}
	if use := useOutside(s, a); use != "" {
		return use
	}
	g := groupOf(s, a)
	switch {
	case g == nil:
		return ""
	case placement.Holds(s, a, g, time.Time{}):
		return "it holds a slot"
	case retried(s, a, g):
		return "it waits for its replacement"
	case owesReplacement(s, a, g) && (opinion.Canary(a) || opensOf(s, a.JobKey())):
		return "it waits for its replacement"
	case countsForReplacement(s, a, g):
		return "it counts as a failure of an allocation that may be replaced"
	case replacesLive(s, a):
		return "the allocation that it replaced is live"
	}
	return ""
}

// useOutside returns the use of an ended allocation to a client or a drain, or the empty string.
func useOutside(s *statestore.Snapshot, a *cluster.Allocation) string {
	node, next := s.Node(a.NodeID), s.Alloc(a.NextAllocation)
	switch {
	case a.ClientStatus == "lost" && node != nil && !opinion.Reachable(node):
		return "it is lost, and its node may come back"
	case opinion.Unconfirmed(a) && node != nil && node.Drain != nil:
		return "the end of a running drain counts it as unconfirmed"
	case opinion.Unconfirmed(a) && node != nil && counted(s, a):
		return "the record of a drain counts it as unconfirmed"
	case node != nil && node.Drain != nil && a.DesiredTransition.Migrate && a.DesiredTransition.Drain == node.Drain.ID:
		return "a running drain has marked it"
	case a.DesiredTransition.Class == cluster.MarkCanary && next != nil && opinion.Live(next):
		return "a drain has marked it as a canary, and its replacement lives"
	case node != nil && opinion.KeepsData(a):
		return "its client keeps its data"
	case leadsToWait(s, a):
		return "a replacement waits for data"
	case a.Standby:
		return "the allocation beside which it was placed is in place"
	}
	for c := range s.WorkView().ClaimsOfAlloc(a.ID) {
		return "it claims " + c.Volume.String()
	}
	return ""
}

// leadsToWait reports whether the first live replacement of an ended allocation waits for data, or has not reported
// yet. Without one, the next replacement takes the data that an earlier allocation keeps.
func leadsToWait(s *statestore.Snapshot, a *cluster.Allocation) bool {
	next := a
	for range longestWait {
		last := next
		if next = s.Alloc(next.NextAllocation); next == nil {
			return last != a && last.NextAllocation == "" && passesOn(s, a)
		}
		if opinion.Live(next) && !opinion.Stopping(next) {
			silent := next.DataIn == nil && next.ClientStatus != "running" && s.WorkView().ClusterVersion() >= opinion.MovesData
			return opinion.WaitsForData(next) || silent && movesData(next)
		}
		if next.DataIn != nil && !opinion.WaitsForData(next) {
			return false
		}
	}
	return false
}

// movesData reports whether the data of the group of an allocation moves.
func movesData(a *cluster.Allocation) bool {
	if a.Job == nil {
		return false
	}
	g := groupNamed(a.Job, a.TaskGroup)
	return g != nil && g.EphemeralDisk.Migrate
}

// passesOn reports whether the client of an earlier allocation keeps its data.
func passesOn(s *statestore.Snapshot, a *cluster.Allocation) bool {
	for range longestWait {
		if a = s.Alloc(a.PreviousAllocation); a == nil || opinion.KeepsData(a) {
			return a != nil && s.Node(a.NodeID) != nil
		}
	}
	return false
}

// counted reports whether the record of an ended drain of its node may count a lost allocation: the
// record counts some, and the allocation had not ended for certain when the drain ended.
func counted(s *statestore.Snapshot, a *cluster.Allocation) bool {
	for d := range s.DrainsByNode(a.NodeID) {
		if d.Unconfirmed != nil && d.Unconfirmed.Count > 0 && opinion.Counted(a, d) {
			return true
		}
	}
	return false
}

// groupOf returns the current group of the allocation. It is nil if nothing of that group should
// run, or if the job has another type than the allocation.
func groupOf(s *statestore.Snapshot, a *cluster.Allocation) *cluster.TaskGroup {
	job := s.Job(a.JobKey())
	if job == nil || job.Stop || a.Job != nil && a.Job.Type != job.Type {
		return nil
	}
	return groupNamed(job, a.TaskGroup)
}

func groupNamed(job *cluster.Job, name string) *cluster.TaskGroup {
	for _, g := range job.TaskGroups {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// owesReplacement reports whether a plan may replace an ended allocation that holds no slot.
func owesReplacement(s *statestore.Snapshot, a *cluster.Allocation, g *cluster.TaskGroup) bool {
	kind := opinion.TypeOf(a)
	switch {
	case a.NextAllocation != "":
		return false
	case opinion.Stopping(a) && kind == "batch" && a.DesiredTransition.MigrateDisablePlacement:
		return false // a deadline stopped it, and a new one does the work of the present version
	case opinion.Stopping(a):
		d := a.DesiredDescription
		return d == "alloc is being migrated" || d == "alloc is lost since its node is down" || d == "alloc was rescheduled because it failed"
	case opinion.Canary(a) && placement.GaveUp(s, a, g):
		return a.DesiredTransition.Migrate
	}
	return kind != "batch" && kind != "sysbatch" || placement.SameWork(a, g)
}

// retried reports whether the policy of its group replaces an allocation that ended by itself.
func retried(s *statestore.Snapshot, a *cluster.Allocation, g *cluster.TaskGroup) bool {
	r, has := placement.RetryOf(s, a, g)
	return has && !r.Spent
}

// countedFailures is how many failures in a row decide about a replacement: so many as the policy of the group
// permits, or as make its delays grow.
func countedFailures(p *cluster.ReschedulePolicy) int {
	if p == nil {
		return longestChain
	}
	grows := 0
	for before, wait := time.Duration(0), p.Delay; p.DelayFunction != "constant" && wait > 0 && wait < p.MaxDelay; grows++ {
		if p.DelayFunction == "exponential" {
			before = wait
		}
		before, wait = wait, before+wait
	}
	if p.Unlimited {
		return grows
	}
	return max(grows, p.Attempts)
}

// countsForReplacement reports whether the allocation is one of the failures in a row of an
// allocation that the servers have not stopped.
func countsForReplacement(s *statestore.Snapshot, a *cluster.Allocation, g *cluster.TaskGroup) bool {
	for range countedFailures(g.Reschedule) {
		if a.DesiredDescription != "alloc was rescheduled because it failed" {
			return false
		}
		if a = s.Alloc(a.NextAllocation); a == nil {
			return false
		}
		if !opinion.Stopping(a) {
			return true
		}
	}
	return false
}

// replacesLive reports whether the allocation is in the chain of replacements of one that the
// servers let run.
func replacesLive(s *statestore.Snapshot, a *cluster.Allocation) bool {
	for range longestSuccession {
		if a = s.Alloc(a.PreviousAllocation); a == nil {
			return false
		}
		if opinion.Live(a) && !opinion.Stopping(a) {
			return true
		}
	}
	return false
}

func isOpen(e *cluster.Evaluation) bool { return e.Status == "pending" || e.Status == "blocked" }

// opensOf reports whether the job has an open evaluation.
func opensOf(s *statestore.Snapshot, k cluster.JobKey) bool {
	for e := range s.EvalsByJob(k) {
		if isOpen(e) {
			return true
		}
	}
	return false
}

// useOfEval returns the use of an evaluation of any age, or the empty string.
func useOfEval(s *statestore.Snapshot, e *cluster.Evaluation) string {
	if isOpen(e) {
		return "it is open"
	}
	if blocked := s.Eval(e.BlockedEval); blocked != nil && isOpen(blocked) {
		return "the evaluation that it created is open"
	}
	for a := range s.AllocsByJob(e.JobKey()) {
		if a.EvalID == e.ID {
			return "an allocation names it"
		}
	}
	if s.Job(e.JobKey()) == nil {
		return ""
	}
	for other := range s.EvalsByJob(e.JobKey()) {
		if other.CreateIndex > e.CreateIndex || other.CreateIndex == e.CreateIndex && other.ID > e.ID {
			return ""
		}
	}
	return "it is the newest of its job"
}

// useOfJob returns the use of a job of any age, or the empty string.
func useOfJob(s *statestore.Snapshot, job *cluster.Job) string {
	if !job.Stop {
		return useOfRunning(s, job)
	}
	for range s.AllocsByJob(job.Key()) {
		return "it has allocations"
	}
	evals := 0
	for e := range s.EvalsByJob(job.Key()) {
		if evals++; isOpen(e) || evals > 1 {
			return "it has evaluations"
		}
	}
	return ""
}

// useOfRunning returns the use of a job that is not stopped of any age, or the empty string.
// Only a batch job has no use, when all its work has ended and no client or drain needs it.
func useOfRunning(s *statestore.Snapshot, job *cluster.Job) string {
	if job.Type != "batch" {
		return "it is no batch job"
	}
	if opensOf(s, job.Key()) {
		return "it has an open evaluation"
	}
	planned, ran := false, false
	for range s.EvalsByJob(job.Key()) {
		planned = true
	}
	for a := range s.AllocsByJob(job.Key()) {
		ran = true
		if opinion.Live(a) {
			return "it has work that has not ended"
		}
		if use := useOutside(s, a); use != "" {
			return use
		}
		if g := groupNamed(job, a.TaskGroup); g != nil && retried(s, a, g) {
			return "it has work to run again"
		}
	}
	if !planned || !ran {
		return "it has not run"
	}
	return ""
}

// useAfterRestart returns the use that a deleted allocation of a stopped job would have if the job
// were started again, or the empty string. It is empty if the job itself may be deleted.
func (e *entry) useAfterRestart(a *cluster.Allocation) string {
	job := e.before.Job(a.JobKey())
	if job == nil || !job.Stop {
		return ""
	}
	g := groupNamed(job, a.TaskGroup)
	if g == nil || !placement.Holds(e.before, a, g, time.Time{}) {
		return ""
	}
	lately := !a.ModifyTime.Before(e.message.Before.Jobs)
	for eval := range e.before.EvalsByJob(job.Key()) {
		lately = lately || isOpen(eval) || !eval.ModifyTime.Before(e.message.Before.Jobs)
	}
	if lately {
		return "its job was stopped lately, and would run it again"
	}
	return ""
}
