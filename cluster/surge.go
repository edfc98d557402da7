package cluster

import (
	"fmt"
	"maps"
	"strings"
)

// MaxMaxSurge is the largest max_surge.
const MaxMaxSurge = MaxJobCount

// MetaPrefix begins the keys of meta that nodedrain reads. They are not in the environment of a task, and a new version
// that differs only in them replaces no allocation.
const MetaPrefix = "nodedrain."

// MetaMaxSurge is the key of the meta of a group, or of its job, that sets [MigrateStrategy.MaxSurge].
const MetaMaxSurge = MetaPrefix + "max_surge"

func checkMaxSurge(n int) error {
	if n < 0 || n > MaxMaxSurge {
		return fmt.Errorf("MaxSurge must be from 0 to %d but found %d", MaxMaxSurge, n)
	}
	return nil
}

// StopsFirst returns why no allocation of the group may run beside its replacement, or the empty string. The data of an
// ephemeral disk moves after the end. A volume with one writer, or of one allocation, has one user.
func StopsFirst(g *TaskGroup) string {
	if g.MovesData() {
		return "its ephemeral disk migrates"
	}
	for _, r := range g.Volumes {
		switch {
		case r.PerAlloc:
			return fmt.Sprintf("volume %s is per allocation", r.Name)
		case r.Capability.Access.SingleNode() || r.Capability.Access.SingleWriter() && r.Mode() == ClaimWrite:
			return fmt.Sprintf("volume %s has the access mode %s", r.Name, r.Capability.Access)
		}
	}
	return ""
}

func validateSurge(g *TaskGroup) error {
	if why := StopsFirst(g); g.Migrate.MaxSurge > 0 && why != "" {
		return fmt.Errorf("MaxSurge is not possible for the group: %s", why)
	}
	return nil
}

// SurgeOn is how many allocations of the group may have a replacement beside them when the node drains: the larger
// max_surge of the group and the drain. Zero means that an allocation stops before its replacement starts.
func (p Pace) SurgeOn(n *Node) int {
	switch {
	case p.StopsFirst:
		return 0
	case n.Draining():
		return max(p.MaxSurge, n.Drain.Strategy.MaxSurge)
	}
	return p.MaxSurge
}

// SurgeRequested reports whether the drain of the allocation's node has requested a replacement, and has not marked the
// allocation. The scheduler places one standby allocation beside it. Both may be nil.
func SurgeRequested(a *Allocation, n *Node) bool {
	return a != nil && a.DesiredTransition.Surge != "" && !a.Leaving() && n.Draining() && n.Drain.ID == a.DesiredTransition.Surge
}

// HoldsSurge reports whether the allocation counts against the max_surge of its group: a drain has requested its
// replacement, and no plan has stopped it.
func HoldsSurge(a *Allocation) bool { return a.DesiredTransition.Surge != "" && !a.Terminal() }

// TakesOver reports whether the allocation can take over from the one that it replaces: it is healthy, apart from
// being a standby. The node is its own. A nil allocation cannot.
func TakesOver(a *Allocation, n *Node) bool {
	if a == nil || !a.Standby {
		return a.Healthy(n)
	}
	active := *a
	active.Standby = false
	return active.Healthy(n)
}

// Original returns the allocation that still has the slot of a standby allocation: the first one of those that it
// replaces, one after the other, that is no standby allocation. It returns nil if that one is gone or does not
// [KeepsSlot]: then the standby allocation is none any more.
func Original(a *Allocation, alloc func(AllocID) *Allocation) *Allocation {
	for range MaxRescheduleAttempts { // bounds a damaged chain that forms a circle
		if a == nil || !a.Standby {
			break
		}
		a = alloc(a.PreviousAllocation)
	}
	if a == nil || a.Standby || !KeepsSlot(a) {
		return nil
	}
	return a
}

// KeepsSlot reports whether an allocation has its slot of the group, and not a standby beside it: it does not leave, has
// not ended, and is not unknown. A nil allocation does not.
func KeepsSlot(a *Allocation) bool {
	return a != nil && !a.Leaving() && !a.ClientTerminal() && a.ClientStatus != ClientUnknown
}

// LastSuccessor returns the last of the allocation's successive replacements, or nil.
func LastSuccessor(a *Allocation, alloc func(AllocID) *Allocation) *Allocation {
	next := alloc(a.NextAllocation)
	for range MaxRescheduleAttempts { // bounds a damaged chain that forms a circle
		if next == nil || next.NextAllocation == "" {
			break
		}
		next = alloc(next.NextAllocation)
	}
	return next
}

// sameTaskMeta reports whether tasks find the same meta of their job or group in both maps.
func sameTaskMeta(a, b map[string]string) bool { return maps.Equal(TaskMeta(a), TaskMeta(b)) }

// TaskMeta returns the part of the meta of a job or a group that tasks have in their environment: without the keys that
// begin with [MetaPrefix]. It returns the map itself if there are none.
func TaskMeta(meta map[string]string) map[string]string {
	ours := func(key, _ string) bool { return strings.HasPrefix(key, MetaPrefix) }
	for key, value := range meta { //lint:order the result is a map
		if ours(key, value) {
			rest := maps.Clone(meta)
			maps.DeleteFunc(rest, ours)
			return rest
		}
	}
	return meta
}
