package node

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/presence"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	api "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

func newServers(t *testing.T, handlers ...http.HandlerFunc) *httpServers {
	t.Helper()
	var c config.Servers
	for _, h := range handlers {
		one := httptest.NewServer(h)
		t.Cleanup(one.Close)
		c.Addresses = append(c.Addresses, one.URL)
	}
	c.Token = "registrar"
	s, err := newHTTPServers(c, identity{ID: "n1", Secret: "secret"}, "p1")
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, s.close()) })
	return s
}

func responds(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func TestHTTPServers_acceptAnonymous(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		body   string
		accept bool
		failed bool
	}{
		{status: http.StatusForbidden, body: "Permission denied"},
		{status: http.StatusForbidden, body: "the Host header names another server: use an IP address", failed: true},
		{status: http.StatusUnauthorized, body: "Permission denied", failed: true},
		{status: http.StatusBadRequest, body: "Permission denied", accept: true},
		{status: http.StatusOK, accept: true},
		{status: http.StatusInternalServerError, failed: true},
		{status: http.StatusTooManyRequests, failed: true},
	} {
		t.Run(fmt.Sprint(c.status, " ", c.body), func(t *testing.T) {
			t.Parallel()
			s := newServers(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Nomad-Token") != "" || r.Header.Get("Authorization") != "" {
					t.Error("the request has a token")
				}
				responds(c.status, cmp.Or(c.body, "{}"))(w, r)
			})
			accept, err := s.AcceptAnonymous(t.Context())
			must.Eq(t, c.failed, err != nil)
			must.Eq(t, c.accept, accept)
		})
	}
}

// AcceptAnonymous is true if one of the servers requires no token.
func TestSecurity_OneOpenServer(t *testing.T) {
	t.Parallel()
	guarded, open, broken := responds(http.StatusForbidden, "Permission denied"), responds(http.StatusBadRequest, "Job must be specified"), responds(http.StatusInternalServerError, "No cluster leader")
	for name, c := range map[string]struct {
		servers []http.HandlerFunc
		accept  bool
		failed  bool
	}{
		"the second is open":   {[]http.HandlerFunc{guarded, open, guarded}, true, false},
		"one does not answer":  {[]http.HandlerFunc{broken, guarded}, false, false},
		"the one that answers": {[]http.HandlerFunc{broken, open}, true, false},
		"none answers":         {[]http.HandlerFunc{broken, broken}, false, true},
		"all demand a token":   {[]http.HandlerFunc{guarded, guarded}, false, false},
	} {
		accept, err := newServers(t, c.servers...).AcceptAnonymous(t.Context())
		must.Eq(t, c.accept, accept, must.Sprint(name))
		must.Eq(t, c.failed, err != nil, must.Sprint(name))
	}
}

// Bug: the first answer decided, so a server that requires no token was not noticed if another one was faster. Here each
// server answers when the one before it has answered.
func TestHTTPServers_openServerAnswersLast(t *testing.T) {
	t.Parallel()
	before := make(chan struct{})
	close(before)
	var all []http.HandlerFunc
	for _, answer := range []http.HandlerFunc{
		responds(http.StatusForbidden, "Permission denied"), responds(http.StatusInternalServerError, "No cluster leader"), responds(http.StatusBadRequest, "Job must be specified"),
	} {
		wait, answered := before, make(chan struct{})
		all = append(all, func(w http.ResponseWriter, r *http.Request) {
			<-wait
			answer(w, r)
			must.NoError(t, http.NewResponseController(w).Flush())
			close(answered)
		})
		before = answered
	}
	accept, err := newServers(t, all...).AcceptAnonymous(t.Context())
	must.NoError(t, err)
	must.True(t, accept)
}

