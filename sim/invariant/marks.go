package invariant

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// verdict states whether the contract allows one item of an entry in the state where it is
// applied. If not, check is the violation of an entry that applies it.
type verdict struct {
	allowed bool
	check   Check
	why     string
}

func allowed() verdict                  { return verdict{allowed: true} }
func fails(c Check, why string) verdict { return verdict{check: c, why: why} }

func compareMarks(a, b rules.Mark) int {
	return cmp.Or(a.Group.Compare(b.Group), cmp.Compare(a.Alloc, b.Alloc))
}

// markJudge judges one entry of marks.
type markJudge struct {
	*facts
	e   *entry
	m   *shims.AllocUpdateDesiredTransition
	now *snapshot
	// refused counts the items that the entry did not apply.
	refused int
	// refusals are the refusals in the answer.
	refusals []rules.Refusal
	// accepted are the accepted marks of the answer, from the present item on.
	accepted []rules.Mark
	// jobs are the jobs of the applied marks, sorted.
	jobs []cluster.JobKey
}

// judgeMarks judges an entry of marks. The FSM must apply an item exactly if the contract allows
// it in the state after the items before it.
func (j *itemJudge) judgeMarks(e *entry, m *shims.AllocUpdateDesiredTransition) {
	w := &markJudge{facts: j.facts, e: e, m: m, now: j.tables.snapshot(m.At, &j.options)}
	j.checkPolicy(m.Policy)
	marks := m.Marks.Marks
	if !slices.IsSortedFunc(marks, compareMarks) {
		marks = slices.Clone(marks)
		slices.SortStableFunc(marks, compareMarks)
	}
	answer, _ := e.Response.(shims.MarksApplied)
	w.accepted, w.refusals = answer.Accepted, answer.Refused
	marked := false
	for i, mark := range marks {
		if marked = marked && marks[i-1].Alloc == mark.Alloc; marked {
			w.refused++ // the allocation has its mark already
			continue
		}
		marked = w.judge(mark)
	}
	w.checkAnswer()
	w.checkEvals()
	if w.refused > 0 {
		j.noteRefused(e, answer.Refused)
	}
}

// judge judges one mark and reports whether the entry made it. If the entry has several marks
// for one allocation, the answer names the one that was made.
func (w *markJudge) judge(mark rules.Mark) (applied bool) {
	v := w.now.judgeMark(mark)
	subject := Violation{Drain: mark.Drain, Node: mark.Node, Alloc: mark.Alloc, Group: mark.Group}
	another := len(w.accepted) > 0 && w.accepted[0].Alloc == mark.Alloc
	accepted := another && w.accepted[0] == mark
	if accepted {
		w.accepted = w.accepted[1:]
	}
	if !w.e.applied(mark) || another && !accepted {
		w.refused++
		switch {
		case accepted && !v.allowed:
			w.find(v.check, subject, "the answer accepts the %s, but %s", named(mark), v.why)
		case v.allowed && w.carriesEval(mark.Group.Job):
			w.find(ValidRefused, subject, "the FSM refused a valid %s: %q", named(mark), whyRefused(w.refusals, mark.Node, mark.Alloc))
		}
		return false
	}
	if !v.allowed {
		w.find(v.check, subject, "the FSM made the %s, but %s", named(mark), v.why)
	}
	a := w.tables.allocs[mark.Alloc]
	if a == nil {
		return true // the verdict above is a violation
	}
	w.now.countMark(a, mark)
	if n := len(w.jobs); n == 0 || w.jobs[n-1] != a.group.key.Job {
		w.jobs = append(w.jobs, a.group.key.Job)
	}
	return true
}

// judgeMark judges a mark in the state after the marks before it.
func (m *snapshot) judgeMark(mark rules.Mark) verdict {
	a := m.allocs[mark.Alloc]
	if v := checkCause(a, mark); !v.allowed {
		return v
	}
	r := m.rule(a)
	if v := m.checkTurn(a, r); !v.allowed {
		return v
	}
	if mark.Class == cluster.MarkPaced || mark.Surge {
		if v := checkSurge(m, a, mark, r); !v.allowed {
			return v
		}
	}
	return m.checkClass(a, mark.Class, r)
}

// change is the change of the entry to an allocation, or nil.
func (e *entry) change(id cluster.AllocID) *change[cluster.Allocation] {
	at, ok := slices.BinarySearchFunc(e.allocs, id, func(c change[cluster.Allocation], id cluster.AllocID) int {
		return cmp.Compare(newest(c).ID, id)
	})
	if !ok {
		return nil
	}
	return &e.allocs[at]
}

