package placement

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// judgeUnfinished checks that the plan left no work without an evaluation. The scheduler plans a
// job again only for a pending evaluation. So if none is pending, each group has its full count,
// except the allocations that a blocked evaluation counts.
func (p *plan) judgeUnfinished() {
	pending, blocked := p.open(p.after)
	if len(blocked) > 1 {
		if _, before := p.open(p.before); len(before) <= 1 {
			p.report(BlockedTwice, nil, "job %s has %d blocked evaluations", p.key, len(blocked))
		}
	}
	if pending || !p.effective {
		return
	}
	for _, a := range p.unwanted {
		p.report(NotStopped, a, "it belongs to no group of the job, and it is not stopped")
	}
	if p.job == nil || p.job.Stop {
		return
	}
	for _, g := range p.job.TaskGroups {
		s, queued, retried := p.groups[g.Name], 0, false
		for _, e := range blocked {
			queued += e.Queued[g.Name]
			retried = retried || e.SnapshotIndex < p.after.WorkView().CapacityIndex()
		}
		empty := p.empty(s)
		switch {
		case empty > 0 && queued == 0:
			p.report(LeftShort, nil, "group %s of job %s lacks %d, and no evaluation is open for them", g.Name, p.key, empty)
		// The count may be too high until the next retry, if an allocation ended or a node came
		// back between the plan and its apply. A system job also needs fewer allocations after a
		// node has gone.
		case empty > queued, queued > empty+p.onUnreachableNodes(s)+p.canariesToReplace(g)+p.takenFromFailed(s) && !onEveryNode(p.job) && !retried:
			p.report(Miscounted, nil, "group %s of job %s lacks %d, and its blocked evaluation counts %d", g.Name, p.key, empty, queued)
		}
		p.judgeSurplus(s)
		judgeStandbys(p, g)
	}
}

// open reports whether an evaluation of the job is pending, and returns the blocked ones.
func (p *plan) open(s *statestore.Snapshot) (pending bool, blocked []*cluster.Evaluation) {
	for e := range s.WorkView().OpenEvals(p.key) {
		if e.Status == "blocked" {
			blocked = append(blocked, e)
		} else {
			pending = true
		}
	}
	return pending, blocked
}

// empty counts the slots that no allocation holds.
func (p *plan) empty(s *slots) int {
	if !onEveryNode(p.job) {
		return max(0, s.group.Count-len(s.held)) + unaccompanied(p, s)
	}
	held := make(map[cluster.NodeID]bool, len(s.held))
	for _, a := range s.held {
		held[a.NodeID] = true
	}
	empty := 0
	for n := range p.after.Nodes() {
		if accepts(n) && matches(n, p.job, s.group) && !held[n.ID] {
			empty++
		}
	}
	return empty
}

// onUnreachableNodes counts the allocations in slots whose node is unreachable, or is back and has not
// reported them. The report makes an evaluation.
func (p *plan) onUnreachableNodes(s *slots) (n int) {
	for _, a := range s.held {
		if p.onUnreachableNode(a) || p.awaitsReport(a) {
			n++
		}
	}
	return n
}

// onUnreachableNode reports whether an allocation runs on a node that is not reachable. The node
// may become unreachable between the plan and its apply. An evaluation follows when the node
// returns or is lost.
func (p *plan) onUnreachableNode(a *cluster.Allocation) bool {
	return runs(a) && !opinion.Reachable(p.after.Node(a.NodeID))
}

// awaitsReport reports whether a report makes the evaluation that may end a surplus with the allocation: its
// node is back and its client has not reported it, or it has not started and replaces one that runs,
// directly or after others.
func (p *plan) awaitsReport(a *cluster.Allocation) bool {
	if a.ClientStatus != "pending" {
		return a.ClientStatus == "unknown"
	}
	previous := p.after.Alloc(a.PreviousAllocation)
	for range longestChain { // bounds a damaged chain
		if previous == nil || runs(previous) {
			return previous != nil
		}
		previous = p.after.Alloc(previous.PreviousAllocation)
	}
	return false
}

