package invariant

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// G5 truth: a drain ends complete only if its completion contract holds where the end is
// applied. Each drain has one outcome, and a record that outlives the node.

// truthJudge judges G5.
type truthJudge struct{ *facts }

// judgeEnds judges an entry of ends in the state where it is applied.
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
		case made && !v.allowed:
			j.find(v.check, about, "the FSM ended the drain, but %s", v.why)
			ended[c.Node] = true
		case made:
			ended[c.Node] = true
		default:
			refused++
			switch accepted := slices.ContainsFunc(answer.Ended, func(end rules.Ending) bool { return end.Completion == c }); {
			case accepted && !v.allowed:
				j.find(v.check, about, "the answer accepts the end, but %s", v.why)
			case v.allowed && !ended[c.Node]:
				j.find(ValidRefused, about, "the FSM refused the end, but the drain has nothing left to wait for: %q", whyRefused(answer.Refused, c.Node, ""))
			}
		}
	}
	for _, end := range answer.Ended {
		if !ended[end.Node] {
			j.find(WrongAnswer, Violation{Drain: end.Drain, Node: end.Node}, "the answer says that the drain ended, but it runs")
		}
	}
	if len(answer.Ended) != len(ended) || len(answer.Refused) != refused {
		j.find(WrongAnswer, Violation{}, "the entry ended %d drains and refused %d ends, but the answer says %d and %d",
			len(ended), refused, len(answer.Ended), len(answer.Refused))
	}
	if refused > 0 {
		j.noteRefused(e, answer.Refused)
	}
}

// judgeCompletion judges whether a drain may end.
func (m *snapshot) judgeCompletion(n *node, c rules.Completion) verdict {
	if v := checkDrain(n, c.Drain); !v.allowed {
		return v
	}
	if n.drain().Revision != c.Revision {
		return fails(StaleRevision, "the drain changed after the plan")
	}
	if who, why := m.unfinished(n); why != "" {
		return fails(EndedEarly, "allocation "+string(who.id())+" "+why)
	}
	return allowed()
}

