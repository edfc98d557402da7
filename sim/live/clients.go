package live

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/simclient"
)

// clients are the clients of all nodes, on a goroutine of their own.
type clients struct {
	*player
	fleet *simclient.Fleet
	said  *setting.Clients // never nil

	mu sync.Mutex
	// silent counts, by node, how often its client has fallen silent; those of zero are
	// heard. Guarded by mu.
	silent map[cluster.NodeID]int
	// silences counts them all; guarded by mu.
	silences int
}

func newClients(p *player) (*clients, error) {
	c := &clients{player: p, said: setting.NewClients(p.scenario.Clients), silent: map[cluster.NodeID]int{}}
	var err error
	c.fleet, err = simclient.New(simclient.Options{Snapshot: c.state, Applier: c, Behave: c.behave})
	return c, err
}

// start starts the clients. The function it returns ends them and waits for them.
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

// state is the newest state as clients see it: whose client is silent is out of touch.
func (c *clients) state() simclient.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.servers.truth()
	if len(c.silent) == 0 {
		return state
	}
	silent := maps.Clone(c.silent)
	return setting.Partly(state, func(id cluster.NodeID) bool { return silent[id] != 0 })
}

// silence has a node's client fall silent. It returns how it is known that it still is
// the same silence.
func (c *clients) silence(id cluster.NodeID) (lasts func() bool) {
	c.mu.Lock()
	c.silences++
	this := c.silences
	c.silent[id] = this
	c.mu.Unlock()
	c.fleet.Changed(id) // or what is due would be said
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.silent[id] == this
	}
}

// speak has a node's client be heard again.
func (c *clients) speak(id cluster.NodeID) {
	c.mu.Lock()
	delete(c.silent, id)
	c.mu.Unlock()
	c.fleet.Changed(id)
}

// isSilent reports whether a node's client is.
func (c *clients) isSilent(id cluster.NodeID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.silent[id] != 0
}

// Report proposes what clients say, with the evaluations that it calls for.
func (c *clients) Report(reports []cluster.AllocReport, reply func(applied bool)) (queued bool) {
	m := &shims.AllocClientUpdate{Reports: reports}
	m.Evals = scheduler.ReportEvals(c.servers.truth(), reports, time.Now(), c.ids.eval)
	return c.servers.propose(world.FromClients, m, func(a shims.Answer) { reply(a.Outcome == raftwrite.Applied) })
}

// behave is how an allocation fares, as the deterministic run has it too: by the
// scenario, with chance of its own, and by the faults that are armed.
func (c *clients) behave(a *cluster.Allocation, _ *rand.Rand) simclient.Behaviour {
	var r *rand.Rand
	if c.scenario.Seed != 0 {
		r = world.Stream(c.scenario.Seed, "client/"+a.Name+"@"+string(a.NodeID))
	}
	return setting.Afflicted(c.said.Behaviour(a, r), a, func(name scenario.FaultName) bool {
		_, strikes := c.faults.strike(name, target{Alloc: a})
		return strikes
	})
}

// notice tells the clients that an entry may have something for.
func (c *clients) notice(a shims.Applied) {
	if a.Message == nil { // it was placed past the log
		c.fleet.ChangedAll()
	}
	setting.Concerned(a, c.fleet.Changed)
}
