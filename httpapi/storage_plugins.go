package httpapi

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
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
	return q.read(func(s State) (found, error) {
		return found{index: s.TableIndex(TableNodes), body: func() (any, error) {
			all := volumes.Plugins(s.Nodes())
			rows, err := page(q, list[*volumes.Plugin]{
				rows: keep(slices.Values(all), func(p *volumes.Plugin) bool {
					return strings.HasPrefix(string(p.ID), q.params.prefix)
				}),
				token:   func(p *volumes.Plugin) string { return string(p.ID) },
				compare: func(p *volumes.Plugin, token string) int { return cmp.Compare(string(p.ID), token) },
				full:    func(p *volumes.Plugin) any { return wire.NewPluginListStub(p) },
			})
			stubs := make([]*wire.PluginListStub, len(rows))
			for i, p := range rows {
				stubs[i] = wire.NewPluginListStub(p)
			}
			return stubs, err
		}}, nil
	})
}

// readPlugin answers GET /v1/plugin/csi/{id}. Only nodes and the allocations that run the plugin
// wake a reader that waits.
func readPlugin(q *request) error {
	return q.read(func(s State) (found, error) {
		p := plugins(s)[cluster.PluginID(q.PathValue("id"))]
		if p == nil {
			return found{index: s.TableIndex(TableNodes), missing: pluginNotFound}, nil
		}
		f := found{index: s.TableIndex(TableNodes)}
		var allocs []*wire.AllocationListStub
		seen := map[cluster.AllocID]bool{}
		for _, i := range p.Instances {
			if a := s.Alloc(i.Alloc); a != nil && !seen[a.ID] {
				seen[a.ID] = true
				f.index = max(f.index, a.ModifyIndex)
				allocs = append(allocs, wire.NewAllocationListStub(a))
			}
		}
		f.body = func() (any, error) {
			w := wire.NewPlugin(p)
			w.Allocations = append(w.Allocations, allocs...)
			return w, nil
		}
		return f, nil
	})
}
