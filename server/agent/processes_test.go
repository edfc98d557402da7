package agent_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	apiclient "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/server/telemetry"
)

// as returns the configuration of a client process of a node.
func as(a *agent.Agent, n *cluster.Node, process string) apiclient.Config {
	return apiclient.Config{Address: a.HTTPAddr(), Token: n.SecretID, Process: process}
}

// refused sends each request of a client process, and checks that each is refused.
func refused(t *testing.T, a *agent.Agent, n *cluster.Node, process string) {
	t.Helper()
	c := result.Of(apiclient.New(as(a, n, process))).OK(t)
	const sentence = "another client process is connected as this node"
	if process != "" {
		_, err := c.Register(t.Context(), n)
		must.ErrorContains(t, err, sentence)
		must.True(t, apiclient.Refused(err), must.Sprint("the client does not use the next server"))
		_, err = c.NodeSide(n.ID).Heartbeat(t.Context())
		must.ErrorContains(t, err, sentence)
	}
	_, err := c.NodeSide(n.ID).OpenSession(t.Context())
	must.ErrorContains(t, err, sentence)
	refusal, is := errors.AsType[*session.Refused](err)
	must.True(t, is)
	must.Eq(t, http.StatusConflict, refusal.Status)
	must.False(t, refusal.Unsupported())
}

// refusals returns the processes of the events of a node.
func refusals(a *agent.Agent, n *cluster.Node) (processes []string) {
	for _, e := range a.Server().Store().Snapshot().Node(n.ID).Events {
		if e.Message == cluster.EventProcessRefused {
			processes = append(processes, e.Details[cluster.EventDetailProcess])
		}
	}
	return processes
}

// A second process with the secret of a node is refused on every server while the session of the first
// answers, after a change of the leader, too. Each process has one event. Bug: two clients whose data
// directories were copies took one session from each other, and the session of a thief of the secret got
// the commands of operators.
func TestProcesses_oneForEachNode(t *testing.T) {
	t.Parallel()
	w := newServers(t, 3, agent.SearchLonger)
	leader := w.leader()
	n := testNode(1)
	first := w.others(leader)[0]
	register(t, result.Of(apiclient.New(as(leader, n, "p1"))).OK(t), n)
	awaitSameState(t, w.agents...)
	node := holdBy(t, as(first, n, "p1"), n)
	eventually(t, "the cluster writes events", func() bool {
		return leader.Server().Store().Snapshot().ClusterVersion() == cluster.MaxVersion
	})
	for range 2 {
		for _, a := range w.agents {
			refused(t, a, n, "p2")
		}
	}
	refused(t, leader, n, "")
	for _, process := range []string{"p3", "p4", "p5", "p6"} {
		refused(t, first, n, process)
	}
	must.Eq(t, []string{"p2", "", "p3", "p4"}, refusals(leader, n), must.Sprint("a thief does not fill the log"))
	for _, c := range []struct {
		name    string
		at      *agent.Agent
		process string
		refused bool
	}{
		{"the session of the first process is here", first, "p2", true},
		{"an older client", first, "", true},
		{"the process of the session", first, "p1", false},
		{"no session is here", w.others(leader)[1], "p2", false},
	} {
		err := agent.AdmitSessionAlone(t.Context(), c.at, n.ID, c.process) // Bug: an error of the leader admitted all
		must.Eq(t, c.refused, err != nil, must.Sprint(c.name, ": ", err))
	}
	must.Eq(t, "n1", answerOf(t, leader, n))

	must.NoError(t, stop(leader))
	next := w.leader(w.others(leader)...)
	refused(t, first, n, "p2")
	result.Of(result.Of(apiclient.New(as(next, n, "p1"))).OK(t).NodeSide(n.ID).Heartbeat(t.Context())).OK(t)
	must.Eq(t, "n1", answerOf(t, next, n))

	must.NoError(t, node.end.Close())
	<-node.served
	second := result.Of(apiclient.New(as(next, n, "p2"))).OK(t)
	eventually(t, "the next process takes over", func() bool {
		_, err := second.Register(t.Context(), n)
		return err == nil
	})
	holdBy(t, as(next, n, "p2"), n)
	refused(t, first, n, "p1")
}

// Two processes begin at the same time, as two machines of one image do. One of them becomes the client,
// although its session opens later.
func TestProcesses_begin(t *testing.T) {
	t.Parallel()
	metrics := result.Of(telemetry.New(telemetry.Options{})).OK(t)
	defer metrics.Close()
	config := agent.Config{BootstrapExpect: 1, Metrics: metrics}
	agent.SearchLonger(&config)
	a := start(t, config)
	ready(t, a)
	n := testNode(1)
	register(t, api(t, a), n)
	first := result.Of(apiclient.New(as(a, n, "p1"))).OK(t)
	register(t, first, n)
	failed := make(chan error)
	go func() {
		second, err := apiclient.New(as(a, n, "p2"))
		if err == nil {
			_, err = second.Register(t.Context(), n)
		}
		failed <- err
	}()
	holdBy(t, as(a, n, "p1"), n)
	must.ErrorContains(t, <-failed, "another client process")
	must.StrContains(t, scrape(t, a), "\nnodedrain_client_processes_refused_total 1\n")
}

// A client of an older release sends no id. It registers as before, and its next session takes the place
// of the one before. A client of this release does not take the place of one that runs.
func TestProcesses_olderClient(t *testing.T) {
	t.Parallel()
	config := agent.Config{BootstrapExpect: 1}
	agent.SearchLonger(&config)
	a := start(t, config)
	ready(t, a)
	n := testNode(1)
	reach(t, a, n)
	node := hold(t, a, n)
	refused(t, a, n, "p1")
	register(t, api(t, a), n)
	must.NoError(t, node.end.Close())
	<-node.served
	c := result.Of(apiclient.New(as(a, n, "p1"))).OK(t)
	eventually(t, "the new client takes over", func() bool {
		_, err := c.Register(t.Context(), n)
		return err == nil
	})
	must.False(t, slices.Contains(refusals(a, n), ""))
}

// A client dies, and the next one is the client of the node when a report and a release of the first arrive. They
// are refused without an event. Bug: the release freed the claim of an allocation that the next client had
// started again, because it had lost its records.
func TestProcesses_lateRequests(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Config{BootstrapExpect: 1})
	ready(t, a)
	n := testNode(1)
	first, next := result.Of(apiclient.New(as(a, n, "p1"))).OK(t), result.Of(apiclient.New(as(a, n, "p2"))).OK(t)
	requests := func(c *apiclient.Client) (errs [2]error) {
		_, errs[0] = c.NodeSide(n.ID).ReportAllocs(t.Context(), nil)
		_, errs[1] = c.NodeSide(n.ID).Release(t.Context(), nil)
		return errs
	}
	register(t, first, n)
	must.Eq(t, [2]error{}, requests(first))
	must.Eq(t, [2]error{}, requests(result.Of(apiclient.New(as(a, n, ""))).OK(t)), must.Sprint("a client of an older release"))
	eventually(t, "the next client takes over", func() bool {
		_, err := next.Register(t.Context(), n)
		return err == nil
	})
	for _, err := range requests(first) {
		must.ErrorContains(t, err, "another client process is connected as this node")
	}
	must.Eq(t, [2]error{}, requests(next))
	must.SliceEmpty(t, refusals(a, n))
}
