package httpapi

import (
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jsonbody"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// readRaftConfiguration answers GET /v1/operator/raft/configuration: voters and non-voters. It requests
// the status of each of them.
func readRaftConfiguration(q *request) error {
	w := wire.RaftConfiguration{Servers: []wire.RaftServer{}, Cluster: q.backend.Peers.Cluster()}
	members := q.backend.Peers.Survey(q.Context())
	newest := newestEntry(members)
	for _, m := range members {
		w.Servers = append(w.Servers, wire.RaftServer{
			ID: m.ID, Node: m.ID, Address: m.Address, Leader: m.Leader, Voter: m.Voter, RaftProtocol: "3",
			MinVersion: uint64(m.Understands.Min), MaxVersion: uint64(m.Understands.Max),
			LastContact: wire.NewTime(m.LastContact), Alive: m.Alive, Started: wire.NewTime(m.Started), Build: m.Build, AppliedIndex: m.Applied,
			Behind: newest - min(newest, m.Applied),
			State:  string(m.Agreement), StateIndex: m.ComparedAt,
		})
	}
	err := q.readAgain(q.Context(), 0, func(state State) (uint64, error) {
		w.ClusterVersion = uint64(state.ClusterVersion())
		return state.Index(), nil
	})
	if err != nil {
		return err
	}
	return q.answer(w)
}

// newestEntry is the index of the leader's newest entry. If no leader answers, it is that of the
// newest entry of all.
func newestEntry(members []Member) (newest uint64) {
	for _, m := range members {
		if m.Leader && m.Alive {
			return m.Newest
		}
		newest = max(newest, m.Newest)
	}
	return newest
}

// collectEnded answers PUT /v1/system/gc: it deletes ended work that nothing needs, and answers when
// it has. The reference answers without a body, and its clients ignore ours.
func collectEnded(q *request) error {
	deleted, err := q.backend.Writer.Collect(q.Context())
	if err != nil {
		return err
	}
	return q.answer(wire.Collected{Allocations: deleted.Allocs, Evaluations: deleted.Evals, Jobs: deleted.Jobs})
}

// removePeer answers DELETE /v1/operator/raft/peer?id=: it removes the server from the cluster.
func removePeer(q *request) error {
	id := q.URL.Query().Get("id")
	if id == "" {
		return failure.Bad("Must specify ?id with the server to remove")
	}
	if err := q.backend.Peers.Remove(q.Context(), id); err != nil {
		return orNotFound(err, http.StatusNotFound, "server not found")
	}
	q.w.WriteHeader(http.StatusOK)
	return nil
}

// joinPeer answers POST /v1/operator/raft/join: it adds the server at this address. Ours.
func joinPeer(q *request) error {
	var body wire.JoinRequest
	if err := jsonbody.Decode(q.body, &body); err != nil {
		return err
	}
	if body.ID == "" {
		return failure.Bad("missing ID")
	}
	if err := cluster.CheckID(body.ID); err != nil {
		return failure.New(http.StatusBadRequest, "invalid ID: "+err.Error())
	}
	if _, port, err := net.SplitHostPort(body.Address); err != nil || port == "" {
		return failure.Bad("Address is not host:port")
	}
	if err := q.backend.Peers.Join(q.Context(), body.ID, body.Address); err != nil {
		return err
	}
	q.w.WriteHeader(http.StatusOK)
	return nil
}

// SnapshotPath is the path of the routes that save and restore the state. Their bodies are large.
const SnapshotPath = "/v1/operator/snapshot"

// snapshotTime is for the transfer of a snapshot in either direction.
const snapshotTime = 30 * time.Minute

// saveSnapshot answers GET /v1/operator/snapshot: a file with the whole state.
func saveSnapshot(q *request) error {
	if q.backend.Snapshots == nil {
		return errNoSnapshots()
	}
	saved, err := q.backend.Snapshots.Save(q.Context())
	if err != nil {
		return err
	}
	defer func() { _ = saved.Close() }() // it was only read
	q.readHeaders(saved.Index)
	header := q.w.Header()
	header.Set("Content-Type", "application/x-gzip")
	header.Set("Content-Length", strconv.FormatInt(saved.Size, 10))
	header.Set("Digest", "sha-256="+base64.StdEncoding.EncodeToString(saved.SHA256[:]))
	q.w.WriteHeader(http.StatusOK)
	_, _ = io.Copy(q.w, saved) // the client detects by the length that it is cut
	return nil
}

// restoreSnapshot answers PUT /v1/operator/snapshot: it replaces the state of all servers.
func restoreSnapshot(q *request) error {
	if q.backend.Snapshots == nil {
		return errNoSnapshots()
	}
	index, err := q.backend.Snapshots.Restore(q.Context(), q.Body)
	if errors.Is(err, ErrNotLeader) { // too late to forward: the body was read
		return failure.New(http.StatusServiceUnavailable, "this server no longer leads, and nothing has changed: retry")
	}
	if err != nil {
		return err
	}
	q.indexHeader(index)
	q.w.WriteHeader(http.StatusOK)
	return nil
}

func errNoSnapshots() error {
	return failure.New(http.StatusNotImplemented, "this server cannot save or restore snapshots")
}
