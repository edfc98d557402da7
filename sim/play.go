package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Options are how a scenario is played. The zero value of each is its default.
type Options struct {
	// Tell has the story and the end told.
	Tell bool
	// Everything has the story tell of plans and reports too.
	Everything bool
	// Watch is called with the world when what it begins with is there, and before
	// anything happens, to observe it; or nil.
	Watch func(*world.World)
	// Reports is called with what the leader's drainer says of each draining node,
	// wherever it is asked; or nil.
	Reports func([]rules.Report)
	// Thorough has the drainer asked at every quiet point, and not only where enough
	// has changed.
	Thorough bool
	// Quiet is called at every quiet point, when all who judge have been told of it;
	// or nil.
	Quiet func(*world.World)
	// Reader is how the drainers read a store; nil is the store's own reader.
	Reader func(*statestore.Store) drainer.StateReader
	// Stop is asked whenever the time is about to move on, and ends the run if it returns an
	// error, which [Play] then wraps: the Err of a context is one. Nil never stops.
	Stop func() error
	// MaxSteps is how many steps a scenario may take, for one that would go on for ever to
	// end. Zero is [DefaultMaxSteps].
	MaxSteps int
}

// Defaults of [Options].
const (
	DefaultMaxSteps = 2_000_000
	// DefaultFor is how long a scenario lasts at most that ends when nothing is left
	// to be done.
	DefaultFor = 4 * time.Hour
)

// Result is what came of a scenario.
type Result struct {
	// Hash is of every step and every entry: equal for equal scenarios.
	Hash uint64
	// Steps and Entries count them; Lasted is how much virtual time passed, Busy how
	// much of it while a node drained.
	Steps, Entries int
	Lasted, Busy   time.Duration
	// Idle says that nothing was left to be done.
	Idle bool
	// Calm says that there was a time from which on no fault was on, so that drains had
	// to end within their bounds.
	Calm bool
	// Violations are the guarantees that were broken, in order.
	Violations []invariant.Violation
	// Vain are the events that nothing has come of, in the order of the scenario, but for
	// those that are meant even so.
	Vain []Vain
	// Counters are what the judge counted.
	Counters invariant.Counters
	// Story and End are what was told, if it was asked for. Lowest is the last lines of
	// End: the lowest healthy counts, which depend on when things went wrong.
	Story, End, Lowest string
}

// Play plays a scenario. An error says that it could not be played, or not to its end: one
// that wraps [world.ErrTooManySteps] says that it takes more than [Options].MaxSteps, and on
// what they were spent. What is wrong with how it went is in the result, be it that the
// drainer goes round in circles.
func Play(s *scenario.Scenario, o Options) (*Result, error) {
	if o.MaxSteps == 0 {
		o.MaxSteps = DefaultMaxSteps
	}
	p := &player{scenario: s, options: o, clients: setting.NewClients(s.Clients), effects: newEffects(s)}
	if err := p.build(); err != nil {
		return nil, fmt.Errorf("setting up %s: %w", s.Name, err)
	}
	if err := p.play(); err != nil {
		return nil, fmt.Errorf("playing %s: %w", s.Name, err)
	}
	return p.result, nil
}

// player plays one scenario, once.
type player struct {
	scenario *scenario.Scenario
	options  Options
	config   drainer.NodeDrainerConfig
	world    *world.World
	operator *setting.Operator // never nil once it is built
	clients  *setting.Clients  // never nil
	start    time.Time
	judging  *judging // never nil once it is built
	// teller tells the story, or nil.
	teller *teller
	// busy is how long nodes have drained, drainedAt until when that is counted, and
	// drains says that one drains since then.
	busy      time.Duration
	drainedAt time.Time
	drains    bool
	// countedAt is the index of the state that drains is of.
	countedAt uint64
	// troubles is how many of the events that make trouble have yet to happen.
	troubles int
	// begins is how many of the events have yet to happen that may begin a drain, drainsBy
	// when something was last known by which a node drains or may.
	begins   int
	drainsBy time.Time
	// calmed says that the judge was told that all is calm.
	calmed bool
	// effects are what has come of each event.
	effects effects
	result  *Result
}