// hasStartingReplacement reports whether a replacement of an allocation that runs has not started, directly or
// after others.
func (p *plan) hasStartingReplacement(a *cluster.Allocation) bool {
	next := p.after.Alloc(a.NextAllocation)
	for range longestChain { // bounds a damaged chain
		if next == nil || !runs(a) || runs(next) && next.ClientStatus == "pending" {
			return next != nil && runs(a)
		}
		next = p.after.Alloc(next.NextAllocation)
	}
	return false
}

// canariesToReplace counts the canaries that do not run and have no replacement. Their slots are
// not part of the count of the group.
func (p *plan) canariesToReplace(g *cluster.TaskGroup) (n int) {
	for a := range p.after.AllocsByJob(p.key) {
		if a.TaskGroup == g.Name && opinion.Canary(a) && a.NextAllocation == "" && !runs(a) {
			n++
		}
	}
	return n
}

// takenFromFailed counts the allocations that ended for good and the unreachable ones whose slots the
// scheduler gives to other allocations. If a group has more allocations than its count, the scheduler takes
// slots away from these first, and then replaces all that it has stopped.
func (p *plan) takenFromFailed(s *slots) int {
	failed, replaced := 0, 0
	for _, a := range s.held {
		isService := opinion.TypeOf(a) == "service"
		if a.ClientStatus == "failed" || a.ClientStatus == "complete" && isService || p.isAwaited(a, s.group) {
			failed++
		}
	}
	for a := range p.after.AllocsByJob(p.key) {
		owed := a.NextAllocation == "" || p.movesOn(a)
		if a.TaskGroup == s.group.Name && opinion.Stopping(a) && owed && !Holds(p.after, a, s.group, p.at) {
			replaced++
		}
	}
	return min(failed, max(0, len(s.held)+replaced-s.group.Count))
}

// movesOn reports whether the plan stops a marked allocation that came back after its replacement. It places
// one more for it, if there is room.
func (p *plan) movesOn(a *cluster.Allocation) bool {
	return a.ModifyIndex == p.index && a.DesiredDescription == "alloc is being migrated" && p.before.Alloc(a.NextAllocation) != nil
}

// isAwaited reports whether an allocation that cannot be reached holds a slot.
func (p *plan) isAwaited(a *cluster.Allocation, g *cluster.TaskGroup) bool {
	return awaited(a, g) && (opinion.Unconfirmed(a) || a.ClientStatus == "unknown" && !opinion.Reachable(p.after.Node(a.NodeID)))
}

// judgeSurplus reports a group that runs more allocations than its count.
func (p *plan) judgeSurplus(s *slots) {
	if onEveryNode(p.job) {
		p.judgeOnePerNode(s)
		return
	}
	running, done := 0, 0
	var last *cluster.Allocation
	for _, a := range s.held {
		switch {
		case p.onUnreachableNode(a), a.ClientStatus == "unknown", p.hasStartingReplacement(a):
		case runs(a): // also a replacement that starts: its report ends those that it replaces
			running, last = running+1, a
		case a.ModifyIndex > p.snapshot: // its end came after the state of the plan, and no evaluation follows
		case a.ClientStatus == "complete" && opinion.TypeOf(a) != "service" || opinion.Stopping(a) && !opinion.Unconfirmed(a):
			done++ // not a failed or lost one, or one of a service that ended for good: the scheduler takes its slot away first
		}
	}
	if running > 0 && running+done > s.group.Count {
		p.report(NotStopped, last, "%d allocations run and %d are done, for %d slots", running, done, s.group.Count)
	}
}

// judgeOnePerNode checks a group with one slot on each node. It reports a second allocation on a
// node, and an allocation on a node that is not for the group.
func (p *plan) judgeOnePerNode(s *slots) {
	running := make(map[cluster.NodeID]bool, len(s.held))
	for _, a := range s.held {
		if !runs(a) || p.onUnreachableNode(a) || p.awaitsReport(a) {
			continue
		}
		n := p.after.Node(a.NodeID)
		if running[a.NodeID] || n != nil && !isFor(n, p.job, s.group) {
			p.report(NotStopped, a, "the node runs another allocation of the group, or is not for the group")
		}
		running[a.NodeID] = true
	}
}
