package opinion

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// PlacesBeside is the cluster version from which on a drain requests replacements before it marks allocations.
const PlacesBeside cluster.Version = 9

// Surge is how many allocations of the group may have a requested replacement when the drain moves them: the larger
// max_surge of the group and the drain. Zero means that they stop before their replacements start.
func (p Pace) Surge(d *cluster.Drain) int {
	if p.StopsFirst {
		return 0
	}
	return max(p.MaxSurge, d.Strategy.MaxSurge)
}

// stopsFirst reports whether two allocations cannot be in one slot of the group: its data moves when the first one has
// ended, or a volume has one user or one writer.
func stopsFirst(g *cluster.TaskGroup) bool {
	for _, v := range g.Volumes {
		switch v.Capability.Access {
		case "single-node-reader-only", "single-node-writer":
			return true
		case "multi-node-single-writer":
			if !v.ReadOnly {
				return true
			}
		}
		if v.PerAlloc {
			return true
		}
	}
	return g.EphemeralDisk.Migrate
}

// KeepsSlot reports whether an allocation has its slot although replacements may stand by: it has not ended, it is not
// marked, the servers do not stop it, and it is not unknown.
func KeepsSlot(a *cluster.Allocation) bool {
	return Live(a) && !Leaving(a) && a.ClientStatus != "unknown"
}

// RequestedBy reports whether the drain has requested a replacement of the allocation, and has not marked it.
func RequestedBy(a *cluster.Allocation, d *cluster.Drain) bool {
	return d != nil && a.DesiredTransition.Surge == d.ID && !Leaving(a)
}

// HoldsSurge reports whether an allocation counts against the max_surge of its group: its replacement was requested, it
// has not ended, and the servers do not stop it.
func HoldsSurge(a *cluster.Allocation) bool {
	return a.DesiredTransition.Surge != "" && Live(a) && !Stopping(a)
}

// longestLine bounds a line of replacements.
const longestLine = 1000

// OriginalOf returns the allocation in place beside which a standby allocation was placed, or nil. Between them there
// are only standby allocations that have ended.
func OriginalOf(a *cluster.Allocation, alloc func(cluster.AllocID) *cluster.Allocation) *cluster.Allocation {
	for range longestLine {
		if a = alloc(a.PreviousAllocation); a == nil || !a.Standby {
			break
		}
	}
	if a == nil || a.Standby || !KeepsSlot(a) {
		return nil
	}
	return a
}

// Successors returns the replacements of an allocation, one after the other.
func Successors(a *cluster.Allocation, alloc func(cluster.AllocID) *cluster.Allocation) (all []*cluster.Allocation) {
	for next := alloc(a.NextAllocation); next != nil && len(all) < longestLine; next = alloc(next.NextAllocation) {
		all = append(all, next)
	}
	return all
}

// LastSuccessor returns the last of the replacements of an allocation, or nil.
func LastSuccessor(a *cluster.Allocation, alloc func(cluster.AllocID) *cluster.Allocation) *cluster.Allocation {
	all := Successors(a, alloc)
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// ReplacedFromElsewhere reports whether an allocation has a replacement that no drain requested: its node was away. It
// needs no other one.
func ReplacedFromElsewhere(a *cluster.Allocation, alloc func(cluster.AllocID) *cluster.Allocation) bool {
	if a.NextAllocation == "" || a.DesiredTransition.Surge != "" {
		return false
	}
	next := alloc(a.NextAllocation)
	return next == nil || !next.Standby
}

// TakesOver reports whether an allocation is healthy, or would be if it were no standby allocation. The node is its own,
// or nil.
func TakesOver(a *cluster.Allocation, n *cluster.Node) bool {
	active := *a
	active.Standby = false
	return Healthy(&active, n)
}
