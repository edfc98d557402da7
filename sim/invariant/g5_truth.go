package invariant

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// G5 truth: complete means what the completion contract says, judged again when it
// is applied. Each drain has one outcome, and a record that outlives the node.

// truthJudge judges G5.
type truthJudge struct{ *facts }

// judgeEnds judges an entry of completions in the state that it is applied in.
func (j *truthJudge) judgeEnds(e *entry, m *shims.NodesDrainComplete) {
	now := j.tables.snapshot(m.At, j.options.Policy)
	j.checkPolicy(m.Policy)
	answer, _ := e.Response.(shims.CompletionsApplied)
	ended := make(map[cluster.NodeID]bool)
	refused := 0
	for _, c := range m.Completions.Completions {
		n := j.tables.node(c.Node)
		v := now.judgeCompletion(n, c)
		about := Violation{Drain: c.Drain, Node: c.Node}
		switch made := e.ends(c.Node, c.Drain) && !ended[c.Node]; {
		case made && !v.holds:
			j.find(v.check, about, "its end was applied, and %s", v.why)
			ended[c.Node] = true
		case made:
			ended[c.Node] = true
		default:
			refused++
			switch said := slices.ContainsFunc(answer.Ended, func(end rules.Ending) bool { return end.Completion == c }); {
			case said && !v.holds:
				j.find(v.check, about, "its end was accepted, and %s", v.why)
			case v.holds && !ended[c.Node]:
				j.find(GoodRefused, about, "its end was refused, and nothing is left to be waited for: %q", whyRefused(answer.Refused, c.Node, ""))
			}
		}
	}
	for _, end := range answer.Ended {
		if !ended[end.Node] {
			j.find(Unanswered, Violation{Drain: end.Drain, Node: end.Node}, "the answer says that it ended")
		}
	}
	if len(answer.Ended) != len(ended) || len(answer.Refused) != refused {
		j.find(Unanswered, Violation{}, "%d of the entry's drains ended and %d did not; the answer says %d and %d",
			len(ended), refused, len(answer.Ended), len(answer.Refused))
	}
	if refused > 0 {
		j.noteRefused(e, answer.Refused)
	}
}

// judgeCompletion judges whether a drain may end.
func (m *snapshot) judgeCompletion(n *node, c rules.Completion) verdict {
	if v := checkDrain(n, c.Drain); !v.holds {
		return v
	}
	if n.drain().Revision != c.Revision {
		return fails(StaleRevision, "the drain was changed since it was planned")
	}
	if who, why := m.unfinished(n); why != "" {
		return fails(EndedEarly, string(who.id())+": "+why)
	}
	return held()
}

// ends reports whether the entry ended that drain of the node.
func (e *entry) ends(id cluster.NodeID, drain cluster.DrainID) bool {
	return slices.ContainsFunc(e.nodes, func(c change[cluster.Node]) bool {
		was, is := drainOf(c.before), drainOf(c.after)
		return either(c).ID == id && was != nil && was.ID == drain && (is == nil || is.ID != drain)
	})
}

func drainOf(n *cluster.Node) *cluster.Drain {
	if n == nil {
		return nil
	}
	return n.Drain
}

// judgeDrainRow judges the change of an entry to the drain of a node.
func (j *truthJudge) judgeDrainRow(e *entry, c change[cluster.Node]) {
	was, is := drainOf(c.before), drainOf(c.after)
	if was != nil && (is == nil || is.ID != was.ID) {
		j.judgeEnd(e, c, was)
	}
	switch {
	case is == nil:
	case was == nil || was.ID != is.ID:
		j.judgeStart(e, is)
	default:
		j.judgeRun(e, was, is)
	}
}

