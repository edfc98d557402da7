package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
)

// Servers of an old commit are upgraded, with certificates and without.
//
//race:skip the same goroutines as TestServersInTrouble
func TestUpgrade(t *testing.T) {
	t.Parallel()
	began := time.Now()
	old := buildOld(t)
	t.Logf("built the servers of %.7s in %s", oldCommit, time.Since(began).Round(time.Second))
	t.Run("rolling", func(t *testing.T) { rollingUpgrade(t, old) })
	t.Run("without certificates", func(t *testing.T) { upgradeWithoutCertificates(t, old) })
}

// Three servers of a commit without cluster versions are upgraded one by one while drains run, and one of
// them is downgraded on the way. No server stops, no write is lost, and the servers hold the same at each
// step. The version rises with the last server: before that no drain can be paused. From then on the old
// build cannot run on the data, and does not harm it.
func rollingUpgrade(t *testing.T, old string) {
	t.Parallel()
	began, this := time.Now(), os.Args[0]
	ca := newAuthority(t, "the authority of the servers")
	ca.sign("server", agent.ServerName(agent.DefaultRegion))
	s := startBuild(t, old, childConfig{
		TTL: 15 * time.Second, CA: ca.file("ca.pem"), Cert: ca.file("server.pem"), Key: ca.file("server-key.pem"),
	})
	first, second, third := s.all[0], s.all[1], s.all[2]
	clients := s.startClients(12)
	s.registerJobs(12)
	s.allRun("web", 24)
	t.Logf("three servers of %.7s, %d nodes, drains begin", oldCommit, len(clients.ids))
	o, endLoad := s.drainAll(clients.ids)
	defer endLoad()

	s.replace(first, this)
	o.betweenDrains(s.sameState)
	t.Logf("%s runs this build, cluster version %d; all states are equal", first.Name, s.version(first))
	s.replace(first, old)
	o.betweenDrains(s.sameState)
	t.Logf("%s runs %.7s again; all states are equal", first.Name, oldCommit)
	s.replace(first, this)
	s.replace(second, this)
	o.betweenDrains(s.sameState)
	t.Logf("%s and %s run this build, cluster version %d; all states are equal", first.Name, second.Name, s.version(first))

	// A leader of this build sends an old server entries and a snapshot.
	s.end(third)
	leader := s.leader()
	missed := s.writeUntilCompacted(leader)
	s.awaitLog(leader, "server "+third.Name+" does not answer")
	must.Eq(t, 1, s.version(leader))
	t.Logf("%s leads and logs: the cluster version stays %d, server %s does not answer", leader.Name, s.version(leader), third.Name)
	s.start(third)
	s.awaitLog(third, "Installed remote snapshot")
	o.betweenDrains(s.sameState)
	t.Logf("%s, of %.7s, was away for %d entries and restored a snapshot of %s, of this build; all states are equal",
		third.Name, oldCommit, missed, leader.Name)
	leader = s.leaderOf(first, second)
	s.awaitLog(leader, "server "+third.Name+" understands version 1 at most")
	must.Eq(t, 1, s.version(first))
	must.Eq(t, 1, s.version(second))
	must.ErrorContains(t, registerVolume(leader.api), "needs version 7, and the cluster has version 1: upgrade every server of the cluster")
	pauses := pauser{s}
	pauses.refused(1, clients.ids[0], first, second)
	t.Logf("%s leads and logs: the cluster version stays %d, server %s understands version 1 at most", leader.Name, s.version(leader), third.Name)

	s.replace(third, this)
	for _, p := range s.all {
		s.await("the version of this build on "+p.Name, func() bool { return s.version(p) == cluster.MaxVersion })
	}
	must.NoError(t, registerVolume(s.leader().api))
	o.betweenDrains(s.sameState)
	t.Logf("%s runs this build, cluster version %d, with a volume; all states are equal", third.Name, s.version(third))

	endLoad()
	s.healthy()
	for _, err := range o.judge(s.records()) {
		t.Error(err)
	}
	must.Greater(t, 5, len(o.book), must.Sprint("drains: there was no load"))
	t.Logf("all %d drains that were acknowledged are on record, each once and with an outcome that it may have", len(o.book))

	// There is no way back now. The leader tries it while drains are paused.
	down := s.leader()
	pauses.across(clients.ids, time.Hour, func() {
		s.end(down)
		down.binary = old
		s.start(down)
		code := s.exits(down)
		must.NotEq(t, 0, code)
		t.Logf("%s, of %.7s on data of version %d, ended with code %d: %s", down.Name, oldCommit, cluster.MaxVersion, code, down.lastLine("it is of format", "unknown type"))
		down.binary = this
		must.True(t, s.leader() != down)
	})
	s.start(down)
	clients.stop()
	s.sameState()
	t.Logf("%s runs this build again on the same data; all states are equal (%s)", down.Name, time.Since(began).Round(time.Second))
}

