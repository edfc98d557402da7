package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/access"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/heartbeat"
)

// quickRaft returns settings with which servers elect a leader within four seconds. With shorter
// timeouts leaders lose leadership on a busy machine, and some requests fail.
func quickRaft() *raft.Config {
	c := raft.DefaultConfig()
	c.BatchApplyCh = true
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 2*time.Second, 2*time.Second, 2*time.Second
	c.CommitTimeout = 5 * time.Millisecond
	return c
}

func start(t *testing.T, c agent.Config) *agent.Agent {
	t.Helper()
	if c.HTTPAddr == "" {
		c.HTTPAddr = "127.0.0.1:0"
	}
	if c.ServerAddr == "" {
		c.ServerAddr = "127.0.0.1:0"
	}
	if c.ServerTLS == nil && c.PeerSecret == nil {
		c.PeerSecret = agent.NewTestSecret()
	}
	if c.Raft == nil {
		c.Raft = quickRaft()
	}
	if c.StopTimeout == 0 {
		c.StopTimeout = patience // a test fails long before
	}
	if c.LeaderWait == 0 {
		c.LeaderWait = patience
	}
	if c.Heartbeats == (heartbeat.Options{}) {
		c.Heartbeats.MinTTL = time.Hour // nodes stay ready without heartbeats
	}
	if testing.Verbose() && c.Logger == nil {
		c.Logger = hclog.New(&hclog.LoggerOptions{Name: c.Name, Level: hclog.Debug})
	}
	a := result.Of(agent.New(c)).OK(t)
	t.Cleanup(func() { _ = stop(a) })
	return a
}

// stop stops an agent. An agent that does not stop fails the test, and not the whole package by its timeout.
func stop(a *agent.Agent) error {
	stopped := make(chan error, 1)
	go func() { stopped <- a.Stop() }()
	select {
	case err := <-stopped:
		return err
	case <-time.After(patience):
		return errors.New(a.Name() + " does not stop")
	}
}

// patience bounds each wait of a test: the machine may be busy. A test that checks that a call does
// not wait compares the duration of the call with a third of patience.
const patience = 90 * time.Second

func ready(t *testing.T, agents ...*agent.Agent) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, a := range agents {
		must.NoError(t, a.Ready(ctx))
	}
}

// An agent with tokens and plain HTTP on a public address logs one warning.
func TestAgent_warnsAboutTokensWithoutTLS(t *testing.T) {
	t.Parallel()
	_, token, err := access.Generate("ops", access.Write)
	must.NoError(t, err)
	path := filepath.Join(t.TempDir(), "tokens")
	must.NoError(t, os.WriteFile(path, []byte(token.Line()+"\n"), 0o600))
	tokens := result.Of(access.Open(path, nil)).OK(t)
	for address, want := range map[string]int{"0.0.0.0:0": 1, "127.0.0.1:0": 0} {
		var mu sync.Mutex
		var logged strings.Builder // guarded by mu
		a := result.Of(agent.New(agent.Config{
			HTTPAddr: address, ServerAddr: "127.0.0.1:0", Access: tokens,
			Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: &logged, Mutex: &mu}),
		})).OK(t)
		must.NoError(t, stop(a))
		mu.Lock()
		must.Eq(t, want, strings.Count(logged.String(), "tokens are sent without TLS"))
		mu.Unlock()
	}
}