// judgeStart judges the beginning of a drain.
func (j *truthJudge) judgeStart(e *entry, d *cluster.Drain) {
	about := Violation{Drain: d.ID, Node: d.NodeID}
	m, ok := e.Message.(*shims.NodeUpdateDrain)
	if !ok || m.Spec == nil || m.Node != d.NodeID {
		j.find(SecondOutcome, about, "a drain began without a request")
	} else if !d.Strategy.StartedAt.Equal(m.At) || d.Revision != cluster.Revision(e.Index) {
		j.find(RevisionMoved, about, "it began at index %d and says revision %d, start %s", e.Index, d.Revision, d.Strategy.StartedAt)
	}
	if j.drains[d.ID] != nil {
		j.find(SecondOutcome, about, "the drain has been before")
	}
	j.drains[d.ID] = &drain{id: d.ID, node: d.NodeID}
}

// judgeRun judges a change of a drain that runs on.
func (j *truthJudge) judgeRun(e *entry, was, is *cluster.Drain) {
	about := Violation{Drain: is.ID, Node: is.NodeID}
	asked := false
	if m, ok := e.Message.(*shims.NodeUpdateDrain); ok {
		updated, ok := e.Response.(shims.DrainRequestApplied)
		asked = ok && !updated.Repeated && m.Spec != nil
	}
	switch {
	case asked && (is.Revision != cluster.Revision(e.Index) || !is.Strategy.StartedAt.Equal(was.Strategy.StartedAt)):
		j.find(RevisionMoved, about, "its strategy was written at index %d: revision %d, begun at %s", e.Index, is.Revision, is.Strategy.StartedAt)
	case !asked && (is.Revision != was.Revision || !sameStrategy(is, was)):
		j.find(RevisionMoved, about, "no request changed the strategy, and revision %d became %d", was.Revision, is.Revision)
	}
	if is.Marked != was.Marked && e.Type != shims.AllocUpdateDesiredTransitionType {
		j.find(MiscountedMarks, about, "its marks became %v from %v in an entry without any", is.Marked, was.Marked)
	}
	if got, want := is.PurgedRunning-was.PurgedRunning, j.purgedRunning(e, is.NodeID); got != want {
		j.find(MiscountedPurged, about, "%d more are said to have run when they were purged, and %d have", got, want)
	}
}

func sameStrategy(a, b *cluster.Drain) bool {
	return a.Strategy.DrainSpec == b.Strategy.DrainSpec && a.UpdatedAt.Equal(b.UpdatedAt) &&
		a.Strategy.ForceDeadline.Equal(b.Strategy.ForceDeadline) && a.Strategy.StartedAt.Equal(b.Strategy.StartedAt)
}

// purgedRunning counts the allocations on a node that the entry purges while they may still run.
func (j *truthJudge) purgedRunning(e *entry, id cluster.NodeID) (count int) {
	m, ok := e.Message.(*shims.JobDeregister)
	if !ok || !m.Purge {
		return 0
	}
	for _, a := range j.tables.node(id).live {
		if a.group.key.Job == m.Job {
			count++
		}
	}
	return count
}

// judgeEnd judges the end of a drain by its record.
func (j *truthJudge) judgeEnd(e *entry, c change[cluster.Node], was *cluster.Drain) {
	about := Violation{Drain: was.ID, Node: was.NodeID}
	d := j.drains[was.ID]
	switch {
	case d == nil:
		d = &drain{id: was.ID, node: was.NodeID, marked: was.Marked}
		j.drains[was.ID] = d
		j.find(SecondOutcome, about, "a drain ended that no entry had begun")
	case d.ended:
		j.find(SecondOutcome, about, "the drain has ended before")
	}
	d.ended = true
	record := e.After.DrainRecord(was.ID)
	if record == nil || record.Outcome == "" {
		j.find(NoRecord, about, "the drain ended and no record says how")
		return
	}
	want, left := j.trueEnd(e, c, was, d)
	switch {
	case want == "":
		j.find(EndedByNothing, about, "the drain ended as %q in a %s", record.Outcome, e.Type)
		return
	case record.Outcome != want:
		j.find(UntrueOutcome, about, "the outcome is %q, and its marks %v and the %d that are left make it %q", record.Outcome, d.marked, left, want)
	case !record.EndedAt.Equal(e.at) || record.EndIndex != e.Index || record.NodeID != was.NodeID || record.Revision != was.Revision:
		j.find(UntrueOutcome, about, "the record is of node %s at %s, index %d", record.NodeID, record.EndedAt, record.EndIndex)
	}
	if record.StillStopping != left {
		j.find(MiscountedLeft, about, "the record says that %d were left, and it were %d", record.StillStopping, left)
	}
	if record.Marked != d.marked {
		j.find(MiscountedMarks, about, "the record says that it marked %v, and it marked %v", record.Marked, d.marked)
	}
	if want == cluster.OutcomeCancelled || c.after == nil {
		return
	}
	if c.after.SchedulingEligibility != c.before.SchedulingEligibility {
		j.find(MadeEligible, about, "its node became %s by the end of the drain", c.after.SchedulingEligibility)
	}
}

