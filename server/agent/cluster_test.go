package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/shoenig/test/must"
	"github.com/shoenig/test/wait"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	apiclient "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// network makes the connections between servers. Tests interrupt it.
type network struct {
	mu    sync.Mutex
	names map[string]string // of servers, by address; guarded by mu
	cut   map[string]bool   // isolated servers, by name; guarded by mu
	links map[*link]struct{}
	// silent is the name of the server whose connections stay open and transfer nothing, as after a
	// power failure, or is empty; guarded by mu.
	silent string
}

// link is a connection between two servers.
type link struct {
	net.Conn
	network  *network
	from, to string
}

// silent reports whether the link transfers nothing.
func (l *link) silent() bool { return l.network.isSilent(l.from, l.to) }

func (l *link) Read(b []byte) (int, error) {
	for {
		n, err := l.Conn.Read(b)
		if err != nil || !l.silent() {
			return n, err
		}
	}
}

func (l *link) Write(b []byte) (int, error) {
	if l.silent() {
		return len(b), nil
	}
	return l.Conn.Write(b)
}

func (l *link) Close() error {
	l.network.mu.Lock()
	delete(l.network.links, l)
	l.network.mu.Unlock()
	return l.Conn.Close()
}

func newNetwork() *network {
	return &network{names: make(map[string]string), cut: make(map[string]bool), links: make(map[*link]struct{})}
}

// dialer returns the Dial function of the server of that name.
func (n *network) dialer(from string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		n.mu.Lock()
		to := n.names[address]
		severed := n.cut[from] || n.cut[to]
		n.mu.Unlock()
		if n.isSilent(from, to) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if severed {
			return nil, errors.New("the network is cut")
		}
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		l := &link{Conn: conn, network: n, from: from, to: to}
		n.mu.Lock()
		n.links[l] = struct{}{}
		severed = n.cut[from] || n.cut[to] // while it was dialled
		n.mu.Unlock()
		if severed {
			_ = l.Close()
			return nil, errors.New("the network is cut")
		}
		return l, nil
	}
}

// isolate cuts a server off, or lets it back.
func (n *network) isolate(a *agent.Agent, cut bool) {
	n.mu.Lock()
	n.cut[a.Name()] = cut
	var severed []*link
	for l := range n.links {
		if n.cut[l.from] || n.cut[l.to] {
			severed = append(severed, l)
		}
	}
	n.mu.Unlock()
	for _, l := range severed {
		_ = l.Close()
	}
}

// silence drops all traffic from and to a server.
func (n *network) silence(a *agent.Agent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent = a.Name()
}

func (n *network) isSilent(from, to string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.silent != "" && (n.silent == from || n.silent == to)
}

// servers are the agents of a cluster.
type servers struct {
	t       *testing.T
	network *network
	agents  []*agent.Agent
}

// newServers starts n agents, which find each other through the first, and waits for a leader.
func newServers(t *testing.T, n int, adjust func(*agent.Config)) *servers {
	w := &servers{t: t, network: newNetwork()}
	for i := range n {
		c := agent.Config{Name: fmt.Sprintf("s%d", i+1), BootstrapExpect: n}
		if adjust != nil {
			adjust(&c)
		}
		w.start(c)
	}
	ready(t, w.agents...)
	return w
}

func (w *servers) start(c agent.Config) *agent.Agent {
	c.Dial = w.network.dialer(c.Name)
	if len(w.agents) > 0 {
		c.Join = []string{w.agents[0].ServerAddr()}
	}
	a := start(w.t, c)
	w.network.mu.Lock()
	w.network.names[a.ServerAddr()] = a.Name()
	w.network.mu.Unlock()
	w.agents = append(w.agents, a)
	return a
}

// leader waits until one of the agents leads, which a consistent read proves.
func (w *servers) leader(of ...*agent.Agent) *agent.Agent {
	if len(of) == 0 {
		of = w.agents
	}
	var leader *agent.Agent
	eventually(w.t, "a leader", func() bool {
		for _, a := range of {
			if a.Backend().Reader.Consistent(w.t.Context()) == nil {
				leader = a
			}
		}
		return leader != nil
	})
	return leader
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	must.Wait(t, wait.InitialSuccess(wait.BoolFunc(holds), wait.Timeout(patience), wait.Gap(10*time.Millisecond)), must.Sprint(what))
}

// others returns all agents except one.
func (w *servers) others(a *agent.Agent) []*agent.Agent {
	var others []*agent.Agent
	for _, o := range w.agents {
		if o != a {
			others = append(others, o)
		}
	}
	return others
}

func api(t *testing.T, a *agent.Agent) *apiclient.Client {
	t.Helper()
	c := result.Of(apiclient.New(apiclient.Config{Address: a.HTTPAddr()})).OK(t)
	t.Cleanup(c.Close)
	return c
}

