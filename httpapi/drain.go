package httpapi

import (
	"fmt"
	"net/http"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// maxDrainMeta bounds what an operator says of a drain, in bytes: it stays on the node,
// and in the record of the drain.
const maxDrainMeta = 64 << 10

// maxDrainBody bounds the body that says it, in bytes, escaped as badly as can be.
const maxDrainBody = 8 * maxDrainMeta

// updateDrain answers PUT /v1/node/{id}/drain, which starts, updates or ends the drain of
// a node. The path says which node, whatever the body does.
func (q *request) updateDrain() error {
	var body wire.DrainRequest
	if err := q.decode(&body); err != nil {
		return err
	}
	key, err := q.idempotencyToken()
	if err != nil {
		return err
	}
	if err := checkMeta(body.Meta); err != nil {
		return err
	}
	done, err := q.backend.Writer.UpdateDrain(q.Context(), DrainRequest{
		Node: q.nodeID(), Spec: body.Spec(), MarkEligible: body.MarkEligible, Key: key, Meta: body.Meta, UpdatedBy: q.who.Name,
	})
	if err != nil {
		return orNotFound(err, http.StatusInternalServerError, nodeNotFound)
	}
	index, err := q.drainIndex(done)
	if err != nil {
		return err
	}
	return q.written(index, wire.DrainResponse{
		EvalCreateIndex: done.evalIndex(), EvalIDs: wire.IDs(done.Evals), Index: index, NodeModifyIndex: index,
		DrainID: string(done.Drain), Repeated: done.Repeated, Withdrawn: done.Withdrawn, StillStopping: wire.IDs(done.Stopping),
	})
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

// drainIndex is the index that answers a request, never zero. One that repeats another
// is answered with that one's: who monitors the node from there on sees what has become
// of the drain meanwhile, instead of waiting for it.
func (q *request) drainIndex(done DrainWritten) (uint64, error) {
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
