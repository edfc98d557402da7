package scheduler

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
)

// berth is a group of a system or sysbatch job on one node.
type berth struct {
	// done means that the group must not run on the node again.
	done bool
	// kept are the allocations that run there. One of them stays.
	kept []*cluster.Allocation
	// vacated is the latest allocation that left and has no replacement, or nil.
	vacated *cluster.Allocation
}

// planEveryNode plans a group that runs once on every ready node that fits.
func (p *planner) planEveryNode(g *cluster.TaskGroup, allocs []*cluster.Allocation) {
	berths := make(map[cluster.NodeID]*berth)
	var order []*berth // in the order of their first allocation, to range over
	for _, a := range allocs {
		b := berths[a.NodeID]
		if b == nil {
			b = &berth{}
			berths[a.NodeID] = b
			order = append(order, b)
		}
		p.sortBerth(g, b, a)
	}
	var kept []*cluster.Allocation
	for _, b := range order {
		p.shedDoubles(b)
		kept = append(kept, b.kept...)
	}
	_, outdated := replaceOutdated(p, g, allocs, kept, 0)
	for _, a := range outdated {
		b := berths[a.NodeID]
		b.kept, b.vacated = nil, a
	}
	need, missing, demands := g.Resources(), 0, p.demands(g)
	rooms := p.world.ready()
	for i := range rooms {
		r := &rooms[i]
		b := berths[r.node.ID]
		if !accepts(r.node, p.job, g, p.view.ClusterVersion()) || (b != nil && (b.done || len(b.kept) > 0)) || demands.Refusal(r.node) != "" {
			continue
		}
		name := allocName(p.job, g, 0)
		if len(g.Volumes) > 0 && p.world.claims().Unfit(p.job.Namespace, g, name, r.node) != "" {
			continue
		}
		s, fits := p.spotOn(r, demands.Devices())
		if !r.fits(need) || !fits || !p.world.hasFree(g, r.node) || len(g.Volumes) > 0 && p.world.claims().Refusal(p.job.Namespace, g, name, r.node) != "" {
			missing++
			continue
		}
		var previous *cluster.Allocation
		if b != nil {
			previous = b.vacated
		}
		if previous == nil && p.draft.most <= 0 {
			continue
		}
		r.take(need)
		if s.devices != nil {
			p.world.heldOn(r.node.ID).devices.Add(s.devices)
		}
		p.draft.place(g, name, previous, s)
	}
	p.draft.queue(g, missing)
}

// spotOn chooses devices on the node, and reports false if there are not enough.
func (p *planner) spotOn(r *room, devices feasible.Devices) (s spot, ok bool) {
	s.node = r.node
	if !devices.Any() {
		return s, true
	}
	assigned, ok := devices.Assign(r.node, p.world.heldOn(r.node.ID).devices)
	s.devices = assigned.Devices
	return s, ok
}

// sortBerth sorts one allocation by its standing, and stops it if necessary.
func (p *planner) sortBerth(g *cluster.TaskGroup, b *berth, a *cluster.Allocation) {
	standing, lose := p.stand(g, a)
	if lose && standing != migrating {
		p.draft.lose(a)
	}
	switch {
	case p.ranOnce(a):
		standing = done
	case standing == away && !isDisconnected(p.view.Node(a.NodeID)):
		standing = kept // no other allocation takes its slot, so the plan need not wait for its report
	}
	switch standing {
	case done, spent:
		b.done = true
	case kept:
		if node := p.view.Node(a.NodeID); !accepts(node, p.job, g, p.view.ClusterVersion()) || p.isExcluded(node, g, a) {
			p.draft.stop(a, cluster.DescNotNeeded)
		} else {
			b.kept = append(b.kept, a)
		}
	case migrating:
		p.draft.migrate(a, cluster.DescTainted, lose)
		b.done = b.done || (p.job.Type == cluster.JobSysBatch && p.isSameWork(a))
		b.vacate(a)
	case away:
		p.draft.await(g, a)
	case lost, ended, owed, settled:
		b.vacate(a)
	}
}

// isExcluded reports whether a newer version of the job excludes the node of a running allocation by
// a constraint. The facts of the node may change: they stop nothing that runs, and neither does a
// driver that becomes unhealthy.
func (p *planner) isExcluded(n *cluster.Node, g *cluster.TaskGroup, a *cluster.Allocation) bool {
	if a.Job == nil || a.Job.Version == p.job.Version {
		return false
	}
	return p.demands(g).Unsatisfied(n) != ""
}

// ranOnce reports whether a sysbatch allocation has had its only run on its node: it ended
// by itself, or a mark ended it.
func (v jobView) ranOnce(a *cluster.Allocation) bool {
	if v.job.Type != cluster.JobSysBatch || !v.isSameWork(a) {
		return false
	}
	if a.ServerTerminal() {
		return a.DesiredDescription == cluster.DescTainted
	}
	return a.ClientTerminal()
}

// vacate notes an allocation that left its node, unless it has a replacement.
func (b *berth) vacate(a *cluster.Allocation) {
	if a.NextAllocation == "" && (b.vacated == nil || a.CreateIndex >= b.vacated.CreateIndex) {
		b.vacated = a
	}
}

// shedDoubles stops all allocations on one node except the one with the highest worth.
func (p *planner) shedDoubles(b *berth) {
	slices.SortStableFunc(b.kept, p.byWorth)
	for len(b.kept) > 1 {
		last := b.kept[len(b.kept)-1]
		b.kept = b.kept[:len(b.kept)-1]
		p.draft.stop(last, cluster.DescNotNeeded)
	}
}
