package httpapi

import (
	"cmp"
	"encoding/hex"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jsonbody"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/listing"
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
	return q.read(func(s State) found {
		return found{index: s.TableIndex(TableNodes), body: func() (any, error) {
			rows, err := nodesByPrefix(s, q.params.prefix)
			if err != nil {
				return nil, err
			}
			return page(q, listing.List[*cluster.Node]{
				Rows:    rows,
				Token:   func(n *cluster.Node) string { return string(n.ID) },
				Compare: func(n *cluster.Node, token string) int { return n.ID.Compare(cluster.NodeID(token)) },
				Full:    func(n *cluster.Node) any { return wire.NewNode(n) },
			}, func(n *cluster.Node) *wire.NodeListStub {
				stub := wire.NewNodeListStub(n)
				if withOS {
					stub.WithOS(n)
				}
				if withResources {
					stub.WithResources(n)
				}
				return stub
			})
		}}
	})
}

// nodeField reports whether the request selects that field for the list.
func nodeField(q *request, name string) (bool, error) {
	text := q.URL.Query().Get(name)
	if text == "" {
		return false, nil
	}
	with, err := strconv.ParseBool(text)
	if err != nil {
		return false, failure.Bad("Failed to parse node list fields: Failed to parse value of %q (%v) as a bool: %v", name, text, err)
	}
	return with, nil
}

// nodesByPrefix yields the nodes whose id has the prefix. The reference has only UUIDs, and
// refuses a prefix that no UUID has. Here such a prefix is refused if no node's id has it.
func nodesByPrefix(s State, prefix string) (iter.Seq[*cluster.Node], error) {
	if prefix == "" {
		return s.Nodes(), nil
	}
	for n := range s.Nodes() {
		if strings.HasPrefix(string(n.ID), prefix) {
			return withPrefix(s.Nodes(), prefix), nil
		}
	}
	digits := strings.ReplaceAll(prefix, "-", "")
	if len(digits)%2 != 0 {
		return nil, failure.New(http.StatusInternalServerError, "node lookup failed: index error: Input (without hyphens) must be even length")
	}
	if _, err := hex.DecodeString(digits); err != nil {
		return nil, failure.Newf(http.StatusInternalServerError, "node lookup failed: index error: Invalid UUID: %v", err)
	}
	return withPrefix(s.Nodes(), strings.ToLower(prefix)), nil
}

// withPrefix yields the nodes whose id has the prefix.
func withPrefix(nodes iter.Seq[*cluster.Node], prefix string) iter.Seq[*cluster.Node] {
	return func(yield func(*cluster.Node) bool) {
		for n := range nodes {
			if strings.HasPrefix(string(n.ID), prefix) && !yield(n) {
				return
			}
		}
	}
}

// readNode answers GET /v1/node/{id}. Its index is the node's own: a reader that waits
// is woken by that node alone.
func readNode(q *request) error {
	return q.read(func(s State) found {
		n := s.Node(q.nodeID())
		if n == nil {
			return found{index: s.TableIndex(TableNodes), missing: nodeNotFound}
		}
		return found{index: n.ModifyIndex, body: func() (any, error) { return wire.NewNode(n), nil }}
	})
}

// updateEligibility answers PUT /v1/node/{id}/eligibility. The path names the node; the body's
// NodeID is ignored.
func updateEligibility(q *request) error {
	var body wire.EligibilityRequest
	if err := jsonbody.Decode(q.body, &body); err != nil {
		return err
	}
	eligibility := cluster.Eligibility(body.Eligibility)
	if !eligibility.Valid() {
		return failure.Newf(http.StatusInternalServerError, "invalid scheduling eligibility %q", body.Eligibility)
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

// listNodePools answers GET /v1/node/pools: the pool "all", the default pool and those of nodes. A pool of
// nodes exists as long as a node is in it.
func listNodePools(q *request) error {
	return q.read(func(s State) found {
		return found{index: s.TableIndex(TableNodes), body: func() (any, error) {
			return page(q, listing.List[*wire.NodePool]{
				Rows:    listing.Where(slices.Values(nodePools(s)), func(p *wire.NodePool) bool { return strings.HasPrefix(p.Name, q.params.prefix) }),
				Token:   func(p *wire.NodePool) string { return p.Name },
				Compare: func(p *wire.NodePool, token string) int { return cmp.Compare(p.Name, token) },
				Full:    func(p *wire.NodePool) any { return p },
			}, func(p *wire.NodePool) *wire.NodePool { return p })
		}}
	})
}

// nodePools returns the pools by name.
func nodePools(s State) []*wire.NodePool {
	names := map[string]bool{cluster.AllNodePools: true, cluster.DefaultNodePool: true}
	for n := range s.Nodes() {
		names[cmp.Or(n.NodePool, cluster.DefaultNodePool)] = true
	}
	var pools []*wire.NodePool
	for _, name := range slices.Sorted(maps.Keys(names)) {
		pools = append(pools, &wire.NodePool{Name: name, Meta: map[string]string{}, CreateIndex: 1, ModifyIndex: 1})
	}
	return pools
}
