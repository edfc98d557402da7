package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// roundsVariable sets the number of rounds of failures.
const roundsVariable = "NODEDRAIN_E2E_ROUNDS"

// roundsOr returns the number of rounds of failures, or what it is without the variable.
func roundsOr(t *testing.T, without int) int {
	t.Helper()
	text := os.Getenv(roundsVariable)
	if text == "" {
		return without
	}
	rounds, err := strconv.Atoi(text)
	must.NoError(t, err)
	return rounds
}

// Under a steady load of drains servers, the leader too, are killed and restarted, and the leader
// is cut off or paused. Every drain ends with its expected outcome, no group goes below its limit,
// no node is marked down because a leader is new, no acknowledged write is lost, and in the end all
// servers have the same state, without the allocations that have ended.
func TestServersInTrouble(t *testing.T) {
	rounds := roundsOr(t, 3) // one of each kind
	s := startServers(t, 15*time.Second)
	clients := s.startClients(12)
	s.registerJobs(12)
	s.allRun("web", 24)

	o := &operator{servers: s, nodes: clients.ids}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var working sync.WaitGroup
	for share := range 3 {
		working.Go(func() { o.work(ctx, clients.ids[4*share:4*share+4], uint64(share)) })
	}
	random := rand.New(rand.NewPCG(7, 7))
	for round := range rounds {
		s.makeTrouble(random, round)
	}
	stop()
	working.Wait()

	s.healthy()
	for _, err := range o.judge(s.records()) {
		t.Error(err)
	}
	if len(o.book) < rounds {
		t.Errorf("only %d drains in %d rounds: there was no load", len(o.book), rounds)
	}
	for _, id := range clients.ids {
		s.neverMissed(id)
	}
	s.await("nothing that has ended", func() bool {
		allocs, _, err := s.leader().api.Allocations().List(nil)
		return err == nil && len(allocs) <= 24+12+6+12 // of web, api, report and logs
	})
	clients.stop()
	s.sameState()
	t.Logf("%d rounds, %d drains", rounds, len(o.book))
}

// makeTrouble kills one server and begins it again; of four times it cuts the leader off
// instead once, and has it fall silent once.
func (s *servers) makeTrouble(random *rand.Rand, round int) {
	pause := func(least, most time.Duration) { s.pause(least + rand.N(most-least)) }
	leader := s.leader()
	switch round % 4 {
	case 1:
		s.t.Logf("round %d: %s leads and is cut off", round, leader.Name)
		s.cut(leader)
		pause(2*time.Second, 4*time.Second)
		s.cut(nil)
		s.leader()
		return
	case 2:
		s.t.Logf("round %d: %s leads and falls silent", round, leader.Name)
		s.freeze(leader, func() { pause(4*time.Second, 6*time.Second) })
		s.leader()
		return
	}
	victim := leader
	if random.IntN(2) == 0 {
		victim = s.all[random.IntN(len(s.all))]
	}
	s.t.Logf("round %d: %s leads, %s is killed", round, leader.Name, victim.Name)
	s.kill(victim)
	pause(500*time.Millisecond, 2*time.Second)
	s.start(victim)
	s.leader()
	pause(time.Second, 3*time.Second)
}

// clients are the clients of all nodes.
type clients struct {
	ids  []string
	stop func()
}

// startClients has clients play until stop is called, or the test ends.
func (s *servers) startClients(n int) clients {
	var play clients
	var nodes []*cluster.Node
	for i := range n {
		id := uuid.NewString()
		play.ids = append(play.ids, id)
		nodes = append(nodes, &cluster.Node{
			ID: cluster.NodeID(id), SecretID: uuid.NewString(), Name: fmt.Sprint("node-", i), Datacenter: "dc1", Status: cluster.NodeReady,
			Resources: cluster.Resources{CPU: 4000, MemoryMB: 8192, DiskMB: 1 << 20},
		})
	}
	play.stop = startFleet(s.t, s.urls(), nodes, simclient.Options{MinStart: 20 * time.Millisecond, MaxStart: 200 * time.Millisecond, RunTime: 5 * time.Second})
	s.await("all nodes", func() bool {
		nodes, _, err := s.all[0].api.Nodes().List(nil)
		return err == nil && len(nodes) == n
	})
	return play
}

