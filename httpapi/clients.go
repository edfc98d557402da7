package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// This file is ours: clients of the reference speak to servers by another protocol.

// Bounds on what a client says at a time: a secret of one node must not do to fill the
// log.
const (
	// maxRegistration and maxReport bound the body, in bytes.
	maxRegistration = 256 << 10
	maxReport       = 1 << 20
	// maxReports bounds the allocations that one report is about.
	maxReports = 10_000
)

// registerNode answers PUT /v1/client/{id}/register: a client's node joins the cluster,
// or says anew what it is. Its secret makes the node its own: from then on nobody else
// registers under its id, and with it as the token the client may ask for all that is
// about its node.
func (q *request) registerNode() error {
	var body wire.RegisterRequest
	if err := q.decode(&body); err != nil {
		return err
	}
	node, err := q.registration(body.Node)
	if err != nil {
		return err
	}
	s, err := q.state()
	if err != nil {
		return err
	}
	if known := s.Node(node.ID); known != nil && !sameSecret(known.SecretID, node.SecretID) {
		return errForbidden()
	}
	ttl, err := q.backend.Writer.RegisterNode(q.Context(), node)
	if err != nil {
		return err
	}
	return q.answer(wire.HeartbeatResponse{HeartbeatTTL: ttl})
}

// registration is the node that the body speaks of, if it can be registered.
func (q *request) registration(w *wire.Node) (*cluster.Node, error) {
	refuse := func(text string) (*cluster.Node, error) { return nil, fail(http.StatusBadRequest, text) }
	if w == nil {
		return refuse("missing Node")
	}
	node := w.Node()
	if node.ID == "" {
		node.ID = q.nodeID()
	}
	if err := cluster.CheckID(node.ID); err != nil {
		return refuse("invalid node ID: " + err.Error())
	}
	if node.Name != "" {
		if err := cluster.CheckID(node.Name); err != nil {
			return refuse("invalid node name: " + err.Error())
		}
	}
	none := cluster.Resources{}
	switch {
	case node.ID != q.nodeID():
		return refuse("the node's ID is not that of the path")
	case node.SecretID == "":
		return refuse("missing SecretID")
	case node.Status != "" && !node.Status.Valid():
		return refuse("invalid node status")
	case node.SchedulingEligibility != "" && !node.SchedulingEligibility.Valid():
		return refuse("invalid scheduling eligibility")
	case !none.Fits(node.Resources) || !none.Fits(node.Reserved) || node.MaxAllocs < 0:
		return refuse("a node's resources must be >= 0")
	}
	return node, nil
}

// heartbeat answers PUT /v1/client/{id}/heartbeat: the client is there. Its body is not
// looked at.
func (q *request) heartbeat() error {
	ttl, err := q.backend.Writer.Heartbeat(q.Context(), q.nodeID())
	if err != nil {
		return orNotFound(err, http.StatusNotFound, nodeNotFound)
	}
	return q.answer(wire.HeartbeatResponse{HeartbeatTTL: ttl})
}

// reportAllocs answers PUT /v1/client/{id}/allocations: what a client says of its
// allocations. What it says of another node's is passed over.
func (q *request) reportAllocs() error {
	var body wire.AllocsRequest
	if err := q.decode(&body); err != nil {
		return err
	}
	if len(body.Allocs) > maxReports {
		return fail(http.StatusRequestEntityTooLarge, fmt.Sprintf("a report is about %d allocations at most", maxReports))
	}
	reports, err := body.Reports(q.nodeID(), now())
	if err != nil {
		return fail(http.StatusBadRequest, err.Error())
	}
	if err := q.nodeExists(); err != nil {
		return err
	}
	done, err := q.backend.Writer.ReportAllocs(q.Context(), reports)
	if err != nil {
		return orNotFound(err, http.StatusNotFound, nodeNotFound)
	}
	return q.written(done.Index, wire.AllocsResponse{Index: done.Index})
}

// nodeExists is an error unless the node that the path names exists.
func (q *request) nodeExists() error {
	s, err := q.state()
	if err == nil && s.Node(q.nodeID()) == nil {
		err = fail(http.StatusNotFound, nodeNotFound)
	}
	return err
}

// now is the server's time: a client's clock dates nothing in the state.
func now() time.Time { return time.Now().Round(0).UTC() }
