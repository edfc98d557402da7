package httpapi

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jsonbody"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/limits"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// This file is ours: clients of the reference use another protocol.

// Bounds on one request of a client: the secret of one node must not fill the log.
const (
	// maxRegistration and maxReport bound the body, in bytes. A registration has room for the devices, and
	// for the rest of the node.
	maxRegistration = cluster.MaxDeviceBytes + 1<<20
	maxReport       = 1 << 20
	// maxReports bounds the allocations that one report is about.
	maxReports = 10_000
)

// registerNode answers PUT /v1/client/{id}/register: a client's node joins the cluster or is
// updated. Its secret makes the node its own: only a client with the secret registers under that id
// later, and the secret is a token for the node's routes.
func registerNode(q *request) error {
	var body wire.RegisterRequest
	if err := jsonbody.Decode(q.body, &body); err != nil {
		return err
	}
	node, err := registration(q, body.Node)
	if err != nil {
		return err
	}
	s, err := q.state()
	if err != nil {
		return err
	}
	known := s.Node(node.ID)
	if known != nil && !sameSecret(known.SecretID, node.SecretID) {
		return errOtherSecret()
	}
	if err := admitProcess(q, known != nil); err != nil { // a new node has no other process
		return err
	}
	ttl, err := q.backend.Writer.RegisterNode(q.Context(), node)
	if err != nil {
		return err
	}
	after, err := q.state()
	if err != nil {
		return err
	}
	return q.answer(wire.HeartbeatResponse{HeartbeatTTL: ttl, ClusterVersion: s.ClusterVersion(), State: stateID(after)})
}

// stateID identifies a state, or is zero below cluster version 9.
func stateID(s State) wire.StateID {
	if s.History() == 0 {
		return wire.StateID{}
	}
	return wire.StateID{Index: s.Index(), History: strconv.FormatUint(s.History(), 16)}
}

// processOf returns the id of the client's process, or empty.
func processOf(q *request) (string, error) {
	id := q.Header.Get(session.ProcessHeader)
	if id == "" {
		return "", nil
	}
	if err := cluster.CheckID(cluster.NodeID(id)); err != nil {
		return "", failure.New(http.StatusBadRequest, "invalid id of a process: "+err.Error())
	}
	return id, nil
}

// admitProcess returns an error if another process is the client of the node.
func admitProcess(q *request, begins bool) error {
	process, err := processOf(q)
	if err != nil || q.backend.Nodes == nil {
		return err
	}
	return q.backend.Nodes.Admit(q.Context(), q.nodeID(), process, begins)
}

// checkClient returns an error if another process has become the client of the node since the request was
// sent. Such a request is late. The present client may run again what the request reports as ended or released.
func checkClient(q *request) error {
	process, err := processOf(q)
	if err != nil || q.backend.Nodes == nil {
		return err
	}
	return q.backend.Nodes.CheckClient(q.nodeID(), process)
}

// registration is the node in the body, if it is valid.
func registration(q *request, w *wire.Node) (*cluster.Node, error) {
	refuse := func(text string) (*cluster.Node, error) { return nil, failure.New(http.StatusBadRequest, text) }
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
		return refuse("the node's ID differs from the path's")
	case node.SecretID == "":
		return refuse("missing SecretID")
	case node.Status != "" && !node.Status.Valid():
		return refuse("invalid node status")
	case node.SchedulingEligibility != "" && !node.SchedulingEligibility.Valid():
		return refuse("invalid scheduling eligibility")
	case !none.Fits(node.Resources) || !none.Fits(node.Reserved) || node.MaxAllocs < 0:
		return refuse("a node's resources must be >= 0")
	}
	if err := cmp.Or(limits.Node(node), node.CheckDrivers(), node.CheckDevices(), node.Network.Check(), node.Cores.Check(), node.Unlisted.Check()); err != nil {
		return refuse(err.Error())
	}
	if err := node.CheckStoragePlugins(); err != nil {
		return refuse(err.Error())
	}
	return node, nil
}

// heartbeat answers PUT /v1/client/{id}/heartbeat. It ignores the body.
func heartbeat(q *request) error {
	if err := admitProcess(q, false); err != nil {
		return err
	}
	ttl, err := q.backend.Writer.Heartbeat(q.Context(), q.nodeID())
	if err != nil {
		return orNotFound(err, http.StatusNotFound, nodeNotFound)
	}
	s, err := q.state()
	if err != nil {
		return err
	}
	return q.answer(wire.HeartbeatResponse{HeartbeatTTL: ttl, ClusterVersion: s.ClusterVersion(), State: stateID(s)})
}

// reportAllocs answers PUT /v1/client/{id}/allocations: a client's report of its allocations. It
// leaves out allocations of other nodes.
func reportAllocs(q *request) error {
	var body wire.AllocsRequest
	if err := jsonbody.Decode(q.body, &body); err != nil {
		return err
	}
	if len(body.Allocs) > maxReports {
		return failure.Newf(http.StatusRequestEntityTooLarge, "a report holds %d allocations at most", maxReports)
	}
	reports, err := body.Reports(q.nodeID(), now())
	if err != nil {
		return failure.New(http.StatusBadRequest, err.Error())
	}
	if err := cmp.Or(nodeExists(q), checkClient(q)); err != nil {
		return err
	}
	done, err := q.backend.Writer.ReportAllocs(q.Context(), reports)
	if err != nil {
		return orNotFound(err, http.StatusNotFound, nodeNotFound)
	}
	s, err := q.state()
	if err != nil {
		return err
	}
	return q.written(done.Index, wire.AllocsResponse{Index: done.Index, State: stateID(s)})
}

// nodeExists is an error unless the node that the path names exists.
func nodeExists(q *request) error {
	s, err := q.state()
	if err == nil && s.Node(q.nodeID()) == nil {
		err = failure.New(http.StatusNotFound, nodeNotFound)
	}
	return err
}

// now is the server's time: a client's clock dates nothing in the state.
func now() time.Time { return time.Now().Round(0).UTC() }
