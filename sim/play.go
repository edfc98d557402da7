package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Options configure a play of a scenario. The zero value of each is its default.
type Options struct {
	// Story records the story and the end of the run; see [Result].
	Story bool
	// Everything adds plans and reports of clients to the story.
	Everything bool
	// Watch is called with the world after its setup and before its first step, for
	// example to observe it; or nil.
	Watch func(*world.World)
	// Reports is called with the reports of the leader's drainer, at every quiet point
	// that is judged; or nil.
	Reports func([]rules.Report)
	// Thorough judges every quiet point, and not only those with enough changes.
	Thorough bool
	// Quiet is called at every quiet point, after it was judged; or nil.
	Quiet func(*world.World)
	// Reader returns a drainer's reader of a store; nil is the store's own reader.
	Reader func(*statestore.Store) drainer.StateReader
	// Stop is called before the time moves on. If it returns an error, for example that of
	// a context, the run ends and [Play] wraps the error. Nil never stops.
	Stop func() error
	// MaxSteps is the largest number of steps of a run. Zero is [DefaultMaxSteps].
	MaxSteps int
}

// Defaults of [Options] and of scenarios.
const (
	DefaultMaxSteps = 2_000_000
	// DefaultFor is the longest time of a scenario that sets none.
	DefaultFor = 4 * time.Hour
)

// Result is the result of a run.
type Result struct {
	// Hash is the hash of all steps and entries. Equal scenarios have equal hashes.
	Hash uint64
	// Steps and Entries count them. Lasted is the virtual time of the run, Busy the part
	// of it in which a node drained.
	Steps, Entries int
	Lasted, Busy   time.Duration
	// Idle: no event was left.
	Idle bool
	// FaultsEnded: all faults ended before the end of the run. From then on drains
	// had to end within their bounds.
	FaultsEnded bool
	// Violations are the violated guarantees, in order.
	Violations []invariant.Violation
	// NoEffect are the events without an effect, in the order of the scenario, except those
	// that the scenario marks with maybe.
	NoEffect []NoEffect
	// Unhealthy are the groups of services with fewer healthy allocations at the end than their
	// count, in words: first those below their limit. It is not a failure of the drainer.
	Unhealthy []string
	// Stills counts the judged silences on the servers with a drainer that was up to date.
	Stills int
	// Story and End are set if [Options].Story is. Lowest is the last lines of End: the
	// lowest healthy counts, which depend on the times of faults.
	Story, End, Lowest string
}

// Play plays a scenario. It returns an error if the scenario cannot be played to its end. The
// error wraps [world.ErrTooManySteps] if the run takes more than [Options].MaxSteps steps. If
// those steps are the drainer's own, there is no error but a violation in the result.
func Play(s *scenario.Scenario, o Options) (*Result, error) {
	if o.MaxSteps == 0 {
		o.MaxSteps = DefaultMaxSteps
	}
	p := &player{scenario: s, options: o, clients: setting.NewClients(s.Clients), effects: newEffects(s), nodes: &nodes{}}
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
	clients  *setting.Clients // never nil
	effects  effects
	nodes    *nodes
	// These are never nil once the world is built.
	world   *world.World
	judging *judging
	start   time.Time
	story   *story // or nil
	// busy is the time in which a node drained, counted until busyUntil. draining means
	// that a node drains since then, in the state of the index drainingAt.
	busy       time.Duration
	busyUntil  time.Time
	draining   bool
	drainingAt uint64
	// faultEvents counts the events that are still to come and are faults.
	faultEvents int
	// drainEvents counts the events that are still to come and may start a drain. drainsBy
	// is the last time at which a node drained, or could start to.
	drainEvents int
	drainsBy    time.Time
	// faultsEnded: the judge counts all faults as ended, since faultsEndedAt.
	faultsEnded   bool
	faultsEndedAt time.Time
	result        *Result
}

// build builds the world.
func (p *player) build() error {
	c := p.scenario.Cluster
	var err error
	p.config = p.scenario.Drainer
	p.world, err = world.New(world.Options{
		Seed: p.scenario.Seed, Servers: c.Servers, Views: !c.Replicas,
		Commit: c.Commit, Establish: c.Establish, Wake: c.Wake, Schedule: c.Schedule, Late: c.Late,
		Gather: c.Gather, Collect: c.Collect,
		RealClients: c.Clients == scenario.RealClients, Containers: p.scenario.HasContainers, Storage: p.storage(), NodeObserver: p.nodes.judge,
		Writes: func(a *cluster.Allocation) int64 { return setting.Writes(p.scenario, a) }, Retention: c.Retention,
		Drainer: p.config, Reader: p.options.Reader, Client: p.behaviour, MaxSteps: p.options.MaxSteps,
	})
	if err != nil {
		return err
	}
	p.start = p.world.Now()
	return p.setup()
}