// build builds the world and what it begins with.
func (p *player) build() error {
	c := p.scenario.Cluster
	var err error
	if p.config, err = setting.Drainer(p.scenario.Drainer); err != nil {
		return err
	}
	p.world, err = world.New(world.Options{
		Seed: p.scenario.Seed, Servers: c.Servers, Views: !c.Replicas,
		Commit: c.Commit, Establish: c.Establish, Wake: c.Wake, Schedule: c.Schedule, Late: c.Late,
		Gather:  c.Gather,
		Drainer: p.config, Reader: p.options.Reader, Client: p.behaviour, MaxSteps: p.options.MaxSteps,
	})
	if err != nil {
		return err
	}
	p.start, p.operator = p.world.Now(), operates(p.scenario, p.world, &p.effects)
	return p.begin()
}

// behaviour is how an allocation fares. Each has a stream of its own: what is drawn
// for one shifts no other.
func (p *player) behaviour(a *cluster.Allocation) world.Behaviour {
	if p.scenario.Seed == 0 {
		return p.clients.Behaviour(a, nil)
	}
	r := world.Stream(p.scenario.Seed, "client/"+a.Name+"@"+string(a.NodeID))
	return p.clients.Behaviour(a, r)
}

// play has everything happen.
func (p *player) play() error {
	p.judging = judged(p)
	if p.options.Tell {
		p.teller = newTeller(p)
	}
	if p.options.Watch != nil {
		p.options.Watch(p.world)
	}
	p.drainsBy = p.start
	p.schedule()
	p.world.OnQuiet(p.quiet)
	p.world.OnStill(p.still)
	limit := p.scenario.Run.For
	if limit == 0 {
		limit = DefaultFor
	}
	idle, err := p.world.Run(p.start.Add(limit))
	limited := errors.Is(err, world.ErrTooManySteps)
	if err != nil && !limited && !errors.Is(err, errDrained) {
		return err
	}
	p.result = &Result{
		Hash: p.world.Hash(), Steps: p.world.Steps(), Entries: p.world.Entries(),
		Lasted: p.world.Now().Sub(p.start), Busy: p.busy, Idle: idle, Calm: p.calmed,
	}
	violations, failed := p.judging.end(idle, p.start.Add(limit))
	if failed != nil {
		return failed
	}
	p.result.Violations = violations
	switch {
	case limited && p.world.InCircles():
		p.result.Violations = append(p.result.Violations, invariant.Violation{
			Guarantee: "G10", Check: "too many steps", At: p.world.Now(), Text: err.Error(),
		})
	case limited && len(violations) == 0: // nobody knows how it would have ended
		return err
	}
	p.result.Counters, p.result.Vain = p.judging.judge.Counters(), p.effects.vain()
	if p.teller != nil {
		p.teller.tell(p.result)
	}
	return nil
}

// quiet is called before the time moves on.
func (p *player) quiet() error {
	if p.options.Stop != nil {
		if err := p.options.Stop(); err != nil {
			return err
		}
	}
	p.countBusy()
	if !p.calmed && p.scenario.Run.Calm == 0 && p.troubles == 0 && !p.world.Troubled() {
		p.beCalm()
	}
	p.judging.quiet()
	if p.teller != nil {
		p.teller.quiet()
	}
	if p.options.Quiet != nil {
		p.options.Quiet(p.world)
	}
	return p.drained()
}

// still is called at the end of a long time in which nothing has happened.
func (p *player) still() error {
	p.judging.still()
	return nil
}

// countBusy counts the time since the last quiet point, if a node has drained.
func (p *player) countBusy() {
	now := p.world.Now()
	if p.drains {
		p.busy += now.Sub(p.drainedAt)
	}
	p.drainedAt = now
	truth := p.world.Truth()
	if truth.Index() == p.countedAt {
		return // nothing has changed
	}
	p.countedAt, p.drains = truth.Index(), false
	for range truth.DrainingNodes() {
		p.drains = true
		break
	}
}

// schedule has every event happen at its time. Those that come before one entry wait
// for it together.
func (p *player) schedule() {
	events := p.scenario.Events
	for i := 0; i < len(events); {
		batch := events[i : i+scenario.Together(events[i:])]
		i += len(batch)
		p.troubles += troubles(batch)
		p.begins += begins(batch)
		first := i - len(batch)
		p.world.At(p.start.Add(batch[0].At), func() error { return p.happen(first, batch) })
	}
	if calm := p.scenario.Run.Calm; calm > 0 {
		p.world.At(p.start.Add(calm), p.calm)
	}
}