// register registers a node. It retries, because on a busy machine the leader may lose its leadership, and the
// outcome of a write is not known then.
func register(t *testing.T, c *apiclient.Client, n *cluster.Node) {
	t.Helper()
	eventually(t, "node "+string(n.ID)+" is registered", func() bool {
		_, err := c.Register(t.Context(), n)
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
}

func testNode(i int) *cluster.Node {
	return &cluster.Node{
		ID: cluster.NodeID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)), SecretID: fmt.Sprintf("secret %d", i),
		Name: fmt.Sprintf("n%d", i), Status: cluster.NodeReady, Resources: cluster.Resources{CPU: 4000, MemoryMB: 8192},
	}
}

// awaitSameState waits until the agents have the same state as the first.
func awaitSameState(t *testing.T, agents ...*agent.Agent) {
	t.Helper()
	dump := func(a *agent.Agent) string {
		var b strings.Builder
		must.NoError(t, statestore.Dump(&b, a.Server().Store().Snapshot()))
		return b.String()
	}
	for _, a := range agents[1:] {
		eventually(t, a.Name()+" has the state of "+agents[0].Name(), func() bool { return dump(a) == dump(agents[0]) })
	}
}

// Every server accepts writes, and a later read at another server returns them.
func TestCluster_everyServerAnswers(t *testing.T) {
	t.Parallel()
	w := newServers(t, 3, nil)
	for i := range 9 {
		n := testNode(i)
		register(t, api(t, w.agents[i%3]), n)
		found, a, err := api(t, w.agents[(i+1)%3]).Node(t.Context(), string(n.ID), apiclient.Query{})
		must.NoError(t, err)
		must.Eq(t, n.Name, found.Name)
		must.True(t, a.KnownLeader)
	}
	awaitSameState(t, w.agents...)

	follower := w.others(w.leader())[0]
	must.ErrorIs(t, follower.Backend().Reader.Consistent(t.Context()), httpapi.ErrNotLeader)
	_, err := follower.Backend().Writer.EvaluateNode(t.Context(), "x")
	must.ErrorIs(t, err, httpapi.ErrNotLeader)
}

// A follower forwards a blocking query. The query returns after a change, and the leader detects when
// the client cancels it.
func TestCluster_forwardsBlockingQueries(t *testing.T) {
	t.Parallel()
	w := newServers(t, 3, nil)
	follower := api(t, w.others(w.leader())[0])
	n := testNode(1)
	register(t, follower, n)
	_, a, err := follower.Node(t.Context(), string(n.ID), apiclient.Query{})
	must.NoError(t, err)
	woken := make(chan error, 1)
	go func() {
		found, _, err := follower.Node(t.Context(), string(n.ID), apiclient.Query{Index: a.Index})
		if err == nil && found.SchedulingEligibility != string(cluster.NodeIneligible) {
			err = fmt.Errorf("the query returned without the change: %+v", found)
		}
		woken <- err
	}()
	result.Read(follower.UpdateEligibility(t.Context(), string(n.ID), wire.EligibilityRequest{Eligibility: string(cluster.NodeIneligible)})).OK(t)
	must.NoError(t, <-woken)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, _, err = follower.Node(ctx, string(n.ID), apiclient.Query{Index: 1 << 40})
	must.ErrorIs(t, err, context.DeadlineExceeded)
	began := time.Now() // the leader does not wait for the cancelled query
	for _, a := range w.agents {
		must.NoError(t, stop(a))
	}
	must.Less(t, patience/3, time.Since(began))
}

// Stop ends blocking queries and does not wait for them.
func TestAgent_stopEndsBlockingQueries(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Config{BootstrapExpect: 1})
	ready(t, a)
	sent := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		close(sent)
		r, err := http.Get("http://" + a.HTTPAddr() + "/v1/nodes?index=1000000")
		if err == nil {
			_ = r.Body.Close()
		}
	}()
	<-sent
	began := time.Now()
	must.NoError(t, stop(a))
	<-ended
	must.Less(t, patience/3, time.Since(began))
}

// Stop does not wait for connections on which a client has sent no request.
func TestAgent_stopClosesUnusedConnections(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Config{BootstrapExpect: 1})
	ready(t, a)
	conn := result.Of(net.Dial("tcp", a.HTTPAddr())).OK(t)
	defer conn.Close()
	c := api(t, a) // the agent accepts conn before it answers a later connection
	result.Read(c.Nodes(t.Context(), apiclient.NodesQuery{})).OK(t)
	began := time.Now()
	must.NoError(t, stop(a))
	must.Less(t, patience/3, time.Since(began))
}