// applied reports whether the entry has made the mark.
func (e *entry) applied(mark rules.Mark) bool {
	c := e.change(mark.Alloc)
	if c == nil || c.after == nil {
		return false
	}
	t := c.after.DesiredTransition
	if mark.Surge {
		return !t.Migrate && t.Surge == mark.Drain && t.SurgeAt.Equal(e.at) && (c.before == nil || c.before.DesiredTransition != t)
	}
	return t.Migrate && t.Drain == mark.Drain && t.Class == mark.Class && (c.before == nil || c.before.DesiredTransition != t)
}

// G2 cause: an entry marks only allocations on a node that drains at apply. No item of a
// cancelled or replaced drain is applied. A mark of class deadline, forced or stage, and an
// end, is applied only if the drain still has the revision of the plan.

// checkCause judges whether the drain of a mark allows it.
func checkCause(a *alloc, mark rules.Mark) verdict {
	switch {
	case a == nil:
		return fails(WrongClass, "the allocation does not exist")
	case a.group.key != mark.Group || a.node.id != mark.Node:
		return fails(WrongClass, fmt.Sprintf("the allocation belongs to %s on %s", a.group.key, a.node.id))
	case !a.live():
		return fails(WrongClass, "the allocation has ended")
	case a.leaving():
		return fails(WrongClass, "the allocation was already requested to leave")
	}
	if v := checkDrain(a.node, mark.Drain); !v.allowed {
		return v
	}
	d := a.node.drain()
	bound := mark.Class == cluster.MarkDeadline || mark.Class == cluster.MarkForced || mark.Class == cluster.MarkStage
	switch {
	case bound && d.Revision != mark.Revision:
		return fails(StaleRevision, fmt.Sprintf("the drain is at revision %d, the plan at %d", d.Revision, mark.Revision))
	case !a.hasToLeave():
		return fails(MarkedExcluded, "the request excludes it")
	}
	return allowed()
}

// checkDrain judges whether the drain runs on the node.
func checkDrain(n *node, id cluster.DrainID) verdict {
	switch d := n.drain(); {
	case d == nil:
		return fails(NotDraining, "the node does not drain")
	case d.ID != id:
		return fails(NotDraining, fmt.Sprintf("the node is in drain %s", d.ID))
	}
	return allowed()
}

// itemJudge judges the marks and the plans of entries: G1 to G3.
type itemJudge struct{ *facts }

// judgePlan judges the changes of a scheduler's plan to marked allocations.
func (j *itemJudge) judgePlan(e *entry, m *shims.ApplyPlan) {
	for _, s := range m.Stops {
		c := e.change(s.Alloc)
		if !s.Migrate || c == nil || c.before == nil || c.after == nil || opinion.Stopping(c.before) || !opinion.Stopping(c.after) {
			continue
		}
		if !c.before.DesiredTransition.Migrate {
			j.find(StoppedWithoutMark, Violation{Node: c.after.NodeID, Alloc: c.after.ID, Group: groupOf(c.after)},
				"a plan stopped it to migrate it, but it has no mark")
		}
	}
	for _, c := range e.allocs {
		if c.before != nil || c.after == nil {
			continue
		}
		if p := e.change(c.after.PreviousAllocation); p != nil && p.after != nil && stoppedForGood(p.before, p.after) {
			j.find(PlacedAgain, Violation{Node: p.after.NodeID, Alloc: p.after.ID, Group: groupOf(p.after)},
				"a deadline stopped it, but %s replaces it on %s", c.after.ID, c.after.NodeID)
		}
	}
}

// stoppedForGood reports whether batch work was stopped after a deadline had marked it. before and
// after are its rows around the plan that replaces it; before may be nil. Work that had ended by
// itself before its stop does not count: the scheduler may place it again. How the work ends after
// its stop does not matter.
func stoppedForGood(before, after *cluster.Allocation) bool {
	switch {
	case !after.DesiredTransition.MigrateDisablePlacement || !opinion.Stopping(after):
		return false
	case before != nil && !opinion.Stopping(before):
		return opinion.Live(before)
	}
	return after.DesiredDescription != "alloc was rescheduled because it failed"
}

// G3 order: consumers leave first, then system allocations, then storage plugins. The end of
// the drain follows, which G5 judges. Batch and sysbatch work runs until the deadline. Deadline
// and force drop the budget, not the order. The state before an entry decides whether the turn
// of its marks has come. That is safe, because marks never delay a turn.

// checkTurn judges whether the turn of an allocation has come.
func (m *snapshot) checkTurn(a *alloc, r ruling) verdict {
	switch r.hold {
	case rules.ReasonWaitingForStage:
		return fails(OutOfTurn, fmt.Sprintf("%s has not left", m.waitsFor(a.node, a.stage).id()))
	case rules.ReasonBatchRunning:
		return fails(BatchEarly, "batch work may run until the deadline")
	}
	return allowed()
}