// registerJobs registers services of several paces, batch work and a system job.
func (s *servers) registerJobs(nodes int) {
	s.t.Helper()
	for _, j := range []struct {
		id, kind           string
		count, maxParallel int
	}{{"web", "service", 2 * nodes, 1}, {"api", "service", nodes, 3}, {"report", "batch", nodes / 2, 0}, {"logs", "system", 1, 0}} {
		job := &api.Job{ID: &j.id, Name: &j.id, Type: &j.kind, Datacenters: []string{"dc1"}}
		group := api.NewTaskGroup("main", j.count)
		if j.kind == "service" {
			quick, long := 200*time.Millisecond, time.Minute
			group.Migrate = &api.MigrateStrategy{MaxParallel: &j.maxParallel, HealthCheck: new(string), MinHealthyTime: &quick, HealthyDeadline: &long}
			*group.Migrate.HealthCheck = "task_states"
		}
		cpu, memory, kill := 100, 64, 500*time.Millisecond
		task := api.NewTask("main", "mock").Require(&api.Resources{CPU: &cpu, MemoryMB: &memory})
		task.KillTimeout = &kill
		job.AddTaskGroup(group.AddTask(task))
		must.NoError(s.t, s.do(s.t.Context(), func(c *api.Client) error {
			_, _, err := c.Jobs().Register(job, nil)
			return err
		}))
	}
}

// allRun waits until so many allocations of a job run and are healthy.
func (s *servers) allRun(job string, count int) {
	s.t.Helper()
	s.await(fmt.Sprintf("%d of %s", count, job), func() bool {
		allocs, _, err := s.all[0].api.Jobs().Allocations(job, false, nil)
		healthy := 0
		for _, a := range allocs {
			if a.ClientStatus == "running" && a.DesiredStatus == "run" && a.DeploymentStatus != nil && a.DeploymentStatus.Healthy != nil && *a.DeploymentStatus.Healthy {
				healthy++
			}
		}
		return err == nil && healthy == count
	})
}

// healthy checks that no server has found a guarantee broken since its last start.
func (s *servers) healthy() {
	s.t.Helper()
	s.allRun("web", 24)
	for _, p := range s.all {
		lines, err := p.violations()
		must.NoError(s.t, err)
		must.SliceEmpty(s.t, lines, must.Sprint(p.Name))
	}
}

// records are the ended drains, none of which runs.
func (s *servers) records() []record {
	s.t.Helper()
	var list struct {
		Active []struct{ Drain record }
		Recent []record
	}
	body, _, err := s.leader().get("/v1/drains?per_page=10000")
	must.NoError(s.t, err)
	must.NoError(s.t, json.Unmarshal([]byte(body), &list))
	must.SliceEmpty(s.t, list.Active)
	return list.Recent
}

// neverMissed checks that a node whose client was running all the time was never marked down: a new
// leader starts the node's timer again.
func (s *servers) neverMissed(id string) {
	s.t.Helper()
	n, _, err := s.leader().api.Nodes().Info(id, nil)
	must.NoError(s.t, err)
	must.Eq(s.t, "ready", n.Status)
	for _, e := range n.Events {
		must.NotEq(s.t, "Node heartbeat missed", e.Message, must.Sprint(n.Name))
	}
}

// sameState waits until all servers hold the same, byte by byte.
func (s *servers) sameState() {
	s.t.Helper()
	var states [3]string
	s.await("equal states", func() bool {
		for i, p := range s.all {
			state, _, err := p.get("/e2e/state")
			if err != nil {
				return false
			}
			states[i] = state
		}
		return states[0] == states[1] && states[1] == states[2]
	})
	must.StrContains(s.t, states[0], "web")
}