// After a stop of all its servers, a restarted cluster has its state.
func TestCluster_restartsFromDisk(t *testing.T) {
	t.Parallel()
	dirs := map[string]string{"s1": t.TempDir(), "s2": t.TempDir(), "s3": t.TempDir()}
	w := newServers(t, 3, func(c *agent.Config) { c.DataDir = dirs[c.Name] })
	for i := range 20 {
		register(t, api(t, w.agents[i%3]), testNode(i))
	}
	awaitSameState(t, w.agents...)
	var before strings.Builder
	must.NoError(t, statestore.Dump(&before, w.agents[0].Server().Store().Snapshot()))
	stopped := w.agents
	w.agents = nil
	for _, a := range stopped {
		must.NoError(t, stop(a))
	}
	for _, a := range stopped {
		w.agents = append(w.agents, start(t, agent.Config{DataDir: dirs[a.Name()], ServerAddr: a.ServerAddr()}))
	}
	ready(t, w.agents...)
	leader := w.leader()
	var after strings.Builder
	must.NoError(t, statestore.Dump(&after, leader.Server().Store().Snapshot()))
	must.Eq(t, before.String(), after.String())
	awaitSameState(t, leader, w.others(leader)[0], w.others(leader)[1])
}

// A server that lacks entries that the leader has deleted restores a snapshot. A blocking query that
// began on the old state continues on the new one.
func TestCluster_restoresASnapshotAfterALongAbsence(t *testing.T) {
	t.Parallel()
	dirs := map[string]string{"s1": t.TempDir(), "s2": t.TempDir(), "s3": t.TempDir()}
	w := newServers(t, 3, func(c *agent.Config) {
		c.DataDir, c.Raft = dirs[c.Name], quickRaft()
		c.Raft.TrailingLogs = 5
	})
	leader := w.leader()
	away := w.others(leader)[0]
	register(t, api(t, leader), testNode(0))
	awaitSameState(t, leader, away)
	w.network.isolate(away, true)
	replaced := away.Server().Store().Abandoned()
	read := make(chan error, 1)
	go func() {
		read <- away.Backend().Reader.Read(t.Context(), away.Server().Store().Snapshot().Index(), func(s httpapi.State) (uint64, error) {
			if s.Node(testNode(99).ID) == nil {
				return 1, nil
			}
			return s.Index(), nil
		})
	}()
	for i := range 100 {
		register(t, api(t, leader), testNode(i))
	}
	for _, a := range w.others(away) { // the leader is one of them
		must.NoError(t, a.Server().Raft().Snapshot().Error())
	}
	w.network.isolate(away, false)
	<-replaced
	must.NoError(t, <-read)
	awaitSameState(t, w.leader(), away)

	register(t, api(t, away), testNode(100)) // it appends entries after the snapshot
	awaitSameState(t, w.leader(), away)
	must.NoError(t, stop(away))
	back := start(t, agent.Config{DataDir: dirs[away.Name()]})
	ready(t, back)
	awaitSameState(t, w.leader(w.others(away)...), back)
}

// A server without a leader waits for one, and then returns an error.
func TestCluster_noLeader(t *testing.T) {
	t.Parallel()
	w := newServers(t, 2, func(c *agent.Config) { c.LeaderWait = 100 * time.Millisecond })
	w.network.isolate(w.agents[0], true)
	c := api(t, w.agents[1])
	eventually(t, "No cluster leader", func() bool {
		_, _, err := c.Nodes(t.Context(), apiclient.NodesQuery{})
		return err != nil && strings.Contains(err.Error(), "No cluster leader")
	})
}

// Any server reports which servers answer, since when they run and how far they are: with a leader, and
// without one.
func TestCluster_survey(t *testing.T) {
	t.Parallel()
	began := time.Now()
	w := newServers(t, 3, func(c *agent.Config) { c.API.Build = "build of " + c.Name })
	leader := w.leader()
	rest := w.others(leader)
	client := api(t, rest[0])
	register(t, client, testNode(1))
	awaitSameState(t, w.agents...)
	servers := result.Of(client.Servers().RaftConfiguration(t.Context())).OK(t)
	must.SliceLen(t, 3, servers.Servers)
	for _, s := range servers.Servers {
		must.True(t, s.Alive, must.Sprint(s.ID))
		must.Eq(t, s.ID == leader.Name(), s.Leader)
		must.Eq(t, "build of "+s.ID, s.Build)
		must.Positive(t, s.AppliedIndex)
		must.Positive(t, s.MaxVersion)
		must.True(t, !s.Started.Before(began) && s.Started.Before(time.Now()), must.Sprint(s.Started))
	}

	must.NoError(t, stop(rest[1]))
	eventually(t, "the last contact with the stopped server", func() bool {
		for _, m := range rest[0].Backend().Peers.Survey(t.Context()) {
			if m.ID == rest[1].Name() && !m.Alive && m.LastContact.After(began) {
				return true
			}
		}
		return false
	})
	must.NoError(t, stop(leader))
	eventually(t, "no leader", func() bool { return rest[0].Backend().Peers.Leader() == "" })
	servers = result.Of(client.Servers().RaftConfiguration(t.Context())).OK(t)
	must.SliceLen(t, 3, servers.Servers)
	for _, s := range servers.Servers {
		must.Eq(t, s.ID == rest[0].Name(), s.Alive, must.Sprint(s.ID))
		must.False(t, s.Leader)
		must.True(t, s.Voter)
		must.Eq(t, s.ID == leader.Name(), s.LastContact.After(began), must.Sprint(s.ID))
	}
}

