package live

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness"
	"github.com/seed-f9cf0b39/nodedrain/witness/applied"
)

// Options are how a scenario is played. The zero value of each is its default.
type Options struct {
	// Raft has it played by three real servers over hashicorp/raft.
	Raft bool
	// For is how long it is played. There is no other end: goroutines that wait cannot
	// be told from those that have nothing left to do. Zero is the scenario's own time,
	// or [sim.DefaultFor] if it has none.
	For time.Duration
	// OnApply is called with every entry that is applied, once and in the order of the
	// log, by one goroutine at a time; or nil.
	OnApply func(at time.Time, a shims.Applied)
}

// Result is what came of a scenario.
type Result struct {
	// Facts are the final facts; see [invariant.Facts].
	Facts []string
	// Findings are what the witness found wrong.
	Findings []string
	// State is the last state, never nil.
	State *statestore.Snapshot
	// Entries counts what was applied, Marks the marks of drains in it, Terms the
	// leaderships that the contract has had.
	Entries, Marks, Terms int
	// Strikes counts by name what faults did.
	Strikes map[scenario.FaultName]int
}

// Play plays a scenario with goroutines, and returns when all of them have ended. Have it
// called in a bubble of testing/synctest: elsewhere it takes as long as it says. An
// error says that the scenario could not be played, see [Unplayable], or that servers
// came to different states by the same log.
func Play(s *scenario.Scenario, o Options) (*Result, error) {
	if why := Unplayable(s, o); len(why) > 0 {
		return nil, fmt.Errorf("playing %s: %s", s.Name, strings.Join(why, "; "))
	}
	o.For = cmp.Or(o.For, s.Run.For, sim.DefaultFor)
	p, err := newPlayer(s, o)
	if err != nil {
		return nil, fmt.Errorf("setting up %s: %w", s.Name, err)
	}
	if err := p.play(); err != nil {
		return nil, fmt.Errorf("playing %s: %w", s.Name, err)
	}
	return &p.result, nil
}

// player plays one scenario, once.
type player struct {
	scenario *scenario.Scenario
	options  Options
	// began is when the scenario began.
	began   time.Time
	ids     ids
	chance  *chance
	faults  *faults
	clients *clients
	servers servers
	// requests makes what is asked of the servers, operator has done what is to be done
	// to them; neither is ever nil.
	requests *setting.Requests
	operator *operator
	// witness and result are of the goroutine that applies.
	witness *witness.Witness
	result  Result
}

func newPlayer(s *scenario.Scenario, o Options) (*player, error) {
	config, err := setting.Drainer(s.Drainer)
	if err != nil {
		return nil, err
	}
	chance := newChance(s.Seed)
	p := &player{
		scenario: s, options: o, began: time.Now(), chance: chance, faults: newFaults(chance),
		witness: witness.New(sim.WitnessOptions(config.Policy)),
	}
	p.requests = p.newRequests()
	p.operator = newOperator(p)
	if p.clients, err = newClients(p); err != nil {
		return nil, err
	}
	if o.Raft {
		p.servers, err = newQuorum(p, config)
	} else {
		p.servers, err = newContract(p, config)
	}
	return p, err
}

// play has everything happen.
func (p *player) play() error {
	if err := p.servers.start(); err != nil {
		return err
	}
	stopClients := p.clients.start()
	go p.operator.run()
	time.Sleep(time.Until(p.began.Add(p.options.For)) + afterwards)
	close(p.operator.stop)
	<-p.operator.stopped
	stopClients()
	var err error
	if p.result.State, err = p.servers.end(); err != nil {
		return err
	}
	p.result.Facts, p.result.Strikes = invariant.Facts(p.result.State), p.faults.struck
	p.witness.Audit(p.result.State)
	for _, f := range p.witness.Report().Findings {
		p.result.Findings = append(p.result.Findings, f.String())
	}
	return nil
}

// afterwards is for what happens at the very end to have happened.
const afterwards = time.Millisecond

// applied is told of every entry once, in the order of the log.
func (p *player) applied(a shims.Applied) {
	p.result.Entries++
	if m, is := a.Response.(shims.MarksApplied); is {
		p.result.Marks += len(m.Accepted)
	}
	p.witness.Observe(applied.Entry(a))
	p.provoke(a)
	if p.options.OnApply != nil {
		p.options.OnApply(time.Now(), a)
	}
}
