package agent_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	reference "github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	apiclient "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/connlimit"
)

// reached is the client of a node with a session.
type reached struct {
	*testing.T
	node *cluster.Node
	end  *session.NodeEnd
	// served is closed when the session has ended, with its requests.
	served chan struct{}
	// requests counts the requests of the servers; hanging those that wait for their end.
	requests, hanging atomic.Int64
	// stuck makes the controllers of the node hang, and fails makes them fail.
	stuck, fails atomic.Bool
}

// reach registers a node, which holds a session with the server.
func reach(t *testing.T, a *agent.Agent, n *cluster.Node) *reached {
	t.Helper()
	register(t, api(t, a), n)
	return hold(t, a, n)
}

// hold opens a session of a node that is registered.
func hold(t *testing.T, a *agent.Agent, n *cluster.Node) *reached {
	t.Helper()
	r := holdBy(t, apiclient.Config{Address: a.HTTPAddr(), Token: n.SecretID}, n)
	eventually(t, "the server reaches the node", func() bool { return answerOf(t, a, n) == n.Name })
	return r
}

func holdBy(t *testing.T, config apiclient.Config, n *cluster.Node) *reached {
	t.Helper()
	r := &reached{T: t, node: n, served: make(chan struct{})}
	c := result.Of(apiclient.New(config)).OK(t)
	eventually(t, "the server accepts a session of the node", func() bool {
		end, err := c.NodeSide(n.ID).OpenSession(t.Context())
		r.end = end
		return err == nil
	})
	go func() {
		defer close(r.served)
		r.end.Serve(t.Context(), http.HandlerFunc(r.answer))
	}()
	t.Cleanup(func() {
		_ = r.end.Close()
		<-r.served
	})
	return r
}

// answer answers statistics with the name of the node, never ends logs, and repeats the input of commands.
func (r *reached) answer(w http.ResponseWriter, hr *http.Request) {
	r.requests.Add(1)
	for name := range hr.Header {
		if strings.HasPrefix(name, "X-") || name == "Authorization" {
			r.Errorf("the node got the header %s", name)
		}
	}
	switch {
	case strings.HasPrefix(hr.URL.Path, "/v1/internal/storage/") && r.stuck.Load():
		r.hanging.Add(1)
		defer r.hanging.Add(-1)
		<-hr.Context().Done()
	case strings.HasPrefix(hr.URL.Path, "/v1/internal/storage/") && r.fails.Load():
		http.Error(w, "ControllerPublishVolume: Internal: the pool is busy", http.StatusInternalServerError)
	case strings.HasPrefix(hr.URL.Path, "/v1/internal/storage/"):
		var body struct{ ExternalID, NodeID string }
		if err := json.NewDecoder(hr.Body).Decode(&body); err != nil {
			r.Error(err)
		}
		_, _ = fmt.Fprintf(w, `{"PublishContext": {"received": %q}}`, hr.Method+" "+hr.URL.Path+" "+body.ExternalID+" "+body.NodeID)
	case strings.Contains(hr.URL.Path, "/fs/logs/"):
		r.hanging.Add(1)
		defer r.hanging.Add(-1)
		_, _ = io.WriteString(w, "{}")
		_ = http.NewResponseController(w).Flush()
		<-hr.Context().Done()
	case strings.HasSuffix(hr.URL.Path, "/exec"):
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		r.hanging.Add(1)
		defer r.hanging.Add(-1)
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: nodedrain-exec\r\n\r\n")
		for lines := bufio.NewScanner(buffered); lines.Scan(); {
			out := strings.Replace(lines.Text(), `"stdin"`, `"stdout"`, 1)
			if strings.Contains(out, `"close":true`) {
				out = `{"exited":true,"result":{"exit_code":7}}`
			}
			_, _ = io.WriteString(conn, out+"\n")
		}
	default:
		_, _ = fmt.Fprintf(w, `{"DiskStats": [{"Device": %q}], "Memory": {}}`, r.node.Name)
	}
}

// answerOf returns the answer of a node to a request through a server, or the error.
func answerOf(t *testing.T, a *agent.Agent, n *cluster.Node) string {
	t.Helper()
	c := result.Of(reference.NewClient(&reference.Config{Address: "http://" + a.HTTPAddr(), SecretID: "anything"})).OK(t)
	stats, err := c.Nodes().Stats(string(n.ID), nil)
	if err != nil {
		return err.Error()
	}
	return stats.DiskStats[0].Device
}

// place registers a job with one allocation, and returns the allocation.
func place(t *testing.T, a *agent.Agent) *reference.Allocation {
	t.Helper()
	_, _, err := api(t, a).RegisterJob(t.Context(), json.RawMessage(`{"Job": {"ID": "j", "Type": "service", "Datacenters": ["*"],
		"TaskGroups": [{"Name": "g", "Count": 1, "Tasks": [{"Name": "t", "Driver": "raw_exec"}]}]}}`))
	must.NoError(t, err)
	c := result.Of(reference.NewClient(&reference.Config{Address: "http://" + a.HTTPAddr()})).OK(t)
	var alloc *reference.Allocation
	eventually(t, "an allocation", func() bool {
		list, _, err := c.Jobs().Allocations("j", true, nil)
		if err != nil || len(list) == 0 {
			return false
		}
		alloc = &reference.Allocation{ID: list[0].ID, NodeID: list[0].NodeID}
		return true
	})
	return alloc
}

