package live

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
	"github.com/seed-f9cf0b39/nodedrain/witness"
	"github.com/seed-f9cf0b39/nodedrain/witness/applied"
)

// Options are how a scenario is played. The zero value of each is its default.
type Options struct {
	// For is how long the scenario is played. There is no other end: goroutines that
	// wait cannot be told from those that have nothing left to do. Zero is the
	// scenario's own time, or [sim.DefaultFor] if it has none.
	For time.Duration
}

// Result is what came of a scenario.
type Result struct {
	// Facts are the final facts; see [Facts].
	Facts []string
	// Findings are what the witness found wrong.
	Findings []string
	// Entries counts the applied entries; Marks and Elections speak for themselves.
	Entries, Marks, Terms int
}

// Play plays a scenario with goroutines, and returns when all of them have ended. Have it
// called in a bubble of testing/synctest: elsewhere it takes as long as it says. An
// error says that the scenario could not be played, or that servers came to different
// states by the same log; see [Unplayable].
func Play(s *scenario.Scenario, o Options) (*Result, error) {
	if why := Unplayable(s); len(why) > 0 {
		return nil, fmt.Errorf("playing %s: %s", s.Name, strings.Join(why, "; "))
	}
	if o.For == 0 {
		o.For = s.Run.For
	}
	if o.For == 0 {
		o.For = sim.DefaultFor
	}
	p, err := newPlayer(s)
	if err != nil {
		return nil, fmt.Errorf("setting up %s: %w", s.Name, err)
	}
	if err := p.play(o.For); err != nil {
		return nil, fmt.Errorf("playing %s: %w", s.Name, err)
	}
	return &p.result, nil
}

// player plays one scenario, once.
type player struct {
	scenario *scenario.Scenario
	start    time.Time
	ids      ids
	chance   *chance
	faults   *faults
	clients  *clients
	servers  servers
	// newest is the server that has applied most, never nil.
	newest atomic.Pointer[server]
	// witness and result are of the goroutine that applies.
	witness *witness.Witness
	result  Result
}

func newPlayer(s *scenario.Scenario) (*player, error) {
	config, err := setting.Drainer(s.Drainer)
	if err != nil {
		return nil, err
	}
	chance := newChance(s.Seed)
	p := &player{
		scenario: s, start: time.Now(), chance: chance, faults: &faults{chance: chance},
		witness: witness.New(sim.WitnessOptions(config.Policy)),
	}
	if p.clients, err = newClients(p); err != nil {
		return nil, err
	}
	l, err := newContract(p, config)
	if err != nil {
		return nil, err
	}
	p.servers = l
	return p, nil
}

// play has everything happen.
func (p *player) play(lasts time.Duration) error {
	if err := p.servers.start(p.begin()); err != nil {
		return err
	}
	stopClients := p.clients.start()
	o := &operator{player: p, stop: make(chan struct{}), stopped: make(chan struct{})}
	go o.run()
	time.Sleep(time.Until(p.start.Add(lasts)) + afterwards)
	close(o.stop)
	<-o.stopped
	stopClients()
	if err := p.servers.end(); err != nil {
		return err
	}
	p.judge()
	return nil
}

// afterwards is for what happens at the very end to have happened.
const afterwards = time.Millisecond

// applied is told of every entry once, in the order of the log.
func (p *player) applied(a shims.Applied) {
	p.result.Entries++
	if m, is := a.Response.(shims.Marked); is {
		p.result.Marks += len(m.Accepted)
	}
	p.witness.Observe(applied.Entry(a))
}

// judge writes down what came of it.
func (p *player) judge() {
	state := p.servers.truth()
	p.result.Facts = Facts(state)
	_, err := sim.Judged(p.witness, state)
	for err != nil {
		joined, is := err.(interface{ Unwrap() []error })
		if !is {
			p.result.Findings = append(p.result.Findings, err.Error())
			break
		}
		for _, e := range joined.Unwrap() {
			p.result.Findings = append(p.result.Findings, e.Error())
		}
		err = nil
	}
}

var _ = errors.New
var _ drainer.Outcome