// A server with TLS gets no request, neither with a secret nor without one, if no configured authority has signed its
// certificate. It is refused at each place among the servers.
func TestSecurity_ServerWithoutAnAuthority(t *testing.T) {
	t.Parallel()
	loopback := httptest.NewServer(responds(http.StatusInternalServerError, "No cluster leader"))
	t.Cleanup(loopback.Close)
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server got a request") }))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it logs the refused handshakes
	secure.StartTLS()
	t.Cleanup(secure.Close)
	for at := range 3 {
		addresses := []string{loopback.URL, loopback.URL, loopback.URL}
		addresses[at] = secure.URL
		s, err := newHTTPServers(config.Servers{Addresses: addresses, Token: "registrar"}, identity{ID: "n1", Secret: "secret"}, "p1")
		must.NoError(t, err)
		refused := 0
		for range addresses { // after a failure the next server gets the request
			_, err := s.Register(t.Context(), &cluster.Node{ID: "n1", SecretID: "secret"})
			must.Error(t, err)
			if _, is := errors.AsType[x509.UnknownAuthorityError](err); is {
				refused++
			}
		}
		must.EqOp(t, 1, refused)
		accept, err := s.AcceptAnonymous(t.Context())
		must.Error(t, err)
		must.False(t, accept)
		must.NoError(t, s.close())
	}
}

// A node registers with its secret. It uses the token only if the servers refuse the secret.
func TestHTTPServers_registersWithTheSecret(t *testing.T) {
	t.Parallel()
	registered := false
	var tokens []string
	s := newServers(t, func(w http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.Header.Get("X-Nomad-Token"))
		if !registered && r.Header.Get("X-Nomad-Token") != "registrar" {
			responds(http.StatusForbidden, "ACL token not found")(w, r)
			return
		}
		registered = true
		responds(http.StatusOK, `{"HeartbeatTTL": 5000000000}`)(w, r)
	})
	for range 2 {
		_, err := s.Register(t.Context(), &cluster.Node{ID: "n1", SecretID: "secret"})
		must.NoError(t, err)
	}
	must.Eq(t, []string{"secret", "registrar", "secret"}, tokens)
}

// Servers with tokens answer 403 to a heartbeat of a node that is not registered. The client then logged
// that once, and never registered the node again.
func TestHTTPServers_unknownNode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status  int
		body    string
		unknown bool
	}{
		{http.StatusForbidden, "ACL token not found", true},
		{http.StatusForbidden, "Permission denied", true},
		{http.StatusNotFound, "node not found", true},
		{http.StatusInternalServerError, "node not found", true},
		{http.StatusInternalServerError, "No cluster leader", false},
		{http.StatusTooManyRequests, "too many readers are waiting", false},
		{http.StatusServiceUnavailable, "the server is stopping", false},
	} {
		_, err := newServers(t, responds(c.status, c.body)).Heartbeat(t.Context())
		must.Error(t, err)
		must.EqOp(t, c.unknown, errors.Is(err, presence.ErrNotRegistered), must.Sprint(c))
	}
}

// A node that is not registered registers with the token of the token file. The client reads
// the file again at each such registration. If it cannot, it uses the last token, and the error of a
// refused registration has the reason.
func TestHTTPServers_tokenFile(t *testing.T) {
	t.Parallel()
	valid := "first"
	s := newServers(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Nomad-Token") != valid {
			responds(http.StatusForbidden, "ACL token not found")(w, r)
			return
		}
		responds(http.StatusOK, `{"HeartbeatTTL": 5000000000}`)(w, r)
	})
	file := filepath.Join(t.TempDir(), "token")
	s.token = machineToken{file: file, last: "first"}
	register := func() error {
		_, err := s.Register(t.Context(), &cluster.Node{ID: "n1", SecretID: "secret"})
		return err
	}
	must.NoError(t, register(), must.Sprint("the file is deleted, and the last token is valid"))
	valid = "second"
	must.ErrorContains(t, register(), "the token file cannot be read")
	must.NoError(t, os.WriteFile(file, []byte("second\n"), 0o600))
	must.NoError(t, register())
	valid = "third"
	err := register()
	must.ErrorContains(t, err, "ACL token not found")
	must.StrNotContains(t, err.Error(), "token file")
	must.StrNotContains(t, err.Error(), "second")
	s.token = machineToken{}
	must.ErrorContains(t, register(), "the client has no token_file")
}