// Every server reaches a node, whichever of them has its session. Answers and commands pass in both
// directions, and end when the caller leaves.
func TestSessions_everyServer(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	w := newServers(t, 3, func(c *agent.Config) {
		c.ServerTLS = newFiles(t, ca.pem(), ca.server("global")).open().Peers()
	})
	n := testNode(1)
	node := reach(t, w.others(w.leader())[0], n)
	alloc := place(t, w.agents[0])
	awaitSameState(t, w.agents...)
	for _, a := range w.agents {
		must.Eq(t, "n1", answerOf(t, a, n))
		c := result.Of(reference.NewClient(&reference.Config{Address: "http://" + a.HTTPAddr(), SecretID: "anything"})).OK(t)
		var out strings.Builder
		code := result.Of(c.Allocations().Exec(t.Context(), alloc, "t", false, []string{"cat"}, strings.NewReader("hello"), &out, io.Discard, nil, nil)).OK(t)
		must.Eq(t, 7, code)
		must.Eq(t, "hello", out.String())

		ctx, leave := context.WithCancel(t.Context())
		r := result.Of(http.NewRequestWithContext(ctx, http.MethodGet, "http://"+a.HTTPAddr()+"/v1/client/fs/logs/"+alloc.ID+"?follow=true", nil)).OK(t)
		response := result.Of(http.DefaultClient.Do(r)).OK(t)
		result.Of(io.ReadFull(response.Body, make([]byte, 2))).OK(t)
		leave()
		_ = response.Body.Close()
		stdin, _ := io.Pipe()
		ctx, leave = context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			_, _ = c.Allocations().Exec(ctx, alloc, "t", false, []string{"cat"}, stdin, io.Discard, io.Discard, nil, nil)
		}()
		eventually(t, "the command runs", func() bool { return node.hanging.Load() == 1 })
		leave()
		<-left
		_ = stdin.Close()
		eventually(t, "the node's requests have ended", func() bool { return node.hanging.Load() == 0 })
	}

	must.StrContains(t, answerOf(t, w.agents[0], testNode(9)), "node not found")
	register(t, api(t, w.agents[0]), testNode(2))
	awaitSameState(t, w.agents...)
	for _, a := range w.agents {
		must.StrContains(t, answerOf(t, a, testNode(2)), "its client has no session with a server")
	}
}

// A session outlives a change of the leader. When its server stops, its requests end, and the next server
// reaches the node.
func TestSessions_leaderChangeAndStop(t *testing.T) {
	t.Parallel()
	w := newServers(t, 3, nil)
	leader := w.leader()
	holder := w.others(leader)[0]
	n := testNode(1)
	node := reach(t, holder, n)
	must.NoError(t, stop(leader))
	w.leader(w.others(leader)...)
	for _, a := range w.others(leader) {
		must.Eq(t, "n1", answerOf(t, a, n))
	}
	select {
	case <-node.served:
		t.Fatal("the session has ended")
	default:
	}
	must.NoError(t, stop(holder))
	<-node.served
	var last *agent.Agent
	for _, a := range w.agents {
		if a != leader && a != holder {
			last = a
		}
	}
	hold(t, last, n)
	must.Eq(t, "n1", answerOf(t, last, n))
}

// A server that stops waits neither for its sessions nor for the requests over them. After its restart
// the node opens its next session.
func TestSessions_serverRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := start(t, agent.Config{BootstrapExpect: 1, DataDir: dir, Name: "s1"})
	ready(t, a)
	n := testNode(1)
	node := reach(t, a, n)
	alloc := place(t, a)
	r := result.Of(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.HTTPAddr()+"/v1/client/fs/logs/"+alloc.ID, nil)).OK(t)
	response := result.Of(http.DefaultClient.Do(r)).OK(t)
	c := result.Of(reference.NewClient(&reference.Config{Address: "http://" + a.HTTPAddr()})).OK(t)
	stdin, _ := io.Pipe()
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = c.Allocations().Exec(t.Context(), alloc, "t", false, []string{"cat"}, stdin, io.Discard, io.Discard, nil, nil)
	}()
	eventually(t, "both requests run", func() bool { return node.hanging.Load() == 2 })
	began := time.Now()
	must.NoError(t, stop(a))
	must.Less(t, patience/3, time.Since(began))
	_, err := io.ReadAll(response.Body)
	must.Error(t, err)
	must.NoError(t, response.Body.Close())
	<-left
	_ = stdin.Close()
	<-node.served
	must.Eq(t, 0, node.hanging.Load())

	a = start(t, agent.Config{BootstrapExpect: 1, DataDir: dir, Name: "s1"})
	ready(t, a)
	hold(t, a, n)
	must.Eq(t, "n1", answerOf(t, a, n))
}

