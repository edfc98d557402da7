package swarm

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
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
		o.count("entry/late", w.unknown)
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
	case *shims.PauseDrains:
		o.paused(a, m)
	case *shims.ConfirmDrain:
		r, is := a.Response.(shims.DrainConfirmed)
		o.count("drain/confirmed", is && r.Allocs > 0)
	case *shims.NodeDeregister:
		for _, id := range m.Nodes {
			o.count(outcomeEvent(cluster.OutcomeNodeGone), a.Before.Node(id).Draining())
		}
	case *shims.JobRegister:
		o.edited(a, m)
		o.count("service/edited", draining(a.After) > 0 && gives(a, m))
	case *shims.NodeUpdateStatus:
		o.returned(a, m.Node)
	case *shims.NodeRegister:
		o.returned(a, m.Node.ID)
		o.count("device/sick-in-use", loses(a, m.Node.ID))
	case *shims.AllocClientUpdate:
		o.judged(a, m)
		o.left(m)
		o.gaveUp(a, m)
		o.moved(a, m)
		o.checked(a, m)
		countEndedBeside(o, a, m)
	case *shims.VolumeDetach:
		o.forced(a, m)
	case *shims.ClaimUpdate:
		o.freed(a, m)
	case *shims.JobDeregister:
		o.count("drain/purged", purged(a, m))
	case *shims.ApplyPlan:
		if r, is := a.Response.(shims.PlanApplied); is {
			o.count("plan/refused", len(r.Refused) > 0)
			o.count("plan/blocked", r.Accepted.Blocked != nil)
			o.equipped(a, r.Accepted.Places)
			o.ported(a, r.Accepted.Places)
			for _, placed := range r.Accepted.Places {
				o.count("alloc/permitted-again", permittedAgain(a.After, placed))
				o.count("core/given", placed.Cores != nil && draining(a.After) > 0)
				o.count("service/given", placed.Job.Group(placed.TaskGroup).HasServices() && draining(a.After) > 0)
			}
			o.planned(a, r.Accepted)
		}
	}
}

// planned counts what the scheduler decides about allocations whose nodes were away.
func (o *Observer) planned(a shims.Applied, p *cluster.Plan) {
	v := a.After.WorkView()
	for _, s := range p.Stops {
		alloc := a.After.Alloc(s.Alloc)
		if alloc == nil {
			continue
		}
		o.count("plan/holds-lost", s.Lost && scheduler.IsHeld(v, alloc))
		if job := a.After.Job(alloc.JobKey()); s.Description == cluster.DescReconnected && job != nil {
			g := job.Group(alloc.TaskGroup)
			o.count("plan/keeps-replacement", g != nil && g.Disconnect.KeepReplacement)
		}
	}
}

// permittedAgain reports whether an allocation replaces more failed ones, one after the other, than its policy permits
// within the interval: the first of them have left it.
func permittedAgain(s *statestore.Snapshot, a *cluster.Allocation) bool {
	g := a.Job.Group(a.TaskGroup)
	if g == nil || g.Reschedule == nil || g.Reschedule.Unlimited {
		return false
	}
	failed := 0
	for last := s.Alloc(a.PreviousAllocation); last != nil && last.DesiredDescription == cluster.DescRescheduled && failed <= g.Reschedule.Attempts; last = s.Alloc(last.PreviousAllocation) {
		failed++
	}
	return failed > g.Reschedule.Attempts
}

