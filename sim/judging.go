package sim

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// freshEvery is at which quiet points a fresh drainer is asked what it would do: one
// that has to be built looks at everything.
const freshEvery = 16

// judging has a judge see everything that happens in a world.
type judging struct {
	player *player
	world  *world.World
	judge  *invariant.Judge
	// quietPoints counts those at which the drainers were asked why.
	quietPoints int
	// askAt is the index of the state from which on they are asked again.
	askAt uint64
}

// explainedAtOnce is how many allocations are explained for each entry: to ask why of
// all of them at every entry would cost more than all the rest.
const explainedAtOnce = 4

// judged begins to judge a world.
func judged(p *player) *judging {
	j := &judging{player: p, world: p.world, judge: invariant.New(p.judgeOptions())}
	w := p.world
	j.judge.Began(w.Now(), w.Leader(), w.Term())
	w.OnClock(func(term int, ahead time.Duration) { j.judge.ClockSet(w.Now(), term, ahead) })
	w.OnApply(func(a world.Applied) { j.judge.Applied(w.Now(), a) })
	if p.scenario.Cluster.Replicas {
		w.OnReplica(func(server int, a world.Applied) {
			if a.Message != nil {
				j.judge.Replica(w.Now(), server, a)
			}
		})
	}
	w.OnElect(func(server int) { j.judge.Began(w.Now(), server, w.Term()) })
	w.OnEnd(func(term int) { j.judge.Ended(w.Now(), term) })
	w.OnPropose(j.proposed)
	w.OnAnswer(func(term, n int, a shims.Answer) { j.judge.Answered(w.Now(), term, n, a) })
	w.OnDrainer(func(s world.DrainerStep) {
		j.judge.Stepped(w.Now(), invariant.Step{
			Term: s.Term, Clock: s.At, Woken: s.Woken, View: s.View, Looks: s.Looks, WakeAt: s.WakeAt, Held: s.Held,
		})
	})
	w.OnRestore(func(taken, restored *statestore.Snapshot) { j.judge.Restored(w.Now(), taken, restored) })
	return j
}

// judgeOptions are what the scenario has its drainers promise, and what lies between
// them and the state.
func (p *player) judgeOptions() invariant.Options {
	c, d := p.scenario.Cluster, p.config
	return invariant.Options{
		Policy: d.Policy, MaxIDs: d.MaxIDsPerEntry, MaxBytes: d.MaxBytesPerEntry, MaxInFlight: d.MaxInFlight,
		QueriesPerSecond: d.StateQueriesPerSecond, MinInterval: d.MinWriteInterval, Coalesce: d.DeadlineCoalesce,
		RetryMax: d.Retry.Max, Digests: c.Replicas,
		Bounds: invariant.Bounds{
			Settle: settle(p.scenario), Write: c.Commit.Max, Wake: c.Wake.Max + c.Schedule.Max,
		},
	}
}

// settle is how long what faults have begun goes on after their end: the longest that
// anything they do lasts, a new leader's first step, and a look at a clock.
func settle(s *scenario.Scenario) time.Duration {
	longest := max(s.Cluster.Late.Max, scenario.DefaultLate)
	for _, e := range s.Events {
		switch op := e.Op.(type) {
		case *scenario.Fault:
			longest = max(longest, op.Delay.Max)
		case *scenario.Elect:
			longest = max(longest, op.Believes)
		case *scenario.Pause:
			longest = max(longest, op.For)
		}
	}
	return longest + s.Cluster.Establish.Max + time.Minute
}

func (j *judging) proposed(p world.Proposal) {
	write := invariant.Write{Term: p.Term, N: p.N, Message: p.Message, Bytes: p.Bytes}
	if p.Taken {
		j.judge.Proposed(j.world.Now(), write)
	} else {
		j.judge.NotTaken(j.world.Now(), write)
	}
}

// quiet has the drainer asked why, where enough has changed.
func (j *judging) quiet() {
	w := j.world
	state := w.State()
	if state.Index() < j.askAt && !j.player.options.Thorough {
		return
	}
	j.quietPoints++
	q := invariant.Quiet{Term: w.Term(), Clock: w.Clock(), State: state, Reports: w.Reports(), Truth: w.Unseen()}
	if j.player.options.Reports != nil {
		j.player.options.Reports(q.Reports)
	}
	explained := 0
	for _, r := range q.Reports {
		explained += len(r.Allocs)
	}
	j.askAt = state.Index() + 1 + uint64(explained/explainedAtOnce)
	if j.quietPoints%freshEvery == 0 {
		q.Fresh = j.fresh()
	}
	j.judge.Quiet(w.Now(), q)
}

// still has it judged that nothing has happened for long.
func (j *judging) still() {
	w := j.world
	j.judge.Still(w.Now(), invariant.Quiet{Term: w.Term(), Clock: w.Clock(), State: w.State(), Truth: w.Unseen()})
}

// fresh is what a drainer wants that knows nothing but the state.
func (j *judging) fresh() *invariant.Wants {
	raft := &listener{index: j.world.State().Index()}
	config := j.player.config
	config.Raft = raft
	config.NewEvalID = func() cluster.EvalID { return "fresh" }
	term, err := drainer.NewTerm(config, j.world.Reader(), make(chan struct{}, 1))
	if err != nil {
		return nil
	}
	defer term.Close()
	now := j.world.Clock()
	for range 3 { // the barrier, what it allows, and what that looks at once more
		term.Step(now)
	}
	return &raft.wants
}

// listener is a raft that takes what it is given and says nothing, but that the
// barrier was applied.
type listener struct {
	index uint64
	wants invariant.Wants
}

var _ drainer.RaftApplier = (*listener)(nil)

func (l *listener) AllocUpdateDesiredTransition(m *rules.Marks, _ drainer.Reply) bool {
	l.wants.Marks = append(l.wants.Marks, m.Marks...)
	l.wants.Reevaluate = append(l.wants.Reevaluate, m.Reevaluate...)
	return true
}

func (l *listener) NodesDrainComplete(c *rules.Completions, _ drainer.Reply) bool {
	l.wants.Completions = append(l.wants.Completions, c.Completions...)
	return true
}

func (l *listener) Barrier(reply drainer.Reply) bool {
	reply(drainer.Answer{Outcome: raftwrite.Applied, Index: l.index})
	return true
}

// end judges how everything ended. Where nothing is left to be done all stays as it is
// until the limit, and what has to end by then has not.
func (j *judging) end(idle bool, limit time.Time) ([]invariant.Violation, error) {
	states, err := j.world.States()
	if err != nil {
		return nil, err
	}
	at := j.world.Now()
	if idle && limit.After(at) {
		at = limit
	}
	j.judge.End(at, states...)
	return j.judge.Violations(), nil
}
