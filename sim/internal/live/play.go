package live

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness"
	"github.com/seed-f9cf0b39/nodedrain/witness/applied"
)

// Options are the options of a play. The zero value of each is its default.
type Options struct {
	// For is the duration of the play. A play cannot end earlier, because it cannot tell
	// whether a waiting goroutine has more work. Zero is the scenario's own duration, or
	// [sim.DefaultFor] if it has none.
	For time.Duration
	// OnApply is called once with every applied entry, in the order of the log. The calls
	// come from several goroutines, but never at the same time. Nil is no call.
	OnApply func(at time.Time, a shims.Applied)
}

// Result is the result of a play.
type Result struct {
	// Facts are the final facts; see [invariant.Facts].
	Facts []string
	// Findings are the findings of the witness.
	Findings []string
	// State is the last state; never nil.
	State *statestore.Snapshot
	// Entries counts the applied entries, Marks the accepted marks in them.
	Entries, Marks int
	// Strikes counts the strikes of each fault.
	Strikes map[scenario.FaultName]int
}

// Play plays a scenario, and returns when all its goroutines have ended. Call it in a bubble of
// testing/synctest: outside a bubble it plays in real time. It returns an error if the scenario
// cannot be played (see [Unplayable]), if an operation fails, or if the servers end with
// different states.
func Play(s *scenario.Scenario, o Options) (*Result, error) {
	if why := Unplayable(s); len(why) > 0 {
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
	random  *random
	faults  *faults
	clients *clients
	servers *servers
	// requests builds the messages of operators and clients. operator performs the
	// operations. Neither is nil.
	requests *setting.Requests
	operator *operator
	// Until the end of the play, only applied uses witness and result. Its calls never overlap.
	witness *witness.Witness
	result  Result
}

func newPlayer(s *scenario.Scenario, o Options) (*player, error) {
	config, err := setting.Drainer(s.Drainer)
	if err != nil {
		return nil, err
	}
	r := newRandom(s.Seed)
	p := &player{
		scenario: s, options: o, began: time.Now(), random: r, faults: newFaults(r),
		witness: witness.New(sim.WitnessOptions(config.Policy)),
	}
	p.requests = &setting.Requests{
		Truth: func() *statestore.Snapshot { return p.servers.newestState() },
		Races: func() bool { return false },
		Now:   time.Now, Clock: time.Now, NewEvalID: p.ids.eval, NewDrainID: p.ids.drain,
	}
	p.operator = newOperator(p)
	if p.clients, err = newClients(p); err != nil {
		return nil, err
	}
	p.servers, err = newServers(p, config)
	return p, err
}

// play runs the scenario from its start to its end.
func (p *player) play() error {
	if err := p.servers.start(); err != nil {
		return err
	}
	stopClients := p.clients.start()
	go p.operator.run()
	time.Sleep(time.Until(p.began.Add(p.options.For)) + afterEnd)
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

// afterEnd is extra time, so that events at the end of the play still run.
const afterEnd = time.Millisecond

// applied is called with every entry once, in the order of the log.
func (p *player) applied(a shims.Applied) {
	p.result.Entries++
	if m, is := a.Response.(shims.MarksApplied); is {
		p.result.Marks += len(m.Accepted)
	}
	p.witness.Observe(applied.Entry(a))
	p.runOperationFaults(a)
	p.loseLeaderMidBatch(a)
	if p.options.OnApply != nil {
		p.options.OnApply(time.Now(), a)
	}
}