// G1 budget: a paced mark leaves at least count − max_parallel healthy allocations in its
// group, in the state where it is applied and over all draining nodes together. A mark of
// another class is applied only if the contract allows the class there. The healthy allocations are
// those whose clients reported so last.

// checkClass compares the class of a mark with the ruling for its allocation.
func (m *snapshot) checkClass(a *alloc, c cluster.MarkClass, r ruling) verdict {
	t := m.tally(a.group)
	switch {
	case r.class == cluster.MarkNone:
		return fails(WrongClass, "it may not leave: "+r.hold.String())
	case c == cluster.MarkProceed && r.takesRoom():
		if !m.mayProceed(a.group) {
			return fails(WrongClass, t.String()+" and may not go below its limit")
		}
	case c != r.class:
		return fails(WrongClass, fmt.Sprintf("its class must be %s", r.class))
	case c == cluster.MarkPaced && r.takesRoom() && t.room() <= 0:
		return fails(BelowLimit, t.String())
	case (c == cluster.MarkFree || c == cluster.MarkCanary) && t.slotsLeft() <= 0:
		return fails(SlotsTaken, fmt.Sprintf("its group has %d free and canary marks under way, max_parallel %d", t.slots, t.pace.MaxParallel))
	}
	return allowed()
}

// String returns the numbers of the budget.
func (t *tally) String() string {
	return fmt.Sprintf("its group has %d healthy of %d, max_parallel %d", t.healthy, t.pace.Count, t.pace.MaxParallel)
}

// checkPolicy compares the policy of an entry with the configured one. Another policy would
// allow other classes.
func (j *facts) checkPolicy(p rules.Policy) {
	o := Options{Policy: p}.withDefaults()
	if o.Policy != j.options.Policy {
		j.find(WrongClass, Violation{}, "the entry carries the policy %+v, and the configured one is %+v", o.Policy, j.options.Policy)
	}
}

// ruling is the class under which the contract allows a mark on an allocation of a draining
// node, apart from room and slots. With [cluster.MarkNone] it is the reason why no mark is allowed.
type ruling struct {
	class cluster.MarkClass
	hold  rules.Reason
	// requests means that a drain first requests a replacement, and replaced that a healthy one stands by. Both are
	// set with [cluster.MarkPaced] only.
	requests, replaced bool
}

func leavesAs(c cluster.MarkClass) ruling { return ruling{class: c} }
func heldFor(r rules.Reason) ruling       { return ruling{hold: r} }

// rule applies the contract to an allocation on a draining node.
func (m *snapshot) rule(a *alloc) ruling {
	d := a.node.drain()
	taken := passed(m, a.node)
	switch {
	case !a.hasToLeave():
		return heldFor(rules.ReasonLeftByRequest)
	case a.stage == opinion.Consumer && d.Strategy.Deadline < 0:
		return leavesAs(cluster.MarkForced)
	case a.stage == opinion.Consumer && taken:
		return leavesAs(cluster.MarkDeadline)
	case !taken && !a.inTouch(): // the deadline also takes allocations out of touch
		return heldFor(rules.ReasonDisconnected)
	case paused(m, a.node) && !goneInTurn(m, a):
		return heldFor(rules.ReasonPaused)
	case a.stage == opinion.Consumer && a.group.exists() && !a.service():
		return heldFor(rules.ReasonBatchRunning)
	case a.stage == opinion.Consumer:
		return m.ruleService(a)
	case m.waitsFor(a.node, a.stage) != nil:
		return heldFor(rules.ReasonWaitingForStage)
	case taken || a.stage == opinion.System || !a.service():
		return leavesAs(cluster.MarkStage)
	}
	return m.ruleService(a) // a storage plugin of a service keeps its group's pace
}

// goneInTurn reports whether an allocation leaves as gone: its job lacks its group, and its turn has come.
func goneInTurn(m *snapshot, a *alloc) bool {
	return !a.group.exists() && (a.stage == opinion.Consumer || a.stage == opinion.Plugin && a.service() && m.waitsFor(a.node, a.stage) == nil)
}

// ruleService applies the contract to an allocation before the deadline whose turn has come.
// The allocation leaves at the pace of its group, if the group exists.
func (m *snapshot) ruleService(a *alloc) ruling {
	pace, exists := opinion.PaceOf(a.group.job.row, a.group.key.Name)
	healthy, judged := opinion.Verdict(a.row)
	switch {
	case !exists:
		return leavesAs(cluster.MarkGone)
	case opinion.Canary(a.row):
		return leavesAs(cluster.MarkCanary)
	case healthyNow(m, a) && pace.MaxParallel == 0:
		return heldFor(rules.ReasonNoPacedMoves)
	case healthyNow(m, a):
		return ruleHealthy(m, a, pace)
	case standsBy(m, a) && takesOver(m, a.row):
		return heldFor(rules.ReasonWaitingForSurge) // its original leaves first
	case judged && !healthy && m.at.Before(pace.HeldUntil(a.row)):
		return heldFor(rules.ReasonBelowBudget)
	case judged && !healthy, !m.at.Before(pace.Due(a.row, m.policy.HealthGrace)):
		return leavesAs(cluster.MarkFree)
	}
	return heldFor(rules.ReasonWaitingForHealth)
}

