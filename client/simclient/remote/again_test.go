package remote_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient/remote"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/server/access"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/heartbeat"
)

// replaced is a cluster of one server behind an address that stays the same when the server is
// replaced.
type replaced struct {
	t             *testing.T
	access        *access.Tokens // or nil
	write, node   string         // secrets, or empty
	address       string
	now           atomic.Pointer[url.URL]
	running       *agent.Agent
	api           *client.Client
	registrations atomic.Int64
}

func newReplaced(t *testing.T, tokens bool) *replaced {
	r := &replaced{t: t}
	if tokens {
		writes, write, err := access.Generate("ops", access.Write)
		must.NoError(t, err)
		registers, node, err := access.Generate("machines", access.Node)
		must.NoError(t, err)
		path := filepath.Join(t.TempDir(), "tokens")
		must.NoError(t, os.WriteFile(path, []byte(write.Line()+"\n"+node.Line()+"\n"), 0o600))
		r.access, err = access.Open(path, hclog.NewNullLogger())
		must.NoError(t, err)
		r.write, r.node = writes.Reveal(), registers.Reveal()
	}
	r.replace()
	t.Cleanup(func() { _ = r.running.Stop() })
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(r.now.Load())
			if strings.HasSuffix(p.In.URL.Path, "/register") {
				r.registrations.Add(1)
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	r.address = front.URL
	var err error
	r.api, err = client.New(client.Config{Address: r.address, Token: r.write})
	must.NoError(t, err)
	return r
}

// replace starts a server without data in place of the running one.
func (r *replaced) replace() {
	if r.running != nil {
		must.NoError(r.t, r.running.Stop())
	}
	c := agent.Config{
		Name: "s1", HTTPAddr: "127.0.0.1:0", ServerAddr: "127.0.0.1:0", BootstrapExpect: 1,
		Heartbeats: heartbeat.Options{MinTTL: 300 * time.Millisecond, Grace: time.Hour, MaxRate: 1000},
	}
	if r.access != nil {
		c.Access = r.access
	}
	a, err := agent.New(c)
	must.NoError(r.t, err)
	must.NoError(r.t, a.Ready(r.t.Context()))
	u, err := url.Parse("http://" + a.HTTPAddr())
	must.NoError(r.t, err)
	r.running = a
	r.now.Store(u)
}

// A running client registers its nodes again after a purge, after the restore of a state without them,
// and with new servers without data, with tokens and without.
func TestRun_registersAgain(t *testing.T) {
	t.Parallel()
	for name, tokens := range map[string]bool{"tokens": true, "no tokens": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReplaced(t, tokens)
			var saved bytes.Buffer
			must.NoError(t, client.SaveSnapshot(t.Context(), r.api, false, &saved))
			defer play(t, remote.Config{Addresses: []string{r.address}, Nodes: nodes(2), Token: r.node})()
			registered := func(step string) {
				t.Helper()
				eventually(t, step, func() bool {
					list, _, err := r.api.Nodes(t.Context(), client.NodesQuery{})
					return err == nil && len(list) == 2
				})
			}
			registered("the nodes")
			for _, n := range nodes(2) {
				_, err := r.running.Backend().Writer.PurgeNode(t.Context(), n.ID)
				must.NoError(t, err)
			}
			registered("the purged nodes")
			_, err := client.RestoreSnapshot(t.Context(), r.api, &saved)
			must.NoError(t, err)
			registered("the nodes after the restore")
			r.replace()
			registered("the nodes on new servers")
		})
	}
}

// The restored state has another secret of a node. The servers refuse the node, until an operator
// purges the other registration.
func TestRun_anotherSecret(t *testing.T) {
	t.Parallel()
	r := newReplaced(t, true)
	other := *nodes(1)[0]
	other.SecretID = "another secret"
	_, err := r.running.Backend().Writer.RegisterNode(t.Context(), &other)
	must.NoError(t, err)
	var log output
	logger := hclog.New(&hclog.LoggerOptions{Output: &log})
	defer play(t, remote.Config{Addresses: []string{r.address}, Nodes: nodes(1), Token: r.node, Logger: logger})()
	eventually(t, "refused registrations", func() bool { return r.registrations.Load() > 3 })
	must.Eq(t, "another secret", r.running.Server().Store().Snapshot().Node(other.ID).SecretID)
	must.EqOp(t, 1, strings.Count(log.String(), "request=registration"), must.Sprint(log.String()))
	must.StrContains(t, log.String(), "registered with another secret")
	_, err = r.running.Backend().Writer.PurgeNode(t.Context(), other.ID)
	must.NoError(t, err)
	eventually(t, "the node", func() bool {
		n := r.running.Server().Store().Snapshot().Node(other.ID)
		return n != nil && n.SecretID == nodes(1)[0].SecretID
	})
}

// output is a log that a test reads. It is safe for concurrent use.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// A request that fails for many nodes is logged at most once a minute, and once when it fails for none
// of them.
func TestFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log output
		f := remote.NewFailures(hclog.New(&hclog.LoggerOptions{Output: &log}))
		ids := []cluster.NodeID{"a", "b", "c"}
		for range 10 * 60 {
			for _, id := range ids {
				remote.Failed(f, "heartbeat", id, errors.New("connection refused"))
			}
			time.Sleep(time.Second)
		}
		must.EqOp(t, 10, strings.Count(log.String(), "\n"), must.Sprint(log.String()))
		must.StrContains(t, log.String(), "failing_for=9m0s nodes=3")
		for i, id := range ids {
			must.EqOp(t, 10, strings.Count(log.String(), "\n"), must.Sprint(i))
			remote.Succeeded(f, "heartbeat", id)
			remote.Succeeded(f, "heartbeat", id)
		}
		must.EqOp(t, 11, strings.Count(log.String(), "\n"))
		must.StrContains(t, log.String(), "succeeds again: request=heartbeat failed_for=10m0s")
	})
}