// Requests contain the secret of the node. After a failure the next request goes to the next
// server.
func TestHTTPServers_tokens(t *testing.T) {
	t.Parallel()
	s := newServers(t, responds(http.StatusInternalServerError, ""), func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("X-Nomad-Token"); got != "secret" {
			t.Errorf("%s has the token %q", r.URL.Path, got)
		}
		if r.URL.Path == "/v1/client/n1/heartbeat" {
			responds(http.StatusNotFound, "node not found")(w, r)
			return
		}
		responds(http.StatusOK, `{"HeartbeatTTL": 5000000000}`)(w, r)
	})
	n := &cluster.Node{ID: "n1", SecretID: "secret"}
	_, err := s.Register(t.Context(), n)
	must.Error(t, err)
	ttl, err := s.Register(t.Context(), n)
	must.NoError(t, err)
	must.Eq(t, "5s", ttl.String())
	_, err = s.Heartbeat(t.Context())
	must.ErrorIs(t, err, presence.ErrNotRegistered)
	must.NoError(t, s.Report(t.Context(), nil))
}

// During an upgrade the servers drop fields of newer cluster versions, such as the devices of a
// node. The client registers again when the version has increased, and only then. Servers of an
// older release report no version.
func TestHTTPServers_RegisterAgainInANewerClusterVersion(t *testing.T) {
	t.Parallel()
	version := 0
	s := newServers(t, func(w http.ResponseWriter, r *http.Request) {
		responds(http.StatusOK, fmt.Sprintf(`{"HeartbeatTTL": 5000000000, "ClusterVersion": %d}`, version))(w, r)
	})
	register := func() {
		_, err := s.Register(t.Context(), &cluster.Node{ID: "n1", SecretID: "secret"})
		must.NoError(t, err)
	}
	register()
	_, err := s.Heartbeat(t.Context())
	must.NoError(t, err)
	for version = 5; version <= 6; version++ {
		_, err = s.Heartbeat(t.Context())
		must.ErrorIs(t, err, presence.ErrNotRegistered)
		register()
		_, err = s.Heartbeat(t.Context())
		must.NoError(t, err)
	}
	version = 0 // a server of an older release answers
	_, err = s.Heartbeat(t.Context())
	must.NoError(t, err)
}

func TestChangesOf(t *testing.T) {
	t.Parallel()
	since := api.Since{ClusterID: "c", Index: 7, History: "h7"}
	for name, c := range map[string]struct {
		live     []cluster.AllocID
		expected client.Changes
	}{
		"changes":            {nil, client.Changes{}},
		"changes and a list": {[]cluster.AllocID{"b"}, client.Changes{Complete: true, Known: []cluster.AllocID{"b"}}},
		"nothing lives":      {[]cluster.AllocID{}, client.Changes{Complete: true, Known: []cluster.AllocID{}}},
	} {
		allocs := []*cluster.Allocation{{ID: "a"}}
		c.expected.ClusterID, c.expected.Index, c.expected.History, c.expected.Allocs = "c", 7, "h7", allocs
		c.expected.Unreadable, c.expected.Nameless = []client.Unreadable{{Alloc: allocs[0], Reason: "deep"}}, []string{"allocation 2"}
		answer := api.Changes{
			Since: since, Allocs: allocs, Live: c.live, Unreadable: []api.Unreadable{{Alloc: allocs[0], Reason: "deep"}}, Nameless: []string{"allocation 2"},
		}
		must.Eq(t, c.expected, changesOf(answer), must.Sprint(name))
		c.expected.All, answer.Complete = true, true
		must.Eq(t, c.expected, changesOf(answer), must.Sprint(name))
	}
}