// trueEnd is how a drain ends with the entry, and how many it leaves behind; empty
// if the entry is none that ends it.
func (j *truthJudge) trueEnd(e *entry, c change[cluster.Node], was *cluster.Drain, d *drain) (o cluster.Outcome, left int) {
	n := j.tables.node(was.NodeID)
	left = j.tables.snapshot(e.at, j.options.Policy).turns(n).total()
	switch m := e.Message.(type) {
	case *shims.NodeDeregister:
		if c.after == nil && slices.Contains(m.Nodes, n.id) {
			return cluster.OutcomeNodeGone, left
		}
	case *shims.NodeUpdateDrain:
		if e.cancels(was.ID) {
			return cluster.OutcomeCancelled, j.stopping(was.ID)
		}
	case *shims.NodesDrainComplete:
		if slices.ContainsFunc(m.Completions.Completions, func(c rules.Completion) bool { return c.Node == n.id }) {
			return j.doneAs(was, d, left), left
		}
	}
	return "", left
}

// stopping counts those that the drain has marked and that stop already.
func (j *truthJudge) stopping(id cluster.DrainID) (count int) {
	for _, a := range j.tables.marked[id] {
		if j.tables.allocs[a.id()] == a && a.markedBy(id) && a.live() && a.stopping() {
			count++
		}
	}
	return count
}

// doneAs is the outcome of a drain that ends by itself and leaves so many behind.
// What is left was given up by the deadline, or by force, although these may have
// marked nothing; unless to have asked is all that was promised.
func (j *truthJudge) doneAs(was *cluster.Drain, d *drain, left int) cluster.Outcome {
	givenUp := left > 0 && j.options.Policy.Completion != rules.CompletionMarked
	switch {
	case d.marked[cluster.MarkForced] > 0:
		return cluster.OutcomeForced
	case d.marked[cluster.MarkDeadline] > 0:
		return cluster.OutcomeDeadlineReached
	case givenUp && was.Strategy.Deadline < 0:
		return cluster.OutcomeForced
	case givenUp:
		return cluster.OutcomeDeadlineReached
	}
	return cluster.OutcomeComplete
}

// noteMark counts a mark in its drain.
func (j *facts) noteMark(a *cluster.Allocation) {
	t := a.DesiredTransition
	if d := j.drains[t.Drain]; d != nil && t.Class < cluster.MarkClassCount {
		d.marked[t.Class]++
	}
}

// judgeRecordRow judges the change of an entry to the record of an ended drain:
// written once, and forgotten only to make room for others.
func (j *truthJudge) judgeRecordRow(c change[cluster.Drain]) {
	about := Violation{Drain: either(c).ID, Node: either(c).NodeID}
	switch {
	case c.before == nil:
	case c.after != nil:
		if digestDrain(c.before) != digestDrain(c.after) {
			j.find(SecondOutcome, about, "its record was changed: %q became %q", c.before.Outcome, c.after.Outcome)
		}
	default:
		ofNode := 0
		for _, d := range j.tables.records {
			if d.NodeID == c.before.NodeID {
				ofNode++
			}
		}
		if ofNode < cluster.MaxDrainRecordsPerNode && len(j.tables.records) < cluster.MaxDrainRecords {
			j.find(NoRecord, about, "its record was forgotten with %d of its node kept", ofNode)
		}
	}
}
