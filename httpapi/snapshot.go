package httpapi

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

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
	_, _ = io.Copy(q.w, saved) // the client sees by its length that it is cut
	return nil
}

// restoreSnapshot answers PUT /v1/operator/snapshot: it replaces the state of all servers.
func restoreSnapshot(q *request) error {
	if q.backend.Snapshots == nil {
		return errNoSnapshots()
	}
	index, err := q.backend.Snapshots.Restore(q.Context(), q.Body)
	if errors.Is(err, ErrNotLeader) { // too late to forward: the body was read
		return fail(http.StatusServiceUnavailable, "this server no longer leads, and nothing has changed: retry")
	}
	if err != nil {
		return err
	}
	q.indexHeader(index)
	q.w.WriteHeader(http.StatusOK)
	return nil
}

func errNoSnapshots() error {
	return fail(http.StatusNotImplemented, "this server cannot save or restore snapshots")
}
