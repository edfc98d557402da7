package httpapi

import (
	"encoding/hex"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// listNodes answers GET /v1/nodes.
func (q *request) listNodes() error {
	withOS, err := q.nodeField("os")
	if err != nil {
		return err
	}
	withResources, err := q.nodeField("resources")
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

// nodeField reports whether the list is to tell more of its nodes.
func (q *request) nodeField(name string) (bool, error) {
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

// nodesByPrefix yields the nodes whose id begins so. The reference knows no ids but
// UUIDs, and refuses a prefix that none can begin with; here it is refused if no node's
// id does begin with it.
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
func (q *request) readNode() error {
	return q.read(func(s State) (found, error) {
		n := s.Node(q.nodeID())
		if n == nil {
			return found{index: s.TableIndex(TableNodes), missing: nodeNotFound}, nil
		}
		return found{index: n.ModifyIndex, body: func() (any, error) { return wire.NewNode(n), nil }}, nil
	})
}

// updateEligibility answers PUT /v1/node/{id}/eligibility. The path says which node,
// whatever the body does.
func (q *request) updateEligibility() error {
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
		EvalCreateIndex: done.evalIndex(), EvalIDs: wire.IDs(done.Evals), Index: done.Index,
	})
}

// evalIndex is the index of the evaluations that an entry made, zero if it made none.
func (w Written) evalIndex() uint64 {
	if len(w.Evals) == 0 {
		return 0
	}
	return w.Index
}

// purgeNode answers PUT /v1/node/{id}/purge, which deletes the node. Its body is not
// looked at.
func (q *request) purgeNode() error {
	done, err := q.backend.Writer.PurgeNode(q.Context(), q.nodeID())
	return q.nodeUpdated(done, err)
}

// evaluateNode answers PUT /v1/node/{id}/evaluate, which has the scheduler look at every
// job of the node. Its body is not looked at.
func (q *request) evaluateNode() error {
	done, err := q.backend.Writer.EvaluateNode(q.Context(), q.nodeID())
	return q.nodeUpdated(done, err)
}

func (q *request) nodeUpdated(done Written, err error) error {
	if err != nil {
		return orNotFound(err, http.StatusNotFound, nodeNotFound)
	}
	return q.written(done.Index, wire.NodeUpdateResponse{
		EvalCreateIndex: done.evalIndex(), EvalIDs: wire.IDs(done.Evals), Index: done.Index, NodeModifyIndex: done.Index,
	})
}
