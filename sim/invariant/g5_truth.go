package invariant

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// G5 truth: a drain ends complete only if its completion contract holds where the end is
// applied. Each drain has one outcome, and a record that outlives the node. The witness judges the
// record; see [witnessJudge].

// truthJudge judges G5.
type truthJudge struct{ *facts }

// judgeEnds judges an entry of ends in the state where it is applied.
func (j *truthJudge) judgeEnds(e *entry, m *shims.NodesDrainComplete) {
	now := j.tables.snapshot(m.At, &j.options)
	j.checkPolicy(m.Policy)
	answer, _ := e.Response.(shims.CompletionsApplied)
	ended := make(map[cluster.NodeID]bool)
	refused := 0
	for _, c := range m.Completions.Completions {
		n := j.tables.node(c.Node)
		v := now.judgeCompletion(n, c)
		subject := Violation{Drain: c.Drain, Node: c.Node}
		switch endsNow := e.ends(c.Node, c.Drain) && !ended[c.Node]; {
		case endsNow && !v.allowed:
			j.find(v.check, subject, "the FSM ended the drain, but %s", v.why)
			ended[c.Node] = true
		case endsNow:
			ended[c.Node] = true
		default:
			refused++
			switch accepted := slices.ContainsFunc(answer.Ended, func(end rules.Ending) bool { return end.Completion == c }); {
			case accepted && !v.allowed:
				j.find(v.check, subject, "the answer accepts the end, but %s", v.why)
			case v.allowed && !ended[c.Node]:
				j.find(ValidRefused, subject, "the FSM refused the end, but the drain has nothing left to wait for: %q", whyRefused(answer.Refused, c.Node, ""))
			}
		}
	}
	for _, end := range answer.Ended {
		if !ended[end.Node] {
			j.find(WrongAnswer, Violation{Drain: end.Drain, Node: end.Node}, "the answer states that the drain ended, but it runs")
		}
	}
	if len(answer.Ended) != len(ended) || len(answer.Refused) != refused {
		j.find(WrongAnswer, Violation{}, "the entry ended %d drains and refused %d ends, but the answer states %d and %d",
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
		if who != nil {
			why = "allocation " + string(who.id()) + " " + why
		}
		return fails(EndedEarly, why)
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

// judgeRecordRow judges the change of an entry to the record of an ended drain. Only its
// unconfirmed allocations change, which the witness judges. It is deleted only to make room for
// others.
func (j *truthJudge) judgeRecordRow(c change[cluster.Drain]) {
	subject := Violation{Drain: newest(c).ID, Node: newest(c).NodeID}
	switch {
	case c.before == nil:
	case c.after != nil:
		before := *c.before
		if before.Unconfirmed != nil {
			before.Unconfirmed = c.after.Unconfirmed
		}
		if !same(&j.dump, &before, c.after) {
			j.find(SecondOutcome, subject, "the entry changed the record of the drain, outcome %q to %q", c.before.Outcome, c.after.Outcome)
		}
	default:
		ofNode := 0
		//lint:order a count
		for _, d := range j.tables.records {
			if d.NodeID == c.before.NodeID {
				ofNode++
			}
		}
		if ofNode < cluster.MaxDrainRecordsPerNode && len(j.tables.records) < cluster.MaxDrainRecords {
			j.find(NoRecord, subject, "the entry deleted the record of the drain, although its node has only %d records", ofNode)
		}
	}
}