// Three servers of an old commit, which authenticate each other by nothing, are upgraded in the steps of
// docs/operators.md. This build refuses to start without a secret, and changes nothing. With the secret
// it has no connection with servers of the old commit: the first server waits, the other two still work.
// Between the end of the second server and its start no server leads. No acknowledged write is lost.
func upgradeWithoutCertificates(t *testing.T, old string) {
	t.Parallel()
	this := os.Args[0]
	s := startBuild(t, old, childConfig{TTL: time.Minute})
	first, second, third := s.all[0], s.all[1], s.all[2]
	s.registerJobs(2)
	s.sameState()

	for _, join := range [][]string{first.Join, nil} { // also if only the data directory has the other servers
		s.end(first)
		all := first.Join
		first.binary, first.Join = this, join
		s.start(first)
		must.Eq(t, 1, s.exits(first))
		t.Logf("this build without a secret: %s", first.lastLine("servers must authenticate each other"))
		must.StrContains(t, first.logged(), "servers must authenticate each other")
		first.binary, first.Join = old, all
		s.start(first)
		s.sameState()
	}

	upgrade := func(p *serverProcess) {
		s.end(p)
		p.binary, p.Secret = this, peerSecret
		s.start(p)
	}
	write := func(index int) {
		t.Helper()
		must.NoError(t, s.do(t.Context(), func(c *api.Client) error {
			kind, name := "batch", fmt.Sprint("job-", index)
			job := &api.Job{ID: &name, Name: &name, Type: &kind, Datacenters: []string{"dc1"}}
			job.AddTaskGroup(api.NewTaskGroup("main", 0).AddTask(api.NewTask("main", "mock")))
			_, _, err := c.Jobs().Register(job, nil)
			return err
		}))
	}
	upgrade(first)
	s.awaitLog(first, "all servers need the same peer secret, and a build that supports it")
	s.await("the two others have a leader, and no longer name the first server", func() bool { return s.leader() != first })
	write(1) // the two others are a majority
	upgrade(second)
	must.True(t, s.leaderOf(second) == second, must.Sprint("only this server has all writes"))
	write(2)
	upgrade(third)
	s.sameState()
	for index := range 2 {
		_, _, err := third.api.Jobs().Info(fmt.Sprint("job-", index+1), nil)
		must.NoError(t, err)
	}
	for _, p := range s.all {
		s.await("the version of this build on "+p.Name, func() bool { return s.version(p) == cluster.MaxVersion })
	}
}

// A server that is downgraded below the version of its cluster ends with an error that names the version and
// the remedy, after a restart too, and works again after an upgrade. It finds the version in an entry, in a
// snapshot on its disk, and in the answer to its request to join.
//
//race:skip the same goroutines as TestServersInTrouble
func TestDowngradeBelowTheClusterVersion(t *testing.T) {
	t.Parallel()
	began := time.Now()
	next, this := buildNext(t), os.Args[0]
	t.Logf("built servers that understand version %d in %s", nextVersion, time.Since(began).Round(time.Second))
	s := startBuild(t, next, childConfig{TTL: time.Minute, Secret: peerSecret})
	down := s.all[0]
	s.await("the next version", func() bool { return s.version(down) == nextVersion })
	s.registerJobs(2)
	t.Logf("three servers of the next build, cluster version %d", s.version(down))

	remedy := fmt.Sprintf("it needs version %d, and this server understands %s: upgrade this server to a build that understands cluster version %d or later",
		nextVersion, cluster.Understood(), nextVersion)
	refused := func(at string) {
		t.Helper()
		for range 2 {
			s.start(down)
			must.Eq(t, 1, s.exits(down))
			must.StrNotContains(t, down.logged(), "goroutine ")
			line := down.lastLine(at)
			must.StrContains(t, line, remedy)
			t.Logf("%s, of this build, ended with code 1: %s", down.Name, line)
		}
	}
	s.kill(down) // without the snapshot of an orderly end
	down.binary = this
	refused("cannot be applied, and must not be skipped")

	down.binary = next
	s.start(down)
	s.writeUntilCompacted(down)
	s.sameState()
	s.end(down)
	down.binary = this
	refused("restoring the state")

	down.binary = next
	s.start(down)
	s.sameState()
	t.Logf("%s runs the next build again on the same data; all states are equal", down.Name)

	fourth := s.newcomer(this)
	s.start(fourth)
	why := fmt.Sprintf("it understands cluster versions %s, and the cluster has version %d: upgrade it to a build that understands version %d",
		cluster.Understood(), nextVersion, nextVersion)
	s.awaitLog(fourth, why)
	t.Logf("%s, of this build, was not let in: %s (%s)", fourth.Name, fourth.lastLine(why), time.Since(began).Round(time.Second))
	s.kill(fourth)
	s.all = s.all[:3]
	s.sameState()
}

// registerVolume registers a volume, which needs the newest cluster version.
func registerVolume(c *api.Client) error {
	_, err := c.CSIVolumes().Register(&api.CSIVolume{
		ID: "data", Name: "data", ExternalID: "data", PluginID: "disks",
		RequestedCapabilities: []*api.CSIVolumeCapability{{AccessMode: "single-node-writer", AttachmentMode: "file-system"}},
	}, nil)
	return err
}

