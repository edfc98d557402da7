package live

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// clients are the clients of all nodes, on their own goroutine.
type clients struct {
	*player
	fleet    *simclient.Fleet
	declared *setting.Clients // the scenario's client directives; never nil

	mu sync.Mutex
	// silent holds the nodes whose clients are silent, each with the number of its outage;
	// guarded by mu.
	silent map[cluster.NodeID]int
	// outages counts all outages; guarded by mu.
	outages int
}

func newClients(p *player) (*clients, error) {
	c := &clients{player: p, declared: setting.NewClients(p.scenario.Clients), silent: map[cluster.NodeID]int{}}
	var err error
	c.fleet, err = simclient.New(simclient.Options{Snapshot: c.state, Applier: c, Behave: c.behave, Overlap: true})
	return c, err
}

// start starts the clients. The returned function ends them and waits for them.
func (c *clients) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		c.fleet.Run(ctx)
	}()
	return func() {
		cancel()
		<-exited
	}
}

// state returns the newest state as clients see it. In it, the nodes of silent clients are
// disconnected.
func (c *clients) state() simclient.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.servers.newestState()
	if len(c.silent) == 0 {
		return state
	}
	silent := maps.Clone(c.silent)
	return setting.ClientState(state, func(id cluster.NodeID) bool { return silent[id] != 0 })
}

// silence makes a node's client send and receive nothing. The returned function reports whether
// this outage still lasts.
func (c *clients) silence(id cluster.NodeID) (lasts func() bool) {
	c.mu.Lock()
	c.outages++
	number := c.outages
	c.silent[id] = number
	c.mu.Unlock()
	c.fleet.Changed(id) // otherwise the client would still send its next report
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.silent[id] == number
	}
}

// endSilence ends the outage of a node's client.
func (c *clients) endSilence(id cluster.NodeID) {
	c.mu.Lock()
	delete(c.silent, id)
	c.mu.Unlock()
	c.fleet.Changed(id)
}

// isSilent reports whether a node's client is silent.
func (c *clients) isSilent(id cluster.NodeID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.silent[id] != 0
}

// Report sends the clients' reports.
func (c *clients) Report(reports []cluster.AllocReport, reply func(applied bool)) (queued bool) {
	c.servers.report(reports, reply)
	return true
}

// behave returns the behaviour of an allocation, as in the deterministic run: that of the
// scenario, drawn from the allocation's own stream, and changed by the armed faults.
func (c *clients) behave(a *cluster.Allocation, _ *rand.Rand) simclient.Behaviour {
	var r *rand.Rand
	if c.scenario.Seed != 0 {
		r = world.Stream(c.scenario.Seed, "client/"+a.Name+"@"+string(a.NodeID))
	}
	return setting.WithFaults(c.declared.Behaviour(a, r), a, func(name scenario.FaultName) bool {
		_, strikes := c.faults.strike(name, target{Alloc: a})
		return strikes
	})
}

// notice tells the clients which nodes an entry may concern.
func (c *clients) notice(a shims.Applied) {
	setting.ChangedNodes(a, c.fleet.Changed)
}
