package httpapi

import (
	"net"
	"net/http"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// readRaftConfiguration answers GET /v1/operator/raft/configuration: the servers that
// vote, and those that do not.
func (q *request) readRaftConfiguration() error {
	w := wire.RaftConfiguration{Servers: []wire.RaftServer{}}
	for _, m := range q.backend.Peers.Members() {
		w.Servers = append(w.Servers, wire.RaftServer{
			ID: m.ID, Node: m.ID, Address: m.Address, Leader: m.Leader, Voter: m.Voter, RaftProtocol: "3",
			MinVersion: uint64(m.Understands.Min), MaxVersion: uint64(m.Understands.Max),
		})
	}
	err := q.lookAgain(q.Context(), 0, func(state State) (uint64, error) {
		w.ClusterVersion = uint64(state.ClusterVersion())
		return state.Index(), nil
	})
	if err != nil {
		return err
	}
	return q.answer(w)
}

// removePeer answers DELETE /v1/operator/raft/peer?id=: the server is one no more.
func (q *request) removePeer() error {
	id := q.URL.Query().Get("id")
	if id == "" {
		return fail(http.StatusBadRequest, "Must specify ?id with the server to remove")
	}
	if err := q.backend.Peers.Remove(q.Context(), id); err != nil {
		return orNotFound(err, http.StatusNotFound, "server not found")
	}
	q.w.WriteHeader(http.StatusOK)
	return nil
}

// joinPeer answers POST /v1/operator/raft/join: the server is one from now on, at this
// address. Ours.
func (q *request) joinPeer() error {
	var body wire.JoinRequest
	if err := q.decode(&body); err != nil {
		return err
	}
	if body.ID == "" {
		return fail(http.StatusBadRequest, "missing ID")
	}
	if err := cluster.CheckID(body.ID); err != nil {
		return fail(http.StatusBadRequest, "invalid ID: "+err.Error())
	}
	if _, port, err := net.SplitHostPort(body.Address); err != nil || port == "" {
		return fail(http.StatusBadRequest, "Address is not host:port")
	}
	if err := q.backend.Peers.Join(q.Context(), body.ID, body.Address); err != nil {
		return err
	}
	q.w.WriteHeader(http.StatusOK)
	return nil
}
