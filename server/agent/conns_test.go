package agent_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/shoenig/test/must"

	apiclient "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/connlimit"
	"github.com/seed-f9cf0b39/nodedrain/server/telemetry"
)

// stranger opens connections from an address of its own, and sends nothing.
type stranger struct {
	*testing.T
	from string
}

// newStranger returns a stranger at another address of this machine.
func newStranger(t *testing.T) stranger {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has more addresses than 127.0.0.1 on its loopback interface")
	}
	return stranger{t, "127.0.0.66"}
}

// held counts connections that the server has not closed.
type held struct{ open atomic.Int64 }

// occupy opens connections, and holds them as long as the server lets them. If protocol is not empty, the
// stranger has the peer secret, and sends protocol, the first byte that names a protocol of the servers'
// port.
func (s stranger) occupy(n int, address, protocol string) *held {
	s.Helper()
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(s.from)}}
	h := new(held)
	for range n {
		conn := result.Of(from.DialContext(s.Context(), "tcp", address)).OK(s)
		s.Cleanup(func() { _ = conn.Close() })
		config := result.Of(agent.NewTestSecret().DialTLS(conn.RemoteAddr())).OK(s)
		h.open.Add(1)
		go func() {
			if protocol != "" {
				conn = tls.Client(conn, config)
				_, _ = io.WriteString(conn, protocol) // it may be refused already
			}
			_, _ = io.Copy(io.Discard, conn)
			h.open.Add(-1)
		}()
	}
	return h
}

// A stranger opens idle connections without a token to both ports of all servers, more than any bound.
// The operator at another address still gets answers from each server, and the cluster stays one: a
// server that comes back is let in, and writes are applied.
func TestAgent_strangerWithIdleConnections(t *testing.T) {
	t.Parallel()
	them := newStranger(t)
	const bound = 20
	w := newServers(t, 3, func(c *agent.Config) {
		c.Conns = connlimit.Limits{All: 2 * bound, PerAddress: bound}
		m := result.Of(telemetry.New(telemetry.Options{})).OK(t)
		t.Cleanup(m.Close)
		c.Metrics = m
	})
	for _, a := range w.agents {
		idle := them.occupy(3*bound, a.HTTPAddr(), "")
		eventually(t, "the bound of the HTTP port", func() bool { return idle.open.Load() <= bound })
		for protocol, bound := range map[string]int64{"": 32, "r": 32, "h": 64} { // nothing, and the protocols
			some := them.occupy(150, a.ServerAddr(), protocol)
			eventually(t, "the bound of the servers' port", func() bool { return some.open.Load() <= bound })
		}
	}
	for _, a := range w.agents {
		nodes := result.Read(api(t, a).Nodes(t.Context(), apiclient.NodesQuery{})).OK(t)
		must.SliceEmpty(t, nodes)
	}
	leader := w.leader()
	w.network.isolate(leader, true) // all of its connections are new afterwards
	w.leader(w.others(leader)...)
	w.network.isolate(leader, false)
	for i, a := range w.agents {
		register(t, api(t, a), testNode(i))
	}
	awaitSameState(t, w.agents...)
	for _, a := range w.agents {
		must.StrNotContains(t, scrape(t, a), "\nnodedrain_connections_closed_total{kind=\"http\"} 0\n")
	}
}

// scrape returns Prometheus' input.
func scrape(t *testing.T, a *agent.Agent) string {
	t.Helper()
	r := result.Of(http.NewRequestWithContext(t.Context(), "GET", "http://"+a.HTTPAddr()+"/v1/metrics?format=prometheus", nil)).OK(t)
	answer := result.Of(http.DefaultClient.Do(r)).OK(t)
	text := result.Of(io.ReadAll(answer.Body)).OK(t)
	must.NoError(t, answer.Body.Close())
	must.Eq(t, 200, answer.StatusCode)
	return string(text)
}

// With certificates, a stranger at the address of a peer holds no place of the peer: a connection
// that has shown no certificate makes room for one that does.
func TestAgent_strangerWithoutCertificate(t *testing.T) {
	t.Parallel()
	them := newStranger(t)
	them.from = "127.0.0.1"
	ca := newAuthority(t)
	certs := newFiles(t, ca.pem(), ca.server("global")).open()
	secure := func(c agent.Config) *agent.Agent {
		c.ServerTLS, c.Conns = certs.Peers(), connlimit.Limits{All: 8}
		return start(t, c)
	}
	first := secure(agent.Config{BootstrapExpect: 1})
	ready(t, first)
	idle := them.occupy(300, first.ServerAddr(), "")
	eventually(t, "the bound of the stranger", func() bool { return idle.open.Load() <= 32 })
	second := secure(agent.Config{Join: []string{first.ServerAddr()}})
	ready(t, second)
	register(t, api(t, second), testNode(1))
	awaitSameState(t, first, second)
}
