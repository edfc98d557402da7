package placement

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// requested reports whether the drain of an allocation's node has requested a replacement beside it, and the allocation
// is in place.
func requested(s *statestore.Snapshot, a *cluster.Allocation) bool {
	n := s.Node(a.NodeID)
	return n != nil && opinion.RequestedBy(a, n.Drain) && opinion.KeepsSlot(a)
}

// judgeBeside checks a new allocation that stands by beside one that a drain wants to move, and reports whether the one
// that it replaces must have stopped: all but such an original.
func judgeBeside(p *plan, a *cluster.Allocation) bool {
	if !a.Standby {
		return true
	}
	original := opinion.OriginalOf(a, p.after.Alloc)
	switch {
	case original == nil:
		p.report(StandsBy, a, "it stands by no allocation in place")
	case !requested(p.before, original):
		p.report(StandsBy, a, "it stands by %s, for which no drain requests it", original.ID)
	case a.Name != original.Name:
		p.report(StandsBy, a, "it stands by %s, and has another name than %s", original.ID, original.Name)
	}
	standing, requests := 0, 0
	for other := range p.after.AllocsByJob(p.key) {
		switch {
		case other.TaskGroup != a.TaskGroup:
		case other.Standby && runs(other) && other.ClientStatus != "unknown":
			standing++
		case requested(p.after, other):
			requests++
		}
	}
	if standing > requests {
		p.report(AboveCount, a, "%d allocations stand by, and %d are requested", standing, requests)
	}
	previous := p.after.Alloc(a.PreviousAllocation)
	return previous != nil && previous.Standby
}

// judgeStandbys checks that no allocation stands by beside one that stays: the drain was cancelled.
func judgeStandbys(p *plan, g *cluster.TaskGroup) {
	for a := range p.after.AllocsByJob(p.key) {
		if a.TaskGroup != g.Name || !a.Standby || !runs(a) || p.onUnreachableNode(a) {
			continue
		}
		if original := opinion.OriginalOf(a, p.after.Alloc); original != nil && !requested(p.after, original) {
			p.report(NotStopped, a, "it stands by %s, which no drain moves", original.ID)
		}
	}
}

// unaccompanied counts the allocations of a group whose requested replacement is not there: none was placed, or the last
// one has ended and is due.
func unaccompanied(p *plan, s *slots) (n int) {
	for a := range p.after.AllocsByJob(p.key) {
		if a.TaskGroup != s.group.Name || !requested(p.after, a) {
			continue
		}
		next := opinion.LastSuccessor(a, p.after.Alloc)
		if next == nil || (opinion.Stopping(next) || !opinion.Live(next)) && !owed(p, next, s.group) {
			n++
		}
	}
	return n
}

// owed reports whether an ended allocation is replaced later, or never.
func owed(p *plan, a *cluster.Allocation, g *cluster.TaskGroup) bool {
	if p.isAwaited(a, g) {
		return true
	}
	r, has := RetryOf(p.after, a, g)
	return has && (r.Spent || r.Early(p.at)) || GaveUp(p.after, a, g)
}