// gaveUp counts the ends of allocations that the scheduler does not place again, because they failed too
// often in a row.
func (o *Observer) gaveUp(a shims.Applied, m *shims.AllocClientUpdate) {
	for _, r := range m.Reports {
		before, after := a.Before.Alloc(r.Alloc), a.After.Alloc(r.Alloc)
		if before != nil && !before.ClientTerminal() && after != nil && after.ClientTerminal() && !after.ServerTerminal() {
			o.count("alloc/given-up", slices.Contains(scheduler.GivenUp(a.After.WorkView(), after.JobKey()), r.Alloc))
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
		o.count("alloc/worsened", before.JudgedHealthy() && !after.JudgedHealthy())
		o.count("alloc/recovered", !before.JudgedHealthy() && after.JudgedHealthy())
	}
}

// marked counts the events of an entry of marks.
func (o *Observer) marked(a shims.Applied, m *shims.AllocUpdateDesiredTransition, r shims.MarksApplied) {
	o.count("marks/reevaluated", len(m.Reevaluate) > 0)
	o.count("marks/refused", len(r.Refused) > 0)
	o.count("marks/partly-refused", len(r.Refused) > 0 && len(r.Accepted) > 0)
	refused := map[cluster.AllocID]bool{}
	for _, f := range r.Refused {
		refused[f.Alloc] = true
	}
	for _, mark := range m.Marks.Marks {
		if n := a.Before.Node(mark.Node); refused[mark.Alloc] && n != nil {
			o.count("marks/of-cancelled", n.Drain == nil)
			o.count("marks/of-redrained", n.Drain != nil && n.Drain.ID != mark.Drain)
			o.count("marks/of-old-revision", n.Drain != nil && n.Drain.ID == mark.Drain && n.Drain.Revision != mark.Revision)
		}
	}
	for i, mark := range r.Accepted {
		if mark.Surge {
			countRequest(o, a, mark)
			continue
		}
		o.count(classEvent(mark.Class), true)
		countReplaced(o, a, mark)
		o.count("marks/of-many-nodes", i > 0 && r.Accepted[i-1].Group == mark.Group && r.Accepted[i-1].Node != mark.Node)
		o.accepted(a, mark)
	}
}

// accepted counts the events of one mark.
func (o *Observer) accepted(a shims.Applied, mark rules.Mark) {
	alloc, node := a.Before.Alloc(mark.Alloc), a.Before.Node(mark.Node)
	if alloc == nil || node == nil || node.Drain == nil {
		return
	}
	o.count("marks/of-late", alloc.CreateIndex > node.Drain.CreateIndex)
	o.count("drain/deadline-away", mark.Class == cluster.MarkDeadline && node.Status == cluster.NodeDisconnected)
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
			o.count("drain/stage-across-terms", begun < o.term)
			return
		}
	}
}

// completed counts the events of an entry of completions.
func (o *Observer) completed(a shims.Applied, m *shims.NodesDrainComplete, r shims.CompletionsApplied) {
	o.count("end/refused", len(r.Refused) > 0)
	o.count("end/of-many", len(r.Ended) > 1)
	for _, e := range r.Ended {
		o.count(outcomeEvent(e.Outcome), true)
		o.count("end/leaves-running", e.StillStopping > 0)
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
		o.count("end/of-redrained", !same)
		paused := !n.Drain.PausedSince(a.Before.DrainView().DrainPause()).IsZero()
		o.count("end/of-paused", same && paused)
		o.count("end/of-old-revision", same && n.Drain.Revision != c.Revision && !paused)
		o.count("end/too-early", same && n.Drain.Revision == c.Revision && !paused)
	}
}

// requested counts the events of a drain request.
func (o *Observer) requested(a shims.Applied, m *shims.NodeUpdateDrain, r shims.DrainRequestApplied) {
	before, after := a.Before.Node(m.Node), a.After.Node(m.Node)
	o.count("drain/repeated", r.Repeated)
	o.count("drain/repeated-after-end", r.Repeated && (before.Drain == nil || before.Drain.ID != r.Drain))
	o.count(outcomeEvent(cluster.OutcomeCancelled), before.Draining() && !after.Draining())
	o.count("drain/cancel-withdraws", r.Withdrawn > 0)
	countWithdrawn(o, a, m)
	o.count("drain/cancel-too-late", len(r.Stopping) > 0)
	o.count("drain/many", !before.Draining() && after.Draining() && draining(a.After) >= 3)
}

