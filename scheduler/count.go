package scheduler

import (
	"cmp"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// slots are the allocations of a group of a service or batch job, sorted by their relation
// to the slots of the group.
type slots struct {
	// done and spent count the slots that ended allocations hold.
	done, spent int
	// delayed are the ended allocations that hold their slots until their replacements are due.
	delayed []*cluster.Allocation
	// returning counts the allocations whose client must report them first. They hold a slot if one
	// is left, and none of them is stopped.
	returning int
	kept      []*cluster.Allocation
	// marked are the marked allocations to stop.
	marked []marked
	// outdated are stopped because the job has a newer version.
	outdated []*cluster.Allocation
	// vacated are the allocations that left their slots and have no replacement.
	vacated []*cluster.Allocation
	// canaries are the canaries to replace, each by a canary.
	canaries []*cluster.Allocation
	// beside are the allocations to replace by a standby: those for which a drain requests one, and standbys.
	beside []*cluster.Allocation
	names  *names
}

// marked is an allocation to stop because it is marked.
type marked struct {
	*cluster.Allocation
	// lose means that its client cannot report the stop.
	lose bool
}

// planCount plans a group that runs in a number of copies.
func (p *planner) planCount(g *cluster.TaskGroup, allocs []*cluster.Allocation) {
	s := &slots{names: &names{job: p.job, group: g, used: make(map[string]bool)}}
	for _, a := range allocs {
		switch {
		case a.Canary():
			p.sortCanary(g, s, a)
		case a.Standby:
			sortStandby(p, g, s, a)
		default:
			p.sortSlot(g, s, a)
		}
	}
	stopBlocked(p, g, s)
	p.shedSurplus(g, s)
	s.kept, s.outdated = replaceOutdated(p, g, allocs, s.kept, -s.lacking(g))
	s.beside = append(s.beside, requesting(p.jobView, s.kept)...)
	p.fill(g, s)
}

// sortSlot sorts one allocation by its standing, and marks it as lost if necessary.
func (p *planner) sortSlot(g *cluster.TaskGroup, s *slots, a *cluster.Allocation) {
	standing, lose := p.stand(g, a)
	if lose && standing != migrating {
		p.draft.lose(a)
	}
	switch standing {
	case done:
		s.done++
		s.names.use(a.Name)
	case spent:
		s.spent++
		s.names.use(a.Name)
	case delayed:
		s.delayed = append(s.delayed, a)
		s.names.use(a.Name)
	case kept:
		s.kept = append(s.kept, a)
	case migrating:
		if a.DesiredTransition.Surge != "" && a.NextAllocation != "" {
			p.draft.migrate(a, cluster.DescMigrating, lose) // its replacement has the slot
			return
		}
		s.marked = append(s.marked, marked{a, lose})
	case away:
		disconnected := isDisconnected(p.view.Node(a.NodeID))
		if disconnected {
			p.draft.await(g, a)
		}
		s.sortAway(g, a, disconnected)
	case lost, ended, owed:
		s.vacate(a)
	case settled:
		// A drain would wait for the replacement of failed work that the job does not have any more.
		if g.Reschedule != nil && a.ClientStatus == cluster.ClientFailed && !a.ServerTerminal() && a.NextAllocation == "" {
			p.draft.stop(a, cluster.DescNotNeeded)
		}
	}
}

// sortAway sorts an allocation on a node that is disconnected, or that has returned.
func (s *slots) sortAway(g *cluster.TaskGroup, a *cluster.Allocation, disconnected bool) {
	switch {
	case !disconnected:
		s.returning++
		s.names.use(a.Name)
	case awaitsSlot(g, a):
		s.spent++
		s.names.use(a.Name)
	default:
		s.vacate(a)
	}
}

// vacate adds an allocation that left its slot, unless it has a replacement.
func (s *slots) vacate(a *cluster.Allocation) {
	if a.NextAllocation == "" {
		s.vacated = append(s.vacated, a)
	}
}

// sortCanary is sortSlot for a canary. A canary has a slot of its own, besides Count.
func (p *planner) sortCanary(g *cluster.TaskGroup, s *slots, a *cluster.Allocation) {
	if moveExtra(p, g, a) {
		s.canaries = append(s.canaries, a)
	}
}

// moveExtra acts on an allocation that has no slot of Count: a canary or a standby. It reports whether the allocation is
// replaced by one of its kind. One on a disconnected node is not replaced before it is lost.
func moveExtra(p *planner, g *cluster.TaskGroup, a *cluster.Allocation) (replaced bool) {
	standing, lose := p.stand(g, a)
	switch standing {
	case migrating:
		p.draft.migrate(a, cluster.DescMigrating, lose)
	case away:
		if isDisconnected(p.view.Node(a.NodeID)) {
			p.draft.await(g, a)
		}
	case delayed:
		p.draft.delay(a)
	default:
		if lose {
			p.draft.lose(a)
		}
	}
	return standing == migrating || standing == lost || standing == ended || standing == owed
}

// shedSurplus stops the surplus above the group's count: marked allocations first, then
// those with the least worth.
func (p *planner) shedSurplus(g *cluster.TaskGroup, s *slots) {
	surplus := s.done + s.spent + len(s.delayed) + len(s.kept) + len(s.marked) - g.Count
	// Slots of allocations that failed for good go before those that wait for replacements, and these before
	// those of running ones.
	forgone := min(max(surplus, 0), s.spent)
	surplus -= forgone
	s.spent -= forgone
	for ; surplus > 0 && len(s.delayed) > 0; surplus-- {
		last := s.delayed[len(s.delayed)-1]
		s.delayed = s.delayed[:len(s.delayed)-1]
		p.draft.stop(last, cluster.DescNotNeeded)
	}
	for _, a := range s.delayed {
		p.draft.delay(a)
	}
	for ; surplus > 0 && len(s.marked) > 0; surplus-- {
		last := s.marked[len(s.marked)-1]
		s.marked = s.marked[:len(s.marked)-1]
		if last.lose {
			p.draft.lose(last.Allocation)
		} else {
			p.draft.stop(last.Allocation, cluster.DescNotNeeded)
		}
	}
	surplus, waiting := p.reconcile(g, s, surplus)
	if surplus <= 0 {
		return
	}
	paired := map[cluster.AllocID]bool{}
	for _, w := range waiting {
		paired[w.original.ID], paired[w.replacement.ID] = true, true
	}
	stopped := map[cluster.AllocID]bool{}
	stop := func(a *cluster.Allocation) {
		switch standby := standbyOf(p.jobView, a); {
		case stopped[a.ID]: // two that came back may have one replacement
		case standby != nil:
			p.draft.stop(a, cluster.DescNotNeeded)
			p.draft.stop(standby, cluster.DescNotNeeded)
		case p.successorRuns(a):
			p.draft.stop(a, cluster.DescReconnected)
		default:
			p.draft.stop(a, cluster.DescNotNeeded)
		}
		stopped[a.ID] = true
	}
	slices.SortStableFunc(s.kept, p.byWorth)
	for _, last := range slices.Backward(s.kept) {
		if surplus > 0 && !paired[last.ID] {
			surplus--
			stop(last)
		}
	}
	for _, w := range waiting[:min(surplus, len(waiting))] {
		stop(w.original)
		stop(w.replacement)
	}
	s.kept = slices.DeleteFunc(s.kept, func(a *cluster.Allocation) bool { return stopped[a.ID] })
}

// byWorth orders allocations by their worth, the highest first. Among equals an allocation
// with a running replacement comes last.
func (p *planner) byWorth(a, b *cluster.Allocation) int {
	if order := cmp.Compare(worth(b), worth(a)); order != 0 {
		return order
	}
	switch spare := p.successorRuns(a); {
	case spare == p.successorRuns(b):
		return 0
	case spare:
		return 1
	}
	return -1
}

// worth is how much the group loses with the allocation.
func worth(a *cluster.Allocation) int {
	switch {
	case a.ClientStatus == cluster.ClientPending:
		return 0
	case a.ClientStatus == cluster.ClientUnknown, a.HasVerdict() && !a.JudgedHealthy():
		return 1
	case !a.HasVerdict():
		return 2
	}
	return 3
}

// lacking is how many slots of the group no allocation holds. It is negative if the group has more than its count.
func (s *slots) lacking(g *cluster.TaskGroup) int {
	return g.Count - s.done - s.spent - len(s.delayed) - s.returning - len(s.kept)
}

// fill stops the marked allocations and places the missing ones: first replacements of
// marked allocations, then of vacated slots, the latest first, then new allocations.
func (p *planner) fill(g *cluster.TaskGroup, s *slots) {
	same := make(map[cluster.NodeID]int)
	for _, a := range s.kept {
		same[a.NodeID]++
		s.names.use(a.Name)
	}
	slices.SortStableFunc(s.vacated, byDebt)
	lacking := s.lacking(g)
	var replaced []*cluster.Allocation
	for _, a := range s.marked {
		p.draft.migrate(a.Allocation, cluster.DescMigrating, a.lose)
		switch {
		case !isStopOnly(a.Allocation):
			replaced = append(replaced, a.Allocation)
		case p.isSameWork(a.Allocation):
			s.names.use(a.Name)
		default: // A new allocation does the work of the present version. It replaces none.
			continue
		}
		lacking--
	}
	replaced = append(replaced, s.outdated...)
	lacking -= len(s.outdated)
	taken := min(max(lacking, 0), len(s.vacated))
	replaced = append(replaced, s.vacated[:taken]...)
	lacking -= taken
	for _, a := range s.vacated[taken:] {
		// Otherwise the row would be kept for its replacement for ever.
		if s.returning == 0 && awaited(p.jobView, a) != nil {
			p.draft.stop(a, cluster.DescNotNeeded)
		}
	}
	p.placeAll(g, s, same, replaced, max(lacking, 0))
}

// byDebt orders vacated allocations: those without a stop come before those that an earlier
// plan stopped, whose slots may have gone to others. Among equals the latest comes first.
func byDebt(a, b *cluster.Allocation) int {
	if a.ServerTerminal() != b.ServerTerminal() {
		if b.ServerTerminal() {
			return -1
		}
		return 1
	}
	return cmp.Compare(b.ModifyIndex, a.ModifyIndex)
}

// placeAll places replacements and then new allocations, as many as fit.
func (p *planner) placeAll(g *cluster.TaskGroup, all *slots, same map[cluster.NodeID]int, replaced []*cluster.Allocation, fresh int) {
	wanted := len(all.canaries) + len(replaced) + fresh + len(all.beside)
	if wanted == 0 {
		return
	}
	placer := newPlacer(p.world, p.job, g, p.demands(g), same, p.draft.plan.Places, leavers(p.draft.plan.Stops))
	placed := 0
	for _, previous := range all.canaries {
		if s := choose(placer, g, previous.Name, previous); s.node != nil {
			p.draft.place(g, previous.Name, previous, s)
			placed++
		}
	}
	for _, previous := range replaced {
		name := all.names.wanted(previous.Name)
		if s := choose(placer, g, name, previous); s.node != nil {
			all.names.use(name)
			if previous.NextAllocation != "" {
				previous = nil // it came back after its replacement: it has a successor already
			}
			p.draft.place(g, name, previous, s)
			placed++
		} else if ownVolumes(g) {
			all.names.use(name) // no other allocation of this plan can have its volumes either
		}
	}
	for _, previous := range all.beside {
		if s := choose(placer, g, previous.Name, previous); s.node != nil {
			p.draft.placeBeside(g, previous, s)
			placed++
		}
	}
	for ; fresh > 0 && p.draft.most > 0; fresh-- {
		name := all.names.wanted("")
		s := placer.place(name, "")
		if s.node == nil && ownVolumes(g) {
			all.names.use(name) // another name has other volumes
			continue
		}
		if s.node == nil {
			p.draft.queue(g, wanted-placed) // if one fits nowhere, the others do not fit either
			return
		}
		all.names.use(name)
		p.draft.place(g, name, nil, s)
		placed++
	}
	p.draft.queue(g, wanted-placed-fresh)
}

// ownVolumes reports whether the volumes of an allocation of the group follow from its name.
func ownVolumes(g *cluster.TaskGroup) bool {
	return slices.ContainsFunc(g.Volumes, func(r cluster.VolumeRequest) bool { return r.PerAlloc })
}

// choose reserves a node for the replacement of an allocation. A failed allocation with a
// sticky disk returns to its data. All others avoid their previous node.
func choose(p *placer, g *cluster.TaskGroup, name string, previous *cluster.Allocation) spot {
	if g.EphemeralDisk.Sticky && !previous.Marked() {
		if s := p.placeOn(name, previous.NodeID); s.node != nil {
			return s
		}
	}
	if !previous.Marked() && !previous.ClientTerminal() {
		return p.place(name, "") // its node is as good as any other
	}
	return p.place(name, previous.NodeID)
}
