package httpapi_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// snapshots keeps one file.
type snapshots struct {
	file string
	err  error // of each call, or nil
}

func (s *snapshots) Save(context.Context) (*httpapi.SavedSnapshot, error) {
	return &httpapi.SavedSnapshot{
		ReadCloser: io.NopCloser(strings.NewReader(s.file)), Size: int64(len(s.file)), SHA256: sha256.Sum256([]byte(s.file)), Index: 9,
	}, s.err
}

func (s *snapshots) Restore(_ context.Context, from io.Reader) (uint64, error) {
	if s.err != nil {
		return 0, s.err
	}
	text, err := io.ReadAll(from)
	s.file = string(text)
	return 10, err
}

// withSnapshots is the backend of the fixture, with files.
func (w *fixture) withSnapshots(s httpapi.Snapshots) httpapi.Backend {
	b := w.backend()
	b.Snapshots = s
	return b
}

// Nomad's client verifies the checksum of a saved file, and sends it back. A file may be larger than
// the bodies of other requests, and the answering server need not be the one that receives the request.
func TestSnapshot_ofTheReferenceClient(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	kept := &snapshots{file: strings.Repeat("state ", 1000)}
	options := httpapi.Options{MaxBody: 100}
	for _, follows := range []bool{false, true} {
		leads := w.handler(w.withSnapshots(kept), options)
		server := w.serveAs(w.withSnapshots(kept), options)
		if follows {
			second := newFixture(t)
			second.follows, second.leader = true, leads.Forwarded()
			server = second.serveAs(second.withSnapshots(&snapshots{file: "not the leader's"}), options)
		}
		client := result.Of(api.NewClient(&api.Config{Address: server.URL})).OK(t)
		file := result.Of(client.Operator().Snapshot(nil)).OK(t)
		text, err := io.ReadAll(file) // checks the digest
		must.NoError(t, err)
		must.NoError(t, file.Close())
		must.Eq(t, kept.file, string(text))

		want := strings.Repeat(fmt.Sprint("another state ", follows), 1000)
		result.Of(client.Operator().SnapshotRestore(strings.NewReader(want), nil)).OK(t)
		must.Eq(t, want, kept.file)
	}
}

func TestSnapshot_errors(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	bad := fmt.Errorf("%w: it is cut", httpapi.ErrBadSnapshot)
	for name, c := range map[string]struct {
		snapshots httpapi.Snapshots
		code      int
		want      string
	}{
		"none":             {nil, http.StatusNotImplemented, "cannot save or restore snapshots"},
		"refused":          {&snapshots{err: bad}, http.StatusBadRequest, "the snapshot was refused, and nothing has changed: it is cut"},
		"leads no more":    {&snapshots{err: httpapi.ErrNotLeader}, http.StatusServiceUnavailable, "nothing has changed: retry"},
		"not certain":      {&snapshots{err: httpapi.ErrUnknown}, http.StatusInternalServerError, "the outcome of the write is not known"},
		"without a quorum": {&snapshots{err: httpapi.ErrUnavailable}, http.StatusServiceUnavailable, "nothing has changed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := w.serveAs(w.withSnapshots(c.snapshots), httpapi.Options{})
			got := request(t, "PUT", server.URL+httpapi.SnapshotPath, "file")
			must.Eq(t, c.code, got.code)
			must.StrContains(t, got.body, c.want)
		})
	}
}

// A token that may only read saves no file: it holds the secrets of nodes.
func TestSnapshot_needsTheRightToWrite(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	b := w.withSnapshots(&snapshots{file: "state"})
	b.Access = everyToken()
	server := w.serveAs(b, httpapi.Options{})
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		for token, want := range map[string]int{"reader-token": http.StatusForbidden, "": http.StatusForbidden, "writer-token": http.StatusOK} {
			must.Eq(t, want, request(t, method, server.URL+httpapi.SnapshotPath, "file", "X-Nomad-Token", token).code, must.Sprint(method, " ", token))
		}
	}
}