// paused counts the events of a request to pause or to resume.
func (o *Observer) paused(a shims.Applied, m *shims.PauseDrains) {
	r, is := a.Response.(shims.DrainPauseApplied)
	held := is && m.Pause && r.Changed && len(r.Drains) > 0
	o.count("drain/paused", held && m.Node != "")
	o.count("drain/all-paused", held && m.Node == "")
	o.count("drain/resume-moves-deadline", is && !m.Pause && r.Changed &&
		slices.ContainsFunc(r.Drains, func(d cluster.PausedDrain) bool { return !d.ForceDeadline.IsZero() }))
	o.count("drain/resume-under-all", is && !m.Pause && !r.Changed && r.All != nil)
}

// purged reports whether a purge stops or deletes allocations that run on draining nodes.
func purged(a shims.Applied, m *shims.JobDeregister) bool {
	for alloc := range a.Before.AllocsByJob(m.Job) {
		if m.Purge && !alloc.ClientTerminal() && a.Before.Node(alloc.NodeID).Draining() {
			return true
		}
	}
	return false
}

// These events are operations while nodes drain. If the generator stopped drawing them, no other event
// would become rarer.

// clockSet counts changes of the leader's clock, and terms that begin with a wrong clock.
func (o *Observer) clockSet(term int, ahead time.Duration) {
	begins := term > o.clockTerm
	o.count("clock/skewed", begins && ahead != 0 && ahead.Abs() <= maxSkew)
	if !begins && term == o.clockTerm {
		o.count("clock/forward", ahead-o.ahead > maxSkew)
		o.count("clock/back", o.ahead-ahead > maxSkew)
	}
	o.clockTerm, o.ahead = max(o.clockTerm, term), ahead
}

// edited counts the changes of a job while a node drains.
func (o *Observer) edited(a shims.Applied, m *shims.JobRegister) {
	before := a.Before.Job(m.Job.Key())
	if before == nil || draining(a.Before) == 0 {
		return
	}
	limit, scale, groups := false, false, len(before.TaskGroups) != len(m.Job.TaskGroups)
	for _, g := range m.Job.TaskGroups {
		was := before.Group(g.Name)
		if was == nil {
			groups = true
			continue
		}
		limit = limit || limitOf(was) != limitOf(g)
		scale = scale || was.Count != g.Count
	}
	o.count("job/limit", limit)
	o.count("job/scaled", scale)
	o.count("job/regrouped", groups)
}

func limitOf(g *cluster.TaskGroup) int {
	if g.Migrate == nil {
		return cluster.DefaultMaxParallel
	}
	return g.Migrate.MaxParallel
}

// returned counts a node that returns after it was unreachable or unknown.
func (o *Observer) returned(a shims.Applied, id cluster.NodeID) {
	o.count("node/returned", draining(a.Before) > 0 && !a.Before.Node(id).Reachable() && a.After.Node(id).Reachable())
}

// equipped counts the placements with devices.
func (o *Observer) equipped(a shims.Applied, places []*cluster.Allocation) {
	for _, placed := range places {
		if placed.Devices == nil {
			continue
		}
		o.count("device/given", draining(a.After) > 0)
		o.count("device/two-requests", len(placed.Devices.All) > 1)
		lost := false
		for other := range a.Before.AllocsByNode(placed.NodeID) {
			lost = lost || other.ClientStatus == cluster.ClientLost && other.Devices != nil && slices.ContainsFunc(other.Devices.All, func(d cluster.AssignedDevice) bool {
				return has(placed.Devices, d)
			})
		}
		o.count("device/of-lost", lost)
	}
}

