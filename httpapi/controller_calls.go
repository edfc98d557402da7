package httpapi

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// controllerCalls returns the failing calls of controllers that are wanted, or nil. A caller that may only
// read does not see the errors: a plugin may repeat parameters of the volume. A call that fails wakes no reader
// that waits.
func controllerCalls(q *request, wanted func(volumes.FailedCall) bool) (calls []wire.ControllerCall) {
	if q.backend.Controllers == nil {
		return nil
	}
	for _, c := range q.backend.Controllers.FailingCalls() {
		if !wanted(c) {
			continue
		}
		if !q.author.Write && c.LastError != "" {
			c.LastError = redacted
		}
		calls = append(calls, wire.NewControllerCall(c))
	}
	return calls
}

// ofAlloc is the test for the calls that a claim of the allocation waits for.
func ofAlloc(s State, a *cluster.Allocation) func(volumes.FailedCall) bool {
	return func(c volumes.FailedCall) bool {
		if c.Node != a.NodeID {
			return false
		}
		for claim := range s.ClaimsOfVolume(c.Volume) {
			if claim.Alloc == a.ID {
				return true
			}
		}
		return false
	}
}

// ofJob is the test for the calls for volumes that the job asks for.
func ofJob(j *cluster.Job) func(volumes.FailedCall) bool {
	return func(c volumes.FailedCall) bool {
		return slices.ContainsFunc(j.TaskGroups, func(g *cluster.TaskGroup) bool { return asks(j.Namespace, g, c.Volume) })
	}
}

// ofDrain is the test for the calls that a drain of the node may wait for: those for the node itself, and
// those for volumes of groups that still have an allocation there. Their replacements wait for the volumes.
func ofDrain(s State, node cluster.NodeID, left []wire.DrainAlloc) func(volumes.FailedCall) bool {
	return func(c volumes.FailedCall) bool {
		return c.Node == node || slices.ContainsFunc(left, func(a wire.DrainAlloc) bool {
			ns := cluster.Namespace(a.Namespace)
			return ns == c.Volume.Namespace && asks(ns, s.Job(cluster.JobKey{Namespace: ns, ID: cluster.JobID(a.JobID)}).Group(a.TaskGroup), c.Volume)
		})
	}
}

// asks reports whether allocations of the group, or nil, use the volume.
func asks(ns cluster.Namespace, g *cluster.TaskGroup, k cluster.VolumeKey) bool {
	return g != nil && ns == k.Namespace && slices.ContainsFunc(g.Volumes, func(r cluster.VolumeRequest) bool { return r.MayBe(k.ID) })
}
