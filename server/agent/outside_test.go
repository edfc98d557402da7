package agent_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/access"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/server/telemetry"
)

// user sends requests over HTTPS.
type user struct {
	*testing.T
	client *http.Client
}

// newUser returns a user with a certificate, or with none.
func newUser(t *testing.T, roots authority, s *signed) user {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "localhost"}
	config.RootCAs.AddCert(roots.certificate)
	if s != nil {
		pair := result.Of(tls.X509KeyPair(s.certificate, s.key)).OK(t)
		config.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return user{t, &http.Client{Transport: transport}}
}

// request sends a request with a token and returns the status code and the body.
func (u user) request(method, url, token, body string) (code int, answer string, err error) {
	u.Helper()
	r := result.Of(http.NewRequestWithContext(u.Context(), method, url, strings.NewReader(body))).OK(u)
	r.Header.Set("Authorization", "Bearer "+token)
	got, err := u.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	text := result.Of(io.ReadAll(got.Body)).OK(u)
	must.NoError(u, got.Body.Close())
	return got.StatusCode, string(text), nil
}

// Two servers with TLS, tokens and metrics accept requests with the required right, and no others.
func TestAgent_accessControl(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	reader, readLine, err := access.Generate("dashboard", access.Read)
	must.NoError(t, err)
	writer, writeLine, err := access.Generate("ops", access.Write)
	must.NoError(t, err)
	registrar, nodeLine, err := access.Generate("machines", access.Node)
	must.NoError(t, err)
	path := filepath.Join(t.TempDir(), "tokens")
	must.NoError(t, os.WriteFile(path, []byte(readLine.Line()+"\n"+writeLine.Line()+"\n"+nodeLine.Line()+"\n"), 0o600))
	tokens := result.Of(access.Open(path, nil)).OK(t)

	secure := func(c agent.Config) *agent.Agent {
		t.Helper()
		certs := newFiles(t, ca.pem(), ca.server("global")).open()
		metrics := result.Of(telemetry.New(telemetry.Options{CertificateExpires: certs.Expires})).OK(t)
		t.Cleanup(metrics.Close)
		c.HTTPTLS, c.ServerTLS, c.Access, c.Metrics = certs.Public(), certs.Peers(), tokens, metrics
		return start(t, c)
	}
	first := secure(agent.Config{BootstrapExpect: 1})
	ready(t, first)
	second := secure(agent.Config{Join: []string{first.ServerAddr()}})
	ready(t, second)

	clientCert := ca.sign(time.Hour, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, "ops.global.nodedrain")
	withCertificate, without := newUser(t, ca, &clientCert), newUser(t, ca, nil)
	url := "https://" + second.HTTPAddr() // the follower forwards over TLS
	_, _, err = without.request("GET", url+"/v1/nodes", writer.Reveal(), "")
	must.Error(t, err) // an alert, or a closed connection

	cases := []struct {
		name, method, path, token string
		want                      int
	}{
		{"a read without a token", "GET", "/v1/nodes", "", 403},
		{"a read with an unknown token", "GET", "/v1/nodes", "nodedrain_guess", 403},
		{"a reader reads", "GET", "/v1/nodes", reader.Reveal(), 200},
		{"a reader reads metrics", "GET", "/v1/metrics", reader.Reveal(), 200},
		{"metrics without a token", "GET", "/v1/metrics?format=prometheus", "", 403},
		{"metrics without a token, at Prometheus' path", "GET", "/metrics", "", 403},
		{"a reader writes", "PUT", "/v1/node/n1/drain", reader.Reveal(), 403},
		{"a registrar reads", "GET", "/v1/nodes", registrar.Reveal(), 403},
		{"a registrar writes", "PUT", "/v1/node/n1/drain", registrar.Reveal(), 403},
		{"a registrar may register", "PUT", "/v1/client/n2/register", registrar.Reveal(), 400}, // the body has no node
		{"a reader may not", "PUT", "/v1/client/n2/register", reader.Reveal(), 403},
		{"a writer writes", "PUT", "/v1/node/n1/drain", writer.Reveal(), 200},
	}
	result.Of(first.Backend().Writer.RegisterNode(t.Context(), &cluster.Node{ID: "n1", Status: cluster.NodeReady})).OK(t)
	for _, c := range cases { // in order: the metrics below count the last request
		code, answer, err := withCertificate.request(c.method, url+c.path, c.token, `{"DrainSpec": {}}`)
		must.NoError(t, err, must.Sprint(c.name))
		must.Eq(t, c.want, code, must.Sprint(c.name, ": ", answer))
	}

	var text string
	for !strings.Contains(text, "\nnodedrain_drains_ended_total{outcome=\"complete\"} 1\n") {
		_, text, err = withCertificate.request("GET", "https://"+first.HTTPAddr()+"/metrics", reader.Reveal(), "")
		must.NoError(t, err)
	}
	for _, line := range []string{
		`nodedrain_raft_leads 1`, `nodedrain_raft_writes_total{outcome="applied",type="NodeUpdateDrain"} 1`,
		`nodedrain_invariant_violations_total{guarantee="G1"} 0`, `nodedrain_http_requests_total{code="200",method="PUT",route="/v1/node/{id}/drain"} 1`,
	} {
		must.StrContains(t, text, "\n"+line+"\n")
	}
	must.StrContains(t, text, "\nnodedrain_certificate_expires_timestamp_seconds ")
	must.StrNotContains(t, text, "\nnodedrain_drainer_step_seconds_count 0\n")
	must.StrNotContains(t, text, reader.Reveal())
}
