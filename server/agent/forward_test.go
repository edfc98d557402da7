package agent_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	apiclient "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// A blocking query that a follower has forwarded continues on the next leader when the first leader is
// lost.
func TestForward_queriesContinueOnTheNextLeader(t *testing.T) {
	t.Parallel()
	w := newServers(t, 3, nil)
	leader := w.leader()
	rest := w.others(leader)
	follower := api(t, rest[0])
	id := string(testNode(1).ID)
	register(t, follower, testNode(1))
	_, a, err := follower.Node(t.Context(), id, apiclient.Query{})
	must.NoError(t, err)
	woken := make(chan error, 1)
	go func() {
		n, _, err := follower.Node(t.Context(), id, apiclient.Query{Index: a.Index})
		if err == nil && n.SchedulingEligibility != string(cluster.NodeIneligible) {
			err = errors.New("the query returned without the change")
		}
		woken <- err
	}()
	w.network.isolate(leader, true)
	w.leader(rest...)
	eventually(t, "a leader accepts a write", func() bool {
		_, _, err := api(t, rest[1]).UpdateEligibility(t.Context(), id, wire.EligibilityRequest{Eligibility: string(cluster.NodeIneligible)})
		return err == nil
	})
	must.NoError(t, <-woken)
}

// When a leader is lost, the answer to a write that has reached it states that the write may have been made.
// A write that has not reached it goes to the next leader.
func TestForward_theLeaderIsLostDuringAWrite(t *testing.T) {
	t.Parallel()
	var slow atomic.Value // the name of the server that does not finish a write
	slow.Store("")
	reached, release := make(chan struct{}, 3), make(chan struct{})
	w := newServers(t, 3, func(c *agent.Config) {
		name := c.Name
		c.OnApply = func(a shims.Applied) {
			if _, registers := a.Message.(*shims.NodeRegister); registers && slow.Load() == name {
				reached <- struct{}{}
				<-release
			}
		}
	})
	t.Cleanup(func() { close(release) })
	leader := w.leader()
	slow.Store(leader.Name())
	follower := api(t, w.others(leader)[0])
	failed := make(chan error, 1)
	go func() {
		_, err := follower.Register(t.Context(), testNode(1))
		failed <- err
	}()
	<-reached
	w.network.isolate(leader, true)
	err := <-failed
	must.ErrorContains(t, err, "500")
	must.ErrorContains(t, err, "the write may have been made")

	_, err = follower.Register(t.Context(), testNode(2)) // no leader yet, or the next one
	must.NoError(t, err)
	second := w.leader(w.others(leader)...)
	must.NotNil(t, second.Server().Store().Snapshot().Node(testNode(1).ID)) // the write was made
}

// A leader that stops answering with open connections blocks no request when another server leads. A
// write that it received may have been made. The next leader answers a read.
func TestForward_theLeaderStopsAnswering(t *testing.T) {
	t.Parallel()
	w := newServers(t, 3, nil)
	leader := w.leader()
	rest := w.others(leader)
	follower := api(t, rest[0])
	id := testNode(1).ID
	_, err := follower.Register(t.Context(), testNode(1)) // opens a connection that stays open
	must.NoError(t, err)
	w.network.silence(leader)
	read := make(chan error, 1)
	go func() {
		_, _, err := follower.Node(t.Context(), string(id), apiclient.Query{})
		read <- err
	}()
	began := time.Now()
	_, err = follower.NodeSide(id).Heartbeat(t.Context())
	if err != nil { // it reached the silent leader
		must.ErrorContains(t, err, "the write may have been made")
	}
	must.NoError(t, <-read)
	must.Less(t, patience, time.Since(began))
	result.Of(follower.NodeSide(id).Heartbeat(t.Context())).OK(t)
}

// A client that leaves a forwarded query is no fault of the leader: the log has no warning.
func TestForward_aClientLeaves(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var logged strings.Builder // guarded by mu
	w := newServers(t, 2, func(c *agent.Config) {
		c.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: &logged, Mutex: &mu})
	})
	follower := api(t, w.others(w.leader())[0])
	register(t, follower, testNode(1))
	id := string(testNode(1).ID)
	_, a, err := follower.Node(t.Context(), id, apiclient.Query{})
	must.NoError(t, err)
	ctx, leave := context.WithTimeout(t.Context(), time.Second)
	defer leave()
	_, _, err = follower.Node(ctx, id, apiclient.Query{Index: a.Index})
	must.ErrorIs(t, err, context.DeadlineExceeded)
	var line string
	eventually(t, "a line about the query", func() bool {
		mu.Lock()
		defer mu.Unlock()
		for one := range strings.Lines(logged.String()) {
			if strings.Contains(one, "the leader did not answer a request") {
				line = one
			}
		}
		return line != ""
	})
	must.StrContains(t, line, "[DEBUG]")
}