// newcomer is a fourth server, which does not run yet.
func (s *servers) newcomer(binary string) *serverProcess {
	s.t.Helper()
	ports := freePorts(s.t, 2)
	p := &serverProcess{childConfig: s.all[0].childConfig, binary: binary}
	p.Name, p.DataDir, p.ServerAddr, p.HTTPAddr = "server-4", s.all[0].DataDir+"-of-4", ports[0], ports[1]
	var err error
	p.logs, err = os.Create(p.DataDir + ".log")
	must.NoError(s.t, err)
	s.all = append(s.all, p)
	return p
}

// drainAll has an operator drain all nodes, again and again, until the load is ended.
func (s *servers) drainAll(nodes []string) (o *operator, end func()) {
	o = &operator{servers: s, nodes: nodes}
	ctx, stop := context.WithCancel(s.t.Context())
	var working sync.WaitGroup
	for share := range 3 {
		working.Go(func() { o.work(ctx, nodes[4*share:4*share+4], uint64(share)) })
	}
	return o, func() {
		stop()
		working.Wait()
	}
}

// replace ends a server in good order and starts a build on its data.
func (s *servers) replace(p *serverProcess, binary string) {
	s.t.Helper()
	s.end(p)
	p.binary = binary
	s.start(p)
	s.leader()
	s.await(p.Name, func() bool {
		_, _, err := p.get("/e2e/state")
		return err == nil
	})
}

// end ends a server in good order.
func (s *servers) end(p *serverProcess) {
	s.t.Helper()
	must.NoError(s.t, p.command.Process.Signal(syscall.SIGTERM))
	must.Eq(s.t, 0, s.exits(p), must.Sprint(p.Name))
}

// exits waits until a server has ended, and returns its exit code.
func (s *servers) exits(p *serverProcess) int {
	s.t.Helper()
	kill := time.AfterFunc(patience, func() { _ = p.command.Process.Kill() })
	defer kill.Stop()
	err := p.command.Wait()
	p.command = nil
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		return exit.ExitCode()
	}
	must.NoError(s.t, err)
	return 0
}

// version is the cluster version of a server's state: 1 if the server has none, 0 if it does not answer.
func (s *servers) version(p *serverProcess) cluster.Version {
	s.t.Helper()
	var c wire.RaftConfiguration
	body, _, err := p.get("/v1/operator/raft/configuration?stale")
	if err != nil {
		return 0
	}
	must.NoError(s.t, json.Unmarshal([]byte(body), &c))
	return max(1, cluster.Version(c.ClusterVersion))
}

// leaderOf waits until one of the servers leads.
func (s *servers) leaderOf(of ...*serverProcess) (leader *serverProcess) {
	s.t.Helper()
	s.await("a leader of some", func() bool {
		now := s.leader()
		for _, p := range of {
			if p == now {
				leader = p
			}
		}
		return leader != nil
	})
	return leader
}

// writeUntilCompacted writes until the log of a server does not reach back to the entries
// before: those are in a snapshot only. It returns how many entries that took.
func (s *servers) writeUntilCompacted(p *serverProcess) (entries uint64) {
	s.t.Helper()
	index := func(name string) uint64 {
		var stats map[string]string
		body, _, err := p.get("/e2e/raft")
		if err != nil {
			return 0
		}
		must.NoError(s.t, json.Unmarshal([]byte(body), &stats))
		n, err := strconv.ParseUint(stats[name], 10, 64)
		must.NoError(s.t, err)
		return n
	}
	s.await(p.Name, func() bool { return index("last_log_index") > 0 })
	before := index("last_log_index")
	kind, count, priority := "batch", 0, 0
	name := "filler"
	for index("last_snapshot_index") < before+childRaft().TrailingLogs+1 {
		priority = priority%99 + 1
		job := &api.Job{ID: &name, Name: &name, Type: &kind, Datacenters: []string{"dc1"}, Priority: &priority}
		job.AddTaskGroup(api.NewTaskGroup("main", count).AddTask(api.NewTask("main", "mock")))
		must.NoError(s.t, s.do(s.t.Context(), func(c *api.Client) error {
			_, _, err := c.Jobs().Register(job, nil)
			return err
		}))
	}
	return index("last_log_index") - before
}

// logged is the server's log since its last start.
func (p *serverProcess) logged() string {
	text, err := os.ReadFile(p.logs.Name())
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(text[p.began:])
}

// awaitLog waits until a server has logged a text.
func (s *servers) awaitLog(p *serverProcess, words string) {
	s.t.Helper()
	s.await(fmt.Sprintf("%s to log %q", p.Name, words), func() bool { return strings.Contains(p.logged(), words) })
}

// lastLine is the last line that a server has logged with one of some words in it.
func (p *serverProcess) lastLine(words ...string) (last string) {
	for line := range strings.Lines(p.logged()) {
		for _, w := range words {
			if strings.Contains(line, w) {
				last = strings.TrimSpace(line)
			}
		}
	}
	return last
}