// A server joins through any member, the leader leaves, and another server removes a dead one.
func TestCluster_joinLeaveRemove(t *testing.T) {
	t.Parallel()
	w := newServers(t, 3, nil)
	register(t, api(t, w.agents[0]), testNode(1))
	fourth := w.start(agent.Config{Name: "s4", LeaveOnStop: true})
	ready(t, fourth)
	must.SliceLen(t, 4, fourth.Backend().Peers.Members())
	awaitSameState(t, w.leader(), fourth)

	must.NoError(t, stop(fourth)) // LeaveOnStop
	w.agents = w.agents[:3]
	leader := w.leader()
	must.SliceLen(t, 3, leader.Backend().Peers.Members())
	must.NoError(t, leader.Leave(t.Context()))
	w.agents = w.others(leader)
	second := w.leader()
	must.SliceLen(t, 2, second.Backend().Peers.Members())
	must.NoError(t, stop(leader))

	must.ErrorIs(t, second.Backend().Peers.Remove(t.Context(), "unknown"), httpapi.ErrNotFound)
	third := w.start(agent.Config{Name: "s5"})
	ready(t, third)
	w.network.isolate(third, true)
	must.NoError(t, api(t, second).Servers().Remove(t.Context(), "s5"))
	must.SliceLen(t, 2, second.Backend().Peers.Members())
}

// A running server that another one removes logs it, with what to do. It once had no leader and gave no reason. A
// server that leaves logs nothing.
func TestCluster_removed(t *testing.T) {
	t.Parallel()
	logs := map[string]*logBuffer{"s1": {}, "s2": {}, "s3": {}}
	w := newServers(t, 3, func(c *agent.Config) {
		c.Logger = hclog.New(&hclog.LoggerOptions{Name: c.Name, Level: hclog.Info, Output: logs[c.Name]})
	})
	leader := w.leader()
	removed := w.others(leader)[0]
	must.NoError(t, api(t, leader).Servers().Remove(t.Context(), removed.Name()))
	const line = "this server was removed from its cluster"
	eventually(t, "the removed server logs it", func() bool { return logs[removed.Name()].has(line) })
	must.NoError(t, leader.Leave(t.Context()))
	must.False(t, logs[leader.Name()].has(line))
}

// A server that was down when another one removed it reads its removal from the leader when it is back,
// although its own configuration has it: it logs the remedy, and its health names the removal. It had no
// leader and gave no reason.
func TestCluster_removedWhileDown(t *testing.T) {
	t.Parallel()
	dirs := map[string]string{"s1": t.TempDir(), "s2": t.TempDir(), "s3": t.TempDir()}
	w := newServers(t, 3, func(c *agent.Config) { c.DataDir = dirs[c.Name] })
	leader := w.leader()
	removed := w.others(leader)[0]
	address := removed.ServerAddr()
	must.NoError(t, stop(removed))
	must.NoError(t, api(t, leader).Servers().Remove(t.Context(), removed.Name()))
	logs := &logBuffer{}
	back := start(t, agent.Config{
		DataDir: dirs[removed.Name()], ServerAddr: address, Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: logs}),
	})
	eventually(t, "the removed server logs it", func() bool {
		return logs.has("this server was removed from its cluster: it gets no more entries, and has no leader. Its own log does not have the removal")
	})
	must.True(t, back.Backend().Peers.Removed())
	must.False(t, leader.Backend().Peers.Removed())
}

// A server that restarts at another address keeps its name and updates its address.
func TestCluster_anotherAddressAfterARestart(t *testing.T) {
	t.Parallel()
	dirs := map[string]string{"s1": t.TempDir(), "s2": t.TempDir(), "s3": t.TempDir()}
	w := newServers(t, 3, func(c *agent.Config) { c.DataDir = dirs[c.Name] })
	leader := w.leader()
	moved := w.others(leader)[0]
	before := moved.ServerAddr()
	must.NoError(t, stop(moved))
	register(t, api(t, leader), testNode(1))
	back := start(t, agent.Config{DataDir: dirs[moved.Name()]})
	must.Eq(t, moved.Name(), back.Name())
	must.NotEq(t, before, back.ServerAddr())
	ready(t, back)
	awaitSameState(t, leader, back)
	must.SliceLen(t, 3, leader.Backend().Peers.Members())
}
