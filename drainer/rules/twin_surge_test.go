package rules

import (
	"cmp"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// maxSurge is how many allocations of the group may have a replacement beside them for the drain of the allocation's node.
func (w rows) maxSurge(a *cluster.Allocation) int {
	g := w.groupOf(a)
	if g == nil || g.EphemeralDisk.Migrate {
		return 0
	}
	most := w.nodeOf(a).Drain.Strategy.MaxSurge
	if g.Migrate != nil && g.Migrate.MaxSurge > most {
		most = g.Migrate.MaxSurge
	}
	return most
}

// isRequested: the drain of its node has requested a replacement.
func (w rows) isRequested(a *cluster.Allocation) bool {
	return a.DesiredTransition.Surge == w.nodeOf(a).Drain.ID
}

// needsReplacement: it must have a healthy replacement before a paced mark.
func (w rows) needsReplacement(a *cluster.Allocation) bool {
	next := w.Alloc(a.NextAllocation)
	return w.maxSurge(a) > 0 && (a.NextAllocation == "" || a.DesiredTransition.Surge != "" || next != nil && next.Standby)
}

// wouldBeHealthy: it is healthy, or would be if it were no standby.
func (w rows) wouldBeHealthy(a *cluster.Allocation) bool {
	active := *a
	active.Standby = false
	return w.isHealthy(&active)
}

// isReplacedBeside: the last of its successive replacements is healthy, and no drain takes it off its node now.
func (w *twin) isReplacedBeside(a *cluster.Allocation) bool {
	last := w.Alloc(a.NextAllocation)
	for last != nil && last.NextAllocation != "" {
		last = w.Alloc(last.NextAllocation)
	}
	if last == nil || !w.wouldBeHealthy(last) {
		return false
	}
	n := w.nodeOf(last)
	return n.Drain == nil || !w.deadlineMet(n)
}

// movesBeside: it has a requested replacement that takes over, or must have one before a paced mark.
func movesBeside(w *twin, a *cluster.Allocation) bool {
	return w.needsReplacement(a) || w.isRequested(a) && w.isReplacedBeside(a)
}

// requestsIn are the allocations of the group with a requested replacement that are neither stopped nor ended, and moving
// counts those of them that are marked.
func (w rows) requestsIn(a *cluster.Allocation) (ids []cluster.AllocID, moving int) {
	for _, b := range w.Allocs {
		if sameGroup(a, b) && b.DesiredTransition.Surge != "" && !hasEnded(b) && !toStop(b) {
			ids = append(ids, b.ID)
			if b.DesiredTransition.Migrate {
				moving++
			}
		}
	}
	return ids, moving
}

// admitsSurge: an allocation that must have a healthy replacement may be marked, or the replacement requested.
func (w *twin) admitsSurge(a *cluster.Allocation, request bool) bool {
	requests, moving := w.requestsIn(a)
	if request {
		others := slices.DeleteFunc(requests, func(id cluster.AllocID) bool { return id == a.ID })
		return !w.isRequested(a) && len(others) < w.maxSurge(a)
	}
	return w.isRequested(a) && moving < w.maxParallel(a)
}

// mustMove: the scheduler must act on it: stop it, or place a replacement.
func (w rows) mustMove(a *cluster.Allocation) bool {
	return a.DesiredTransition.Migrate || w.isRequested(a) && a.NextAllocation == ""
}

// requestsLast moves the allocations for which a replacement would be requested to the end, where they change nothing for
// the others. They are in the order of their ids if their drains permit different numbers of requests.
func requestsLast(w *twin, candidates []*cluster.Allocation, inFlight map[cluster.AllocID]bool) []*cluster.Allocation {
	var requests, others []*cluster.Allocation
	limits := map[int]bool{}
	for _, a := range candidates {
		if class, _ := w.class(a); class == cluster.MarkPaced && w.needsReplacement(a) && !w.isRequested(a) {
			requests = append(requests, a)
			limits[w.maxSurge(a)] = true
		} else {
			others = append(others, a)
		}
	}
	if len(limits) > 1 {
		slices.SortFunc(requests, func(a, b *cluster.Allocation) int {
			return cmp.Or(yesFirst(inFlight[a.ID], inFlight[b.ID]), cmp.Compare(a.ID, b.ID))
		})
	}
	return append(others, requests...)
}