// storage are the storage plugins of the scenario, or nil.
func (p *player) storage() *world.Storage {
	if !p.scenario.UsesVolumes() {
		return nil
	}
	return &world.Storage{
		HoldLimit: p.scenario.Cluster.Hold,
		Plugin:    func(id cluster.PluginID) setting.Storage { return setting.StorageOf(p.scenario, id) },
	}
}

// behaviour is the behaviour of an allocation. Each allocation has its own stream: a draw
// for one changes no other.
func (p *player) behaviour(a *cluster.Allocation) world.Behaviour {
	if p.scenario.Seed == 0 {
		return p.clients.Behaviour(a, nil)
	}
	r := world.Stream(p.scenario.Seed, "client/"+a.Name+"@"+string(a.NodeID))
	return p.clients.Behaviour(a, r)
}

// play runs the world and sets the result.
func (p *player) play() error {
	p.judging = newJudging(p)
	if p.options.Story {
		p.story = newStory(p)
	}
	if p.options.Watch != nil {
		p.options.Watch(p.world)
	}
	p.drainsBy = p.start
	p.schedule()
	p.world.OnQuiet(p.quiet)
	p.world.OnStill(func() error { p.judging.still(); return nil })
	p.world.OnSilence(func() error { p.judging.silence(); return nil })
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
		Hash: p.world.Hash(), Steps: p.world.Steps(), Entries: p.world.Log.Len(),
		Lasted: p.world.Now().Sub(p.start), Busy: p.busy, Idle: idle, FaultsEnded: p.faultsEnded,
	}
	violations, failed := p.judging.end(idle, p.start.Add(limit))
	if failed != nil {
		return failed
	}
	p.result.Violations = violations
	switch {
	case limited && p.world.Livelocked():
		p.result.Violations = append(p.result.Violations, invariant.Violation{
			Guarantee: "G10", Check: "too many steps", At: p.world.Now(), Text: err.Error(),
		})
	case limited && len(violations) == 0: // the end of the run is unknown
		return err
	}
	p.result.Stills, p.result.NoEffect = p.judging.judge.Stills(), p.effects.none()
	p.result.Unhealthy = unhealthy(p.world.Truth())
	if p.story != nil {
		p.story.write(p.result)
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
	if !p.faultsEnded && p.scenario.Run.Calm == 0 && p.faultEvents == 0 && !p.world.Faults.Active() {
		p.noteFaultsEnded()
	}
	p.judging.quiet()
	if p.story != nil {
		p.story.transcript.Reasons()
	}
	if p.options.Quiet != nil {
		p.options.Quiet(p.world)
	}
	return p.drained()
}

// countBusy adds the time since the last quiet point to busy, if a node drained in it.
func (p *player) countBusy() {
	now := p.world.Now()
	if p.draining {
		p.busy += now.Sub(p.busyUntil)
	}
	p.busyUntil = now
	truth := p.world.Truth()
	if truth.Index() == p.drainingAt {
		return
	}
	p.drainingAt, p.draining = truth.Index(), false
	for range truth.DrainView().DrainingNodes() {
		p.draining = true
		break
	}
}

// schedule queues every event. Events before the same entry are queued together.
func (p *player) schedule() {
	events := p.scenario.Events
	for i := 0; i < len(events); {
		first, batch := i, events[i:i+scenario.BeforeOneEntry(events[i:])]
		i += len(batch)
		p.faultEvents += faultEvents(batch)
		p.drainEvents += drainEvents(batch)
		p.world.At(p.start.Add(batch[0].At), func() error { return p.run(first, batch) })
	}
	if calm := p.scenario.Run.Calm; calm > 0 {
		p.world.At(p.start.Add(calm), p.endFaults)
	}
}

// endFaults ends all faults, at the time that the scenario sets for it with calm. A scenario
// without that time ends no faults: the judge gets the time at which they have ended by themselves.
func (p *player) endFaults() error {
	run := &p.scenario.Run
	out := world.CutOff{Nodes: run.CutNodes}
	for _, number := range run.CutServers {
		out.Servers = append(out.Servers, number-1)
	}
	if err := p.world.Faults.End(out); err != nil {
		return err
	}
	p.noteFaultsEnded()
	return nil
}

// noteFaultsEnded passes the end of all faults to the judge. From now on every drain must
// end within its bound.
func (p *player) noteFaultsEnded() {
	p.faultsEnded, p.faultsEndedAt = true, p.world.Now()
	p.judging.judge.Calm(p.world.Now())
}

// faultEvents counts the events that are faults or operations on servers. The faults of a
// run have not ended before the last of them. Requests of operators do not count: they
// change the bounds of drains, and the judge reads them.
func faultEvents(events []scenario.Event) int {
	n := 0
	for _, e := range events {
		switch e.Op.(type) {
		case *scenario.Fault, *scenario.Elect, *scenario.Pause, *scenario.Clock, *scenario.Restore, *scenario.Forget:
			n++
		}
	}
	return n
}
