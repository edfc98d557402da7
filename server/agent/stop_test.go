package agent_test

import (
	"context"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	apiclient "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// Stop ends all goroutines of the agent. The test is not parallel: it would find the goroutines of
// other tests.
func TestAgent_stopEndsAllGoroutines(t *testing.T) {
	w := newServers(t, 3, func(c *agent.Config) { c.DataDir = t.TempDir() })
	alone := result.Of(agent.New(agent.Config{HTTPAddr: "127.0.0.1:0"}.InMemory())).OK(t)
	ready(t, alone)
	follower := api(t, w.others(w.leader())[0])
	for i := range 3 {
		register(t, follower, testNode(i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _, _ = follower.Nodes(ctx, apiclient.NodesQuery{Query: apiclient.Query{Index: 1 << 40}})
	}()
	must.NoError(t, alone.Stop()) // without a goroutine of the test
	for _, a := range w.agents {
		must.NoError(t, a.Stop())
	}
	cancel()
	<-done
	follower.Close()
	http.DefaultClient.CloseIdleConnections()
	must.Eq(t, "", running(isOurs))
	eventually(t, "the goroutines that raft and net/http do not wait for have ended", func() bool { return running(isForeign) == "" })
}

// Stop waits for a write in progress, and the caller gets its result.
func TestAgent_stopWaitsForWrites(t *testing.T) {
	t.Parallel()
	reached, release := make(chan struct{}), make(chan struct{})
	a := start(t, agent.Config{BootstrapExpect: 1, OnApply: func(e shims.Applied) {
		if _, registers := e.Message.(*shims.NodeRegister); registers {
			close(reached)
			<-release
		}
	}})
	ready(t, a)
	c := api(t, a)
	answered, stopped := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := c.Register(t.Context(), testNode(1))
		answered <- err
	}()
	<-reached
	go func() { stopped <- a.Stop() }()
	eventually(t, "the agent accepts no more connections", func() bool {
		conn, err := net.Dial("tcp", a.HTTPAddr())
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	close(release)
	must.NoError(t, <-answered)
	must.NoError(t, <-stopped)
}

// Stop does not wait for peers that do not answer.
func TestAgent_stopDoesNotWaitForSilentPeers(t *testing.T) {
	t.Parallel()
	w := newServers(t, 3, nil)
	leader := w.leader()
	w.network.silence(leader)
	w.leader(w.others(leader)...) // meanwhile it tries to connect to them
	began := time.Now()
	must.NoError(t, stop(leader))
	must.Less(t, 5*time.Second, time.Since(began))
}

// An event stream does not hold up the stop of its server: it would never end by itself.
func TestAgent_stopEndsEventStreams(t *testing.T) {
	t.Parallel()
	a := result.Of(agent.New(agent.Config{HTTPAddr: "127.0.0.1:0"}.InMemory())).OK(t)
	ready(t, a)
	r := result.Of(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.HTTPAddr()+httpapi.EventStreamPath, nil)).OK(t)
	stream := result.Of(http.DefaultTransport.RoundTrip(r)).OK(t)
	must.Eq(t, 200, stream.StatusCode)
	must.NoError(t, stop(a))
	must.NoError(t, stream.Body.Close())
}

// isForeign reports whether a goroutine of raft or of net/http's client runs code of this project.
// Raft and net/http do not wait for these. isOurs reports whether another goroutine, except the
// test's own, runs code of this project.
func isForeign(stack string) bool {
	return strings.Contains(stack, "created by github.com/hashicorp/raft") ||
		// A server of net/http does not wait for the observer of a connection that it closes.
		strings.Contains(stack, "connlimit.Observe") && strings.Contains(stack, "created by net/http.(*Server)") ||
		strings.Contains(stack, "seed-f9cf0b39/nodedrain") && strings.Contains(stack, "created by net/http.(*Transport)")
}

func isOurs(stack string) bool {
	return strings.Contains(stack, "seed-f9cf0b39/nodedrain") && !strings.Contains(stack, "testing.tRunner") && !isForeign(stack)
}

// running returns the stacks of the goroutines that match.
func running(matches func(stack string) bool) string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var found []string
	for _, stack := range strings.Split(string(stacks), "\n\n") {
		if matches(stack) {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}
