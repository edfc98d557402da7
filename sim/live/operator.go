package live

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// operator does what a scenario says is done, at its times. All that it does is done
// one after the other, by [servers].do.
type operator struct {
	*player
	// hands do what is done to jobs, allocations and nodes; never nil.
	hands         *setting.Operator
	stop, stopped chan struct{}
	// undos are what is to be undone when the faults end.
	undos []*undo
}

// newOperator returns the operator of a player, who has servers when anything is done.
func newOperator(p *player) *operator {
	o := &operator{player: p, stop: make(chan struct{}), stopped: make(chan struct{})}
	o.hands = &setting.Operator{
		Requests: p.requests, Scenario: p.scenario, NewAllocID: p.ids.alloc, Ask: p.ask,
		Place: func(j *cluster.Job, allocs []*cluster.Allocation) error {
			now, landed := time.Now(), stake{job: j, allocs: allocs}
			return p.servers.place(func(txn *statestore.Txn) error { return landed.place(txn, now) })
		},
	}
	return o
}

// run has everything happen at its time, on a goroutine of its own. What happens at one
// time happens in the order of the file, and calm comes last.
func (o *operator) run() {
	defer close(o.stopped)
	events := slices.Clone(o.scenario.Events)
	slices.SortStableFunc(events, func(a, b scenario.Event) int { return cmp.Compare(a.At, b.At) })
	calm := o.scenario.Run.Calm
	for i := 0; i < len(events); {
		batch := events[i : i+scenario.Together(events[i:])]
		i += len(batch)
		if calm > 0 && calm < batch[0].At {
			o.at(calm, o.calm)
			calm = 0
		}
		if !o.at(batch[0].At, func() error { return o.happen(batch) }) {
			return
		}
	}
	if calm > 0 {
		o.at(calm, o.calm)
	}
}

// at waits for a time and has something done then. It returns false if the play ends
// before.
func (o *operator) at(at time.Duration, do func() error) bool {
	select {
	case <-o.stop:
		return false
	case <-time.After(time.Until(o.began.Add(at))):
		o.servers.do(do)
		return true
	}
}

// later has something done after a while.
func (o *operator) later(d time.Duration, do func()) {
	time.AfterFunc(d, func() { o.servers.do(func() error { do(); return nil }) })
}

// happen has events happen that happen together.
func (o *operator) happen(events []scenario.Event) error {
	all := func() error {
		for _, e := range events {
			if err := o.do(e.Op); err != nil {
				return fmt.Errorf("line %d: %w", e.Line, err)
			}
		}
		return nil
	}
	if kind := events[0].Before; kind != "" {
		return o.servers.before(kind, all)
	}
	return all()
}

// do does one thing.
func (o *operator) do(op scenario.Op) error {
	if done, err := o.hands.Do(op); done {
		return err
	}
	if f, is := op.(*scenario.Fault); is {
		return o.arm(f)
	}
	return o.doToServers(op)
}

func (o *operator) doToServers(op scenario.Op) error {
	switch op := op.(type) {
	case *scenario.Elect:
		return o.servers.depose(world.Election{Next: op.Server - 1, Lost: op.Lost, Believes: op.Believes})
	case *scenario.Pause:
		return o.servers.pause(op.Server, op.For)
	case *scenario.Restore:
		return o.servers.restore()
	case *scenario.Forget:
		return o.servers.forget()
	}
	return fmt.Errorf("%T cannot be done live", op)
}

// arm arms a fault. Those of nodes strike at once.
func (o *operator) arm(f *scenario.Fault) error {
	if err := o.faults.arm(*f); err != nil {
		return err
	}
	switch f.Name {
	case scenario.NodeCrash, scenario.NodeDisconnect:
		o.loseNode(f)
	case scenario.SchedUnplaceable:
		o.cordon(f)
	case scenario.LeaderFlap:
		return o.servers.flap()
	}
	return nil
}