// exists reports whether the group is in the current version of its job.
func (g *group) exists() bool {
	_, exists := opinion.PaceOf(g.job.row, g.key.Name)
	return exists
}

// ofWholeNode reports whether marks of the class ignore the pace of the group.
func ofWholeNode(c cluster.MarkClass) bool {
	return c == cluster.MarkStage || c == cluster.MarkDeadline || c == cluster.MarkForced
}

// G6 nothing lost, for applied entries: one bad item never fails the rest of its entry, the
// answer gives the outcome of each item, and each mark comes with an evaluation.

// carriesEval reports whether the entry carries an evaluation of the job.
func (w *markJudge) carriesEval(key cluster.JobKey) bool {
	return slices.ContainsFunc(w.m.Evals, func(e *cluster.Evaluation) bool { return e != nil && jobOf(e) == key })
}

// checkAnswer compares the answer with the outcome of the entry's items.
func (w *markJudge) checkAnswer() {
	answer, ok := w.e.Response.(shims.MarksApplied)
	if !ok {
		if len(w.m.Marks.Marks) > 0 {
			w.find(WrongAnswer, Violation{}, "the answer to %d marks is a %T", len(w.m.Marks.Marks), w.e.Response)
		}
		return
	}
	for _, mark := range answer.Accepted {
		if !w.e.applied(mark) {
			w.find(WrongAnswer, Violation{Drain: mark.Drain, Node: mark.Node, Alloc: mark.Alloc, Group: mark.Group},
				"the answer accepts the %s, but the entry did not make it", named(mark))
		}
	}
	if accepted := len(w.m.Marks.Marks) - w.refused; len(answer.Accepted) != accepted || len(answer.Refused) != w.refused {
		w.find(WrongAnswer, Violation{}, "the entry made %d marks and refused %d, but the answer states %d and %d",
			accepted, w.refused, len(answer.Accepted), len(answer.Refused))
	}
}

// checkEvals judges the evaluations of the entry. It must make one for each job with a mark or
// with a stuck group, and no other.
func (w *markJudge) checkEvals() {
	required := slices.Clone(w.jobs)
	for _, key := range w.m.Reevaluate {
		switch {
		case !w.now.stuck(w.tables.group(key)):
			if len(w.m.Marks.Marks) == 0 {
				w.idle[w.e.Index] = idleItem{w.e.Before.Index(), Violation{Group: key}, "every marked allocation that runs on has an open evaluation"}
			}
		case w.carriesEval(key.Job):
			required = append(required, key.Job)
		}
	}
	for _, key := range required {
		if !w.createsEval(key) {
			w.find(NoEvaluation, ofJob(key), "the entry marked allocations of job %s or evaluates it again, but created no evaluation of it", key)
		}
	}
	w.checkEachOnce(required)
}

// checkEachOnce finds evaluations of other jobs, and second evaluations of a job.
func (w *markJudge) checkEachOnce(required []cluster.JobKey) {
	evaluated := make([]cluster.JobKey, 0, len(required))
	for _, c := range w.e.evals {
		if c.before != nil || c.after == nil {
			continue
		}
		key := jobOf(c.after)
		switch {
		case !slices.Contains(required, key):
			w.find(IdleWrite, ofJob(key), "the entry created an evaluation of job %s, but no mark of it", key)
		case slices.Contains(evaluated, key):
			w.find(NeedlessEvaluation, ofJob(key), "the entry created a second evaluation of job %s", key)
		}
		evaluated = append(evaluated, key)
	}
}

// createsEval reports whether the entry created a pending evaluation of the job because of marks.
func (w *markJudge) createsEval(key cluster.JobKey) bool {
	return slices.ContainsFunc(w.e.evals, func(c change[cluster.Evaluation]) bool {
		return c.after != nil && jobOf(c.after) == key && c.after.Status == "pending" && c.after.TriggeredBy == "node-drain" && c.after.CreateIndex == w.e.Index
	})
}

// stuck reports whether a marked allocation of the group runs on without an open evaluation of
// its job.
func (m *snapshot) stuck(g *group) bool { return m.tally(g).stuck && len(g.job.open) == 0 }