// ported counts the placements with ports.
func (o *Observer) ported(a shims.Applied, places []*cluster.Allocation) {
	for _, placed := range places {
		if placed.Ports == nil {
			continue
		}
		o.count("port/given", draining(a.After) > 0)
		lost := false
		for other := range a.Before.AllocsByNode(placed.NodeID) {
			lost = lost || other.ClientStatus == cluster.ClientLost && other.Ports != nil && slices.ContainsFunc(other.Ports.All, func(p cluster.AssignedPort) bool {
				return slices.ContainsFunc(placed.Ports.All, func(q cluster.AssignedPort) bool { return p.Number == q.Number })
			})
		}
		o.count("port/of-lost", lost)
	}
}

// has reports whether one of the devices is in the list.
func has(all *cluster.AssignedDevices, one cluster.AssignedDevice) bool {
	return slices.ContainsFunc(all.All, func(d cluster.AssignedDevice) bool {
		return d.Kind == one.Kind && slices.ContainsFunc(d.IDs, func(id string) bool { return slices.Contains(one.IDs, id) })
	})
}

// loses reports whether a node that registers again has a device less, or an unhealthy one more, which an
// allocation has.
func loses(a shims.Applied, id cluster.NodeID) bool {
	before, after := a.Before.Node(id), a.After.Node(id)
	if before == nil || after == nil || len(before.Devices) == 0 {
		return false
	}
	for alloc := range a.After.WorkView().LiveAllocsByNode(id) {
		if alloc.Devices == nil {
			continue
		}
		for _, d := range alloc.Devices.All {
			for _, one := range d.IDs {
				if hasHealthy(before, d.Kind, one) && !hasHealthy(after, d.Kind, one) {
					return true
				}
			}
		}
	}
	return false
}

// hasHealthy reports whether a node has a device, and it is healthy.
func hasHealthy(n *cluster.Node, kind cluster.DeviceKind, id string) bool {
	g := n.DeviceGroup(kind)
	if g == nil {
		return false
	}
	d := g.Device(id)
	return d != nil && d.Healthy
}

// left counts the reports of ends that name volumes.
func (o *Observer) left(m *shims.AllocClientUpdate) {
	for _, r := range m.Reports {
		ended := r.ClientStatus == cluster.ClientComplete || r.ClientStatus == cluster.ClientFailed
		o.count("volumes/left", ended && r.VolumeHolds.Count() > 0)
	}
}

// moved counts the moves of data that end.
func (o *Observer) moved(a shims.Applied, m *shims.AllocClientUpdate) {
	for _, r := range m.Reports {
		before, after := a.Before.Alloc(r.Alloc), a.After.Alloc(r.Alloc)
		if before == nil || after == nil {
			continue
		}
		out := after.DataOut.StateOf()
		o.count("data/kept-too-long", before.DataOut.Kept() && out == cluster.DataGivenUp)
		if in := after.DataIn.StateOf(); !before.DataIn.StateOf().Ended() {
			o.count("data/copied", in == cluster.DataCopied)
			o.count("data/given-up", in == cluster.DataGivenUp)
		}
	}
}

// freed counts the claims that the servers free on nodes that they do not reach, and those that wait for a
// controller.
func (o *Observer) freed(a shims.Applied, m *shims.ClaimUpdate) {
	for _, c := range m.Changes {
		before, after := a.Before.WorkView().Claim(c.Claim), a.After.WorkView().Claim(c.Claim)
		o.count("claim/freed-away", c.Cause == cluster.CauseUnreachable && before != nil && before.State.OnNode() && (after == nil || !after.State.OnNode()))
		o.count("claim/for-controller", c.Cause == cluster.CauseDetached && before != nil && after == nil)
	}
}

// forced counts the detaches that take a volume from an allocation that has not ended.
func (o *Observer) forced(a shims.Applied, m *shims.VolumeDetach) {
	for before := range a.Before.ClaimsOnNode(m.Node) {
		if before.Volume != m.Volume || !before.State.OnNode() {
			continue
		}
		after := a.After.WorkView().Claim(before.Key())
		alloc := a.Before.Alloc(before.Alloc)
		o.count("claim/forced", alloc != nil && !alloc.ClientTerminal() && (after == nil || !after.State.OnNode()))
	}
}