// A request that reaches no node has ended for the server: it stops. The node has never had a session, or its
// session has ended. Bug: the server waited for such requests for ever.
func TestSessions_unreachedNodes(t *testing.T) {
	t.Parallel()
	w := newServers(t, 2, nil)
	gone, never := testNode(1), testNode(2)
	node := reach(t, w.agents[0], gone)
	register(t, api(t, w.agents[0]), never)
	must.NoError(t, node.end.Close())
	<-node.served
	awaitSameState(t, w.agents...)
	for _, a := range w.agents {
		for _, n := range []*cluster.Node{gone, never} {
			eventually(t, "a refusal", func() bool { return strings.Contains(answerOf(t, a, n), "its client has no session with a server") })
		}
	}
	for _, a := range w.agents {
		must.NoError(t, stop(a))
	}
}

// The next session of a node takes the place of the one before.
func TestSessions_replaced(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Config{BootstrapExpect: 1})
	ready(t, a)
	n := testNode(1)
	first := reach(t, a, n)
	before := first.requests.Load()
	second := hold(t, a, n)
	<-first.served
	must.Eq(t, before, first.requests.Load())
	must.Positive(t, second.requests.Load())
}

// The end of a session removes no newer session of its node, also if it comes late. Bug: the node could not be
// reached any more, although it had a session.
func TestSessions_lateEnd(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Config{BootstrapExpect: 1})
	ready(t, a)
	n := testNode(1)
	first := reach(t, a, n)
	must.NoError(t, agent.EndLate(a, n.ID, func() { hold(t, a, n) }))
	<-first.served
	must.Eq(t, n.Name, answerOf(t, a, n))
}

// Sessions have a bound of their own. A server at its bound still answers requests, and takes a new
// session of a node that has one.
func TestSessions_bound(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Config{BootstrapExpect: 1, Conns: connlimit.Limits{All: 16}})
	ready(t, a)
	const bound = 64
	var nodes []*reached
	for i := range bound {
		nodes = append(nodes, reach(t, a, testNode(i)))
	}
	n := testNode(bound)
	register(t, api(t, a), n)
	c := result.Of(apiclient.New(apiclient.Config{Address: a.HTTPAddr(), Token: n.SecretID})).OK(t)
	_, err := c.NodeSide(n.ID).OpenSession(t.Context())
	must.ErrorContains(t, err, "EOF")
	hold(t, a, nodes[0].node)
	must.NoError(t, nodes[1].end.Close())
	hold(t, a, n)
	must.Eq(t, n.Name, answerOf(t, a, n))
}

// A session runs over TLS with certificates, also with a server that prefers HTTP/2.
func TestSessions_tls(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	certs := newFiles(t, ca.pem(), ca.server("global"))
	a := start(t, agent.Config{BootstrapExpect: 1, HTTPTLS: certs.open().Public()})
	ready(t, a)
	n := testNode(1)
	config := apiclient.Config{
		Address: "https://" + a.HTTPAddr(), Token: n.SecretID,
		TLS: apiclient.TLS{CACert: certs.CA, ClientCert: certs.Certificate, ClientKey: certs.Key, ServerName: "localhost"},
	}
	c := result.Of(apiclient.New(config)).OK(t)
	register(t, c, n)
	holdBy(t, config, n)
	secured := result.Of(reference.NewClient(&reference.Config{Address: config.Address, TLSConfig: &reference.TLSConfig{
		CACert: certs.CA, ClientCert: certs.Certificate, ClientKey: certs.Key, TLSServerName: "localhost",
	}})).OK(t)
	eventually(t, "the server reaches the node", func() bool {
		stats, err := secured.Nodes().Stats(string(n.ID), nil)
		return err == nil && stats.DiskStats[0].Device == "n1"
	})

	config.TLS.CACert = newFiles(t, newAuthority(t).pem(), ca.server("global")).CA
	stranger := result.Of(apiclient.New(config)).OK(t)
	_, err := stranger.NodeSide(n.ID).OpenSession(t.Context())
	must.ErrorContains(t, err, "certificate", must.Sprint("a node obeys only servers of its authority"))
}

// A stolen node answers with a status that no server can hand on. The server that holds its session does
// not panic.
func TestSessions_impossibleStatus(t *testing.T) {
	t.Parallel()
	w := newServers(t, 3, nil)
	leader := w.leader()
	n := testNode(1)
	reach(t, leader, n)
	c := result.Of(apiclient.New(apiclient.Config{Address: leader.HTTPAddr(), Token: n.SecretID})).OK(t)
	end := result.Of(c.NodeSide(n.ID).OpenSession(t.Context())).OK(t)
	served := make(chan struct{})
	go func() {
		defer close(served)
		end.Serve(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 099 x\r\nContent-Length: 0\r\n\r\n")
				_ = conn.Close()
			}
		}))
	}()
	defer func() {
		_ = end.Close()
		<-served
	}()
	awaitSameState(t, w.agents...)
	other := w.others(leader)[0]
	eventually(t, "the server refuses the answer", func() bool {
		return strings.Contains(answerOf(t, other, n), "sends no valid answer")
	})
}
