package swarm

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// writeID identifies an entry of a drainer by an evaluation or a drain in it. It is empty for other
// entries. Two completions of one drain have the same id, because they are equivalent.
func writeID(m shims.Message) string {
	switch m := m.(type) {
	case *shims.AllocUpdateDesiredTransition:
		if len(m.Evals) > 0 {
			return string(m.Evals[0].ID)
		}
	case *shims.NodesDrainComplete:
		if len(m.Completions.Completions) > 0 {
			return "end of " + string(m.Completions.Completions[0].Drain)
		}
	}
	return ""
}

// applied counts the events of an entry.
func (o *Observer) applied(a shims.Applied) {
	if w := o.writesByID[writeID(a.Message)]; w != nil {
		w.applied = true
		o.count(EntryLate, w.unknown)
	}
	switch m := a.Message.(type) {
	case *shims.AllocUpdateDesiredTransition:
		if r, is := a.Response.(shims.MarksApplied); is {
			o.marked(a, m, r)
		}
	case *shims.NodesDrainComplete:
		if r, is := a.Response.(shims.CompletionsApplied); is {
			o.completed(a, m, r)
		}
	case *shims.NodeUpdateDrain:
		if r, is := a.Response.(shims.DrainRequestApplied); is {
			o.requested(a, m, r)
		}
	case *shims.NodeDeregister:
		for _, id := range m.Nodes {
			o.count(outcomeEvent(cluster.OutcomeNodeGone), a.Before.Node(id).Draining())
		}
	case *shims.JobRegister:
		o.edited(a, m)
	case *shims.NodeUpdateStatus:
		o.returned(a, m.Node)
	case *shims.NodeRegister:
		o.returned(a, m.Node.ID)
		o.count(DeviceSickInUse, loses(a, m.Node.ID))
	case *shims.AllocClientUpdate:
		o.judged(a, m)
		o.left(m)
	case *shims.VolumeDetach:
		o.forced(a, m)
	case *shims.ClaimUpdate:
		o.freed(a, m)
	case *shims.JobDeregister:
		o.count(PurgedRunning, purged(a))
	case *shims.ApplyPlan:
		if r, is := a.Response.(shims.PlanApplied); is {
			o.count(PlanRefused, len(r.Refused) > 0)
			o.count(PlanBlocked, r.Accepted.Blocked != nil)
			o.equipped(a, r.Accepted.Places)
		}
	}
}

// judged counts the verdicts that change while nodes drain.
func (o *Observer) judged(a shims.Applied, m *shims.AllocClientUpdate) {
	drains := draining(a.After) > 0
	for _, r := range m.Reports {
		before, after := a.Before.Alloc(r.Alloc), a.After.Alloc(r.Alloc)
		if !drains || before == nil || after == nil || !before.HasVerdict() {
			continue
		}
		o.count(Worsened, before.JudgedHealthy() && !after.JudgedHealthy())
		o.count(Recovered, !before.JudgedHealthy() && after.JudgedHealthy())
	}
}

// marked counts the events of an entry of marks.
func (o *Observer) marked(a shims.Applied, m *shims.AllocUpdateDesiredTransition, r shims.MarksApplied) {
	o.count(Reevaluated, len(m.Reevaluate) > 0)
	o.count(MarksRefused, len(r.Refused) > 0)
	o.count(MarksPartlyRefused, len(r.Refused) > 0 && len(r.Accepted) > 0)
	refused := map[cluster.AllocID]bool{}
	for _, f := range r.Refused {
		refused[f.Alloc] = true
	}
	for _, mark := range m.Marks.Marks {
		if n := a.Before.Node(mark.Node); refused[mark.Alloc] && n != nil {
			o.count(MarksOfCancelled, n.Drain == nil)
			o.count(MarksOfRedrained, n.Drain != nil && n.Drain.ID != mark.Drain)
			o.count(MarksOfOldRevision, n.Drain != nil && n.Drain.ID == mark.Drain && n.Drain.Revision != mark.Revision)
		}
	}
	for i, mark := range r.Accepted {
		o.seen[classEvent(mark.Class)]++
		o.count(MarksOfManyNodes, i > 0 && r.Accepted[i-1].Group == mark.Group && r.Accepted[i-1].Node != mark.Node)
		o.accepted(a, mark)
	}
}

// accepted counts the events of one mark.
func (o *Observer) accepted(a shims.Applied, mark rules.Mark) {
	alloc, node := a.Before.Alloc(mark.Alloc), a.Before.Node(mark.Node)
	if alloc == nil || node == nil || node.Drain == nil {
		return
	}
	o.count(MarksOfLate, alloc.CreateIndex > node.Drain.CreateIndex)
	o.count(DeadlineAway, mark.Class == cluster.MarkDeadline && node.Status == cluster.NodeDisconnected)
	stage := alloc.Stage()
	if _, begun := o.stages[stageKey{mark.Drain, stage}]; begun {
		return
	}
	o.stages[stageKey{mark.Drain, stage}] = o.term
	o.stageEnds(mark.Drain, stage)
}

// stageEnds counts the end of the newest stage before another, if it began in an earlier term.
func (o *Observer) stageEnds(d cluster.DrainID, before cluster.Stage) {
	for s := before; s > 0; s-- {
		if begun, has := o.stages[stageKey{d, s - 1}]; has {
			o.count(StageAcrossTerms, begun < o.term)
			return
		}
	}
}

// completed counts the events of an entry of completions.
func (o *Observer) completed(a shims.Applied, m *shims.NodesDrainComplete, r shims.CompletionsApplied) {
	o.count(EndRefused, len(r.Refused) > 0)
	o.count(EndOfMany, len(r.Ended) > 1)
	for _, e := range r.Ended {
		o.seen[outcomeEvent(e.Outcome)]++
		o.count(EndLeavesRunning, e.StillStopping > 0)
		o.stageEnds(e.Drain, cluster.StageCount)
	}
	refused := map[cluster.NodeID]bool{}
	for _, f := range r.Refused {
		refused[f.Node] = true
	}
	for _, c := range m.Completions.Completions {
		n := a.Before.Node(c.Node)
		if !refused[c.Node] || n == nil || n.Drain == nil {
			continue
		}
		same := n.Drain.ID == c.Drain
		o.count(EndOfRedrained, !same)
		o.count(EndOfOldRevision, same && n.Drain.Revision != c.Revision)
		o.count(EndTooEarly, same && n.Drain.Revision == c.Revision)
	}
}

// requested counts the events of a drain request.
func (o *Observer) requested(a shims.Applied, m *shims.NodeUpdateDrain, r shims.DrainRequestApplied) {
	before, after := a.Before.Node(m.Node), a.After.Node(m.Node)
	o.count(Repeated, r.Repeated)
	o.count(RepeatedAfterEnd, r.Repeated && (before.Drain == nil || before.Drain.ID != r.Drain))
	o.count(outcomeEvent(cluster.OutcomeCancelled), before.Draining() && !after.Draining())
	o.count(CancelWithdraws, r.Withdrawn > 0)
	o.count(CancelTooLate, len(r.Stopping) > 0)
	o.count(ManyDrains, !before.Draining() && after.Draining() && draining(a.After) >= 3)
}

// purged reports whether a purge deletes allocations that run on draining nodes.
func purged(a shims.Applied) bool {
	for n := range a.After.DrainingNodes() {
		if before := a.Before.Node(n.ID); before.Draining() && n.Drain.PurgedRunning > before.Drain.PurgedRunning {
			return true
		}
	}
	return false
}
