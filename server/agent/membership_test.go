package agent

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

func startAgent(t *testing.T, c Config) *Agent {
	t.Helper()
	c.HTTPAddr, c.ServerAddr, c.PeerSecret = "127.0.0.1:0", "127.0.0.1:0", NewTestSecret()
	a := result.Of(New(c)).OK(t)
	t.Cleanup(func() { _ = a.Stop() })
	return a
}

// A server keeps its promise to join one new cluster after a restart.
func TestMembership_promiseSurvivesARestart(t *testing.T) {
	t.Parallel()
	c := Config{Name: "s2", DataDir: t.TempDir()}
	promiseTo := func(by string) promise {
		return promise{By: by, Voters: []raft.Server{{ID: raft.ServerID(by)}, {ID: "s2"}}, Cluster: "of " + by}
	}
	a := startAgent(t, c)
	must.NoError(t, a.membership.promise(promiseTo("s1")))
	must.NoError(t, a.Stop())
	a = startAgent(t, c)
	must.ErrorContains(t, a.membership.promise(promiseTo("s0")), "has already promised server s1")
	must.NoError(t, a.membership.promise(promiseTo("s1")))
	must.Eq(t, "of s1", a.membership.id())
}

// The answers of refused requests have the codes that older servers expect. Bug: all were 500.
func TestMembership_codesOfRefusals(t *testing.T) {
	t.Parallel()
	a := startAgent(t, Config{Name: "s1"})
	handler := newPeerHandler(a, http.NotFoundHandler())
	for _, c := range []struct {
		path, body string
		code       int
	}{
		{pathPromise, `{"By": "s0"}`, http.StatusConflict},
		{pathVerdict, `{"Agreement": "perhaps"}`, http.StatusBadRequest},
		{pathVerdict, `{`, http.StatusBadRequest},
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, c.path, strings.NewReader(c.body)))
		must.EqOp(t, c.code, w.Code, must.Sprint(c.path, " ", w.Body.String()))
	}
	// Only join and remove are forwarded to the leader.
	mux := http.NewServeMux()
	answer(mux, a, pathDigest, func(context.Context, digestRequest) (stateDigest, error) { return stateDigest{}, httpapi.ErrNotLeader })
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, pathDigest, strings.NewReader("{}")))
	must.StrContains(t, w.Body.String(), httpapi.ErrNotLeader.Error())
}

// The removal of an unknown server is answered with ErrNotFound. For a leaving server this means that an
// earlier request has removed it.
func TestMembership_removalOfAnUnknownServer(t *testing.T) {
	t.Parallel()
	a := startAgent(t, Config{Name: "s1", BootstrapExpect: 1})
	ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
	defer cancel()
	must.NoError(t, a.Ready(ctx))
	_, err := requestInfo(ctx, a, a.ServerAddr(), pathRemove, serverRef{ID: "s2"})
	must.ErrorIs(t, err, httpapi.ErrNotFound)
}

// A server of a cluster does not join another cluster that it finds.
func TestMembership_staysInItsCluster(t *testing.T) {
	t.Parallel()
	a := startAgent(t, Config{Name: "s1", BootstrapExpect: 1})
	mine := a.membership.id()
	must.NotEq(t, "", mine)
	must.ErrorContains(t, a.membership.adopt(serverInfo{ID: "s9", Members: 3, Cluster: "other"}), "is in another cluster (other)")
	must.NoError(t, a.membership.adopt(serverInfo{ID: "s9", Members: 3, Cluster: mine}))
	must.Eq(t, mine, a.membership.id())
}
