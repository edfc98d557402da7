package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// maxDrainMeta bounds the Meta of a drain, in bytes: the node and the drain's record keep it.
const maxDrainMeta = 64 << 10

// maxDrainBody bounds the body that holds it, in bytes, with every byte escaped.
const maxDrainBody = 8 * maxDrainMeta

// updateDrain answers PUT /v1/node/{id}/drain, which starts, updates or ends the drain of a node.
// The path names the node; the body's NodeID is ignored. As in the reference, a body without a
// DrainSpec ends the drain, and one without an object is refused.
func updateDrain(q *request) error {
	var body wire.DrainRequest
	if err := q.decode(&body); err != nil {
		return err
	}
	key, err := q.idempotencyToken()
	if err != nil {
		return err
	}
	if err := checkDrain(q.body, &body); err != nil {
		return err
	}
	done, err := q.backend.Writer.UpdateDrain(q.Context(), cluster.DrainUpdate{
		Node: q.nodeID(), Spec: body.Spec(), MarkEligible: body.MarkEligible, Key: key, Meta: body.Meta, UpdatedBy: q.author.Name,
	})
	if err != nil {
		return orNotFound(err, http.StatusInternalServerError, nodeNotFound)
	}
	index, err := drainIndex(q, done)
	if err != nil {
		return err
	}
	return q.written(index, wire.DrainResponse{
		EvalCreateIndex: done.EvalIndex(), EvalIDs: wire.IDs(done.Evals), Index: index, NodeModifyIndex: index,
		DrainID: string(done.Drain), Repeated: done.Repeated, Withdrawn: done.Withdrawn, StillStopping: wire.IDs(done.Stopping),
	})
}

// checkDrain refuses a request that says something else than it seems to.
func checkDrain(text []byte, body *wire.DrainRequest) error {
	if body.DrainSpec == nil {
		if err := checkCancel(text); err != nil {
			return err
		}
	} else if body.DrainSpec.Deadline > longest {
		return fail(http.StatusBadRequest, fmt.Sprintf("Deadline is %s and must be at most %s; 0 is no limit", body.DrainSpec.Deadline, longest))
	}
	return checkMeta(body.Meta)
}

// checkCancel refuses a request without DrainSpec that has an unknown key: it may be a misspelled
// DrainSpec, and to cancel the drain would be the opposite.
func checkCancel(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(new(wire.DrainRequest)); err != nil {
		return fail(http.StatusBadRequest, fmt.Sprintf("%v: a request without DrainSpec cancels the drain, and must not have unknown keys", err))
	}
	return nil
}

func checkMeta(meta map[string]string) error {
	size := 0
	for key, value := range meta {
		size += len(key) + len(value)
	}
	if size > maxDrainMeta {
		return fail(http.StatusBadRequest, fmt.Sprintf("Meta is larger than %d bytes", maxDrainMeta))
	}
	return nil
}

// drainIndex is the index of the answer, never zero. A repeated request gets the index of the
// first: a monitor that starts there sees the changes since then, and does not wait for new ones.
func drainIndex(q *request, done cluster.DrainWritten) (uint64, error) {
	index := done.Index
	if done.Repeated || index == 0 {
		s, err := q.state()
		if err != nil {
			return 0, err
		}
		if d := findDrain(s, q.nodeID(), done.Drain); d != nil {
			index = uint64(d.Revision)
		}
	}
	return max(1, index), nil
}

// findDrain returns the node's drain of that id, running or ended, or nil.
func findDrain(s State, node cluster.NodeID, id cluster.DrainID) *cluster.Drain {
	if n := s.Node(node); n.Draining() && n.Drain.ID == id {
		return n.Drain
	}
	return s.DrainRecord(id)
}
