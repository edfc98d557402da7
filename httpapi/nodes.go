package httpapi

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// listNodes answers GET /v1/nodes.
func listNodes(q *request) error {
	withOS, err := nodeField(q, "os")
	if err != nil {
		return err
	}
	withResources, err := nodeField(q, "resources")
	if err != nil {
		return err
	}
	return q.read(func(s State) (found, error) {
		return found{index: s.TableIndex(TableNodes), body: func() (any, error) {
			rows, err := nodesByPrefix(s, q.params.prefix)
			if err != nil {
				return nil, err
			}
			nodes, err := page(q, list[*cluster.Node]{
				rows:    rows,
				token:   func(n *cluster.Node) string { return string(n.ID) },
				compare: func(n *cluster.Node, token string) int { return n.ID.Compare(cluster.NodeID(token)) },
				full:    func(n *cluster.Node) any { return wire.NewNode(n) },
			})
			stubs := make([]*wire.NodeListStub, len(nodes))
			for i, n := range nodes {
				stubs[i] = wire.NewNodeListStub(n)
				if withOS {
					stubs[i].WithOS(n)
				}
				if withResources {
					stubs[i].WithResources(n)
				}
			}
			return stubs, err
		}}, nil
	})
}

// nodeField reports whether the request wants that field in the list.
func nodeField(q *request, name string) (bool, error) {
	text := q.URL.Query().Get(name)
	if text == "" {
		return false, nil
	}
	with, err := strconv.ParseBool(text)
	if err != nil {
		return false, fail(http.StatusBadRequest, fmt.Sprintf("Failed to parse node list fields: Failed to parse value of %q (%v) as a bool: %v", name, text, err))
	}
	return with, nil
}

// nodesByPrefix yields the nodes whose id has the prefix. The reference knows only UUIDs, and
// refuses a prefix that no UUID has. Here such a prefix is refused if no node's id has it.
func nodesByPrefix(s State, prefix string) (iter.Seq[*cluster.Node], error) {
	if prefix == "" {
		return s.Nodes(), nil
	}
	for range s.NodesByPrefix(prefix) {
		return s.NodesByPrefix(prefix), nil
	}
	digits := strings.ReplaceAll(prefix, "-", "")
	if len(digits)%2 != 0 {
		return nil, fail(http.StatusInternalServerError, "node lookup failed: index error: Input (without hyphens) must be even length")
	}
	if _, err := hex.DecodeString(digits); err != nil {
		return nil, fail(http.StatusInternalServerError, fmt.Sprintf("node lookup failed: index error: Invalid UUID: %v", err))
	}
	return s.NodesByPrefix(strings.ToLower(prefix)), nil
}

// readNode answers GET /v1/node/{id}. Its index is the node's own: a reader that waits
// is woken by that node alone.
func readNode(q *request) error {
	return q.read(func(s State) (found, error) {
		n := s.Node(q.nodeID())
		if n == nil {
			return found{index: s.TableIndex(TableNodes), missing: nodeNotFound}, nil
		}
		return found{index: n.ModifyIndex, body: func() (any, error) { return wire.NewNode(n), nil }}, nil
	})
}

// updateEligibility answers PUT /v1/node/{id}/eligibility. The path names the node; the body's
// NodeID is ignored.
func updateEligibility(q *request) error {
	var body wire.EligibilityRequest
	if err := q.decode(&body); err != nil {
		return err
	}
	eligibility := cluster.Eligibility(body.Eligibility)
	if !eligibility.Valid() {
		return fail(http.StatusInternalServerError, fmt.Sprintf("invalid scheduling eligibility %q", body.Eligibility))
	}
	done, err := q.backend.Writer.UpdateEligibility(q.Context(), q.nodeID(), eligibility)
	if err != nil {
		return orNotFound(err, http.StatusInternalServerError, nodeNotFound)
	}
	return q.written(done.Index, wire.EligibilityResponse{
		EvalCreateIndex: done.EvalIndex(), EvalIDs: wire.IDs(done.Evals), Index: done.Index,
	})
}

// purgeNode answers PUT /v1/node/{id}/purge, which deletes the node. It ignores the body.
func purgeNode(q *request) error {
	done, err := q.backend.Writer.PurgeNode(q.Context(), q.nodeID())
	return nodeUpdated(q, done, err)
}

// evaluateNode answers PUT /v1/node/{id}/evaluate: the scheduler evaluates every job of the node
// again. It ignores the body.
func evaluateNode(q *request) error {
	done, err := q.backend.Writer.EvaluateNode(q.Context(), q.nodeID())
	return nodeUpdated(q, done, err)
}

func nodeUpdated(q *request, done cluster.Written, err error) error {
	if err != nil {
		return orNotFound(err, http.StatusNotFound, nodeNotFound)
	}
	return q.written(done.Index, wire.NodeUpdateResponse{
		EvalCreateIndex: done.EvalIndex(), EvalIDs: wire.IDs(done.Evals), Index: done.Index, NodeModifyIndex: done.Index,
	})
}

// listNodePools answers GET /v1/node/pools: the default pool and those of nodes. A pool exists as long
// as a node is in it.
func listNodePools(q *request) error {
	return q.read(func(s State) (found, error) {
		return found{index: s.TableIndex(TableNodes), body: func() (any, error) {
			return page(q, list[*wire.NodePool]{
				rows:    keep(slices.Values(nodePools(s)), func(p *wire.NodePool) bool { return strings.HasPrefix(p.Name, q.params.prefix) }),
				token:   func(p *wire.NodePool) string { return p.Name },
				compare: func(p *wire.NodePool, token string) int { return cmp.Compare(p.Name, token) },
				full:    func(p *wire.NodePool) any { return p },
			})
		}}, nil
	})
}

// nodePools returns the pools by name.
func nodePools(s State) []*wire.NodePool {
	names := map[string]bool{cluster.DefaultNodePool: true}
	for n := range s.Nodes() {
		names[cmp.Or(n.NodePool, cluster.DefaultNodePool)] = true
	}
	var pools []*wire.NodePool
	for _, name := range slices.Sorted(maps.Keys(names)) {
		pools = append(pools, &wire.NodePool{Name: name, Meta: map[string]string{}, CreateIndex: 1, ModifyIndex: 1})
	}
	return pools
}
