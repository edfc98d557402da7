package httpapi

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/listing"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/redact"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// plugins are the storage plugins that the nodes report, by id.
func plugins(s State) map[cluster.PluginID]*volumes.Plugin {
	byID := map[cluster.PluginID]*volumes.Plugin{}
	for _, p := range volumes.Plugins(s.Nodes()) {
		byID[p.ID] = p
	}
	return byID
}

// listPlugins answers GET /v1/plugins, by id.
func listPlugins(q *request) error {
	if kind := q.URL.Query().Get("type"); kind != "" && kind != string(cluster.VolumeCSI) {
		return q.answer([]*wire.PluginListStub{})
	}
	return q.read(func(s State) found {
		return found{index: s.TableIndex(TableNodes), body: func() (any, error) {
			return page(q, listing.List[*volumes.Plugin]{
				Rows: listing.Where(slices.Values(volumes.Plugins(s.Nodes())), func(p *volumes.Plugin) bool {
					return strings.HasPrefix(string(p.ID), q.params.prefix)
				}),
				Token:   func(p *volumes.Plugin) string { return string(p.ID) },
				Compare: func(p *volumes.Plugin, token string) int { return cmp.Compare(string(p.ID), token) },
				Full:    func(p *volumes.Plugin) any { return wire.NewPluginListStub(p) },
			}, wire.NewPluginListStub)
		}}
	})
}

// readPlugin answers GET /v1/plugin/csi/{id}. Only nodes and the allocations that run the plugin
// wake a reader that waits.
func readPlugin(q *request) error {
	return q.read(func(s State) found {
		p := plugins(s)[cluster.PluginID(q.PathValue("id"))]
		if p == nil {
			return found{index: s.TableIndex(TableNodes), missing: pluginNotFound}
		}
		f := found{index: s.TableIndex(TableNodes)}
		var allocs []*wire.AllocationListStub
		added := map[cluster.AllocID]bool{}
		for _, i := range p.Instances {
			if a := s.Alloc(i.Alloc); a != nil && !added[a.ID] {
				added[a.ID] = true
				f.index = max(f.index, a.ModifyIndex)
				allocs = append(allocs, wire.NewAllocationListStub(a))
			}
		}
		f.body = func() (any, error) {
			w := wire.NewPlugin(p)
			w.Allocations = append(w.Allocations, allocs...)
			return w, nil
		}
		return f
	})
}

// controllerCalls returns the failing calls of controllers for which the condition holds, or nil. A caller that may only
// read does not receive the errors: a plugin may repeat parameters of the volume. A call that fails wakes no reader
// that waits.
func controllerCalls(q *request, holds func(volumes.FailedCall) bool) (calls []wire.ControllerCall) {
	if q.backend.Controllers == nil {
		return nil
	}
	for _, c := range q.backend.Controllers.FailingCalls() {
		if !holds(c) {
			continue
		}
		if !q.author.Write && c.LastError != "" {
			c.LastError = redact.Hidden
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

// ofJob is the test for the calls for volumes that the job uses.
func ofJob(j *cluster.Job) func(volumes.FailedCall) bool {
	return func(c volumes.FailedCall) bool {
		return slices.ContainsFunc(j.TaskGroups, func(g *cluster.TaskGroup) bool { return uses(j.Namespace, g, c.Volume) })
	}
}

// ofDrain is the test for the calls that a drain of the node may wait for: those for the node itself, and
// those for volumes of groups that still have an allocation there. Their replacements wait for the volumes.
func ofDrain(s State, node cluster.NodeID, left []wire.DrainAlloc) func(volumes.FailedCall) bool {
	return func(c volumes.FailedCall) bool {
		return c.Node == node || slices.ContainsFunc(left, func(a wire.DrainAlloc) bool {
			ns := cluster.Namespace(a.Namespace)
			return ns == c.Volume.Namespace && uses(ns, s.Job(cluster.JobKey{Namespace: ns, ID: cluster.JobID(a.JobID)}).Group(a.TaskGroup), c.Volume)
		})
	}
}

// uses reports whether allocations of the group, or nil, use the volume.
func uses(ns cluster.Namespace, g *cluster.TaskGroup, k cluster.VolumeKey) bool {
	return g != nil && ns == k.Namespace && slices.ContainsFunc(g.Volumes, func(r cluster.VolumeRequest) bool { return r.MayBe(k.ID) })
}