// ends reports whether the entry ended the drain on the node.
func (e *entry) ends(id cluster.NodeID, drain cluster.DrainID) bool {
	return slices.ContainsFunc(e.nodes, func(c change[cluster.Node]) bool {
		was, is := drainOf(c.before), drainOf(c.after)
		return newest(c).ID == id && was != nil && was.ID == drain && (is == nil || is.ID != drain)
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

// judgeStart judges the start of a drain.
func (j *truthJudge) judgeStart(e *entry, d *cluster.Drain) {
	about := Violation{Drain: d.ID, Node: d.NodeID}
	m, ok := e.Message.(*shims.NodeUpdateDrain)
	if !ok || m.Spec == nil || m.Node != d.NodeID {
		j.find(SecondOutcome, about, "a drain started without a request")
	} else if !d.Strategy.StartedAt.Equal(m.At) || d.Revision != cluster.Revision(e.Index) {
		j.find(RevisionMoved, about, "the drain started at index %d, %s, but has revision %d, start %s", e.Index, m.At, d.Revision, d.Strategy.StartedAt)
	}
	if j.drains[d.ID] != nil {
		j.find(SecondOutcome, about, "an earlier drain had the same id")
	}
	j.drains[d.ID] = &drain{id: d.ID, node: d.NodeID}
}

// judgeRun judges a change of a drain that does not end.
func (j *truthJudge) judgeRun(e *entry, was, is *cluster.Drain) {
	about := Violation{Drain: is.ID, Node: is.NodeID}
	asked := false
	if m, ok := e.Message.(*shims.NodeUpdateDrain); ok {
		updated, ok := e.Response.(shims.DrainRequestApplied)
		asked = ok && !updated.Repeated && m.Spec != nil
	}
	switch {
	case asked && (is.Revision != cluster.Revision(e.Index) || !is.Strategy.StartedAt.Equal(was.Strategy.StartedAt)):
		j.find(RevisionMoved, about, "a request wrote the strategy at index %d, but the drain has revision %d, start %s", e.Index, is.Revision, is.Strategy.StartedAt)
	case !asked && (is.Revision != was.Revision || !sameStrategy(is, was)):
		j.find(RevisionMoved, about, "the strategy or the revision changed from %d to %d without a request", was.Revision, is.Revision)
	}
	if is.Marked != was.Marked && e.Type != shims.AllocUpdateDesiredTransitionType {
		j.find(MiscountedMarks, about, "an entry without marks changed the drain's marks from %v to %v", was.Marked, is.Marked)
	}
	if got, want := is.PurgedRunning-was.PurgedRunning, j.purgedRunning(e, is.NodeID); got != want {
		j.find(MiscountedPurged, about, "the drain counts %d more allocations that ran when they were purged, and there were %d", got, want)
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
		j.find(SecondOutcome, about, "a drain ended that no entry had started")
	case d.ended:
		j.find(SecondOutcome, about, "the drain ended a second time")
	}
	d.ended = true
	record := e.After.DrainRecord(was.ID)
	if record == nil || record.Outcome == "" {
		j.find(NoRecord, about, "the drain ended without a record of its outcome")
		return
	}
	want, left := j.trueEnd(e, c, was, d)
	switch {
	case want == "":
		j.find(EndedWithoutCause, about, "a %s ended the drain as %q", e.Type, record.Outcome)
		return
	case record.Outcome != want:
		j.find(UntrueOutcome, about, "the outcome is %q, but with the marks %v and %d allocations left it must be %q", record.Outcome, d.marked, left, want)
	case !record.EndedAt.Equal(e.at) || record.EndIndex != e.Index || record.NodeID != was.NodeID || record.Revision != was.Revision:
		j.find(UntrueOutcome, about, "the record has node %s, end %s, index %d, revision %d; the drain ended on node %s at %s, index %d, revision %d",
			record.NodeID, record.EndedAt, record.EndIndex, record.Revision, was.NodeID, e.at, e.Index, was.Revision)
	}
	if record.StillStopping != left {
		j.find(MiscountedLeft, about, "the record counts %d allocations left, but there were %d", record.StillStopping, left)
	}
	if named, on := volumesNamed(record), j.volumesLeft(e, record, want); named != on {
		j.find(MiscountedVolumes, about, "the record names %d volumes left on the node, but there were %d", named, on)
	}
	if record.Marked != d.marked {
		j.find(MiscountedMarks, about, "the record counts the marks %v, but the drain made %v", record.Marked, d.marked)
	}
	if want == cluster.OutcomeCancelled || c.after == nil {
		return
	}
	if c.after.SchedulingEligibility != c.before.SchedulingEligibility {
		j.find(MadeEligible, about, "the end of the drain made its node %s", c.after.SchedulingEligibility)
	}
}

// trueEnd returns the outcome of a drain that ends with the entry, and how many allocations
// are left. The outcome is empty if the entry cannot end the drain.
func (j *truthJudge) trueEnd(e *entry, c change[cluster.Node], was *cluster.Drain, d *drain) (o cluster.Outcome, left int) {
	n := j.tables.node(was.NodeID)
	left = j.tables.snapshot(e.at, j.options.Policy).stages(n).total()
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

// stopping counts the allocations that the drain marked and that already stop.
func (j *truthJudge) stopping(id cluster.DrainID) (count int) {
	for _, a := range j.tables.marked[id] {
		if j.tables.allocs[a.id()] == a && a.markedBy(id) && a.live() && a.stopping() {
			count++
		}
	}
	return count
}

// doneAs is the outcome of a drain that ends by itself with that many allocations left. The
// deadline or force has given up the allocations left, even without a mark of that class. But
// if the contract only promises marks, an allocation left is not given up.
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

// judgeRecordRow judges the change of an entry to the record of an ended drain. A record never
// changes, and is deleted only to make room for others.
func (j *truthJudge) judgeRecordRow(c change[cluster.Drain]) {
	about := Violation{Drain: newest(c).ID, Node: newest(c).NodeID}
	switch {
	case c.before == nil:
	case c.after != nil:
		if digestDrain(c.before) != digestDrain(c.after) {
			j.find(SecondOutcome, about, "the entry changed the record of the drain, outcome %q to %q", c.before.Outcome, c.after.Outcome)
		}
	default:
		ofNode := 0
		for _, d := range j.tables.records {
			if d.NodeID == c.before.NodeID {
				ofNode++
			}
		}
		if ofNode < cluster.MaxDrainRecordsPerNode && len(j.tables.records) < cluster.MaxDrainRecords {
			j.find(NoRecord, about, "the entry deleted the record of the drain, although its node has only %d records", ofNode)
		}
	}
}
