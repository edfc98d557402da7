package live

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// operator performs the scenario's operations at their times, as tasks of [servers.do].
type operator struct {
	*player
	// operations performs the operations on jobs, allocations and nodes; never nil.
	operations    *setting.Operator
	stop, stopped chan struct{}
	// undos end the effects of faults.
	undos []*undo
}

// newOperator returns the operator of a player. The player gets its servers before the operator
// runs.
func newOperator(p *player) *operator {
	o := &operator{player: p, stop: make(chan struct{}), stopped: make(chan struct{})}
	o.operations = &setting.Operator{
		Requests: p.requests, Scenario: p.scenario, NewAllocID: p.ids.alloc, Ask: p.ask,
		Place: func(*cluster.Job, []*cluster.Allocation) error {
			return errors.New("only raft's log can change the state")
		},
	}
	return o
}

// run performs every event at its time, until the play ends. Events of one time run in the order
// of the file. If all faults end at that time, they end after these events.
func (o *operator) run() {
	defer close(o.stopped)
	events := slices.Clone(o.scenario.Events)
	slices.SortStableFunc(events, func(a, b scenario.Event) int { return cmp.Compare(a.At, b.At) })
	calm := o.scenario.Run.Calm
	for i := 0; i < len(events); {
		together := events[i : i+scenario.BeforeOneEntry(events[i:])]
		i += len(together)
		if calm > 0 && calm < together[0].At {
			o.at(calm, o.endFaults)
			calm = 0
		}
		if !o.at(together[0].At, func() error { return o.doAll(together) }) {
			return
		}
	}
	if calm > 0 {
		o.at(calm, o.endFaults)
	}
}

// at waits until a time and then adds a task. It returns false if the play ends first.
func (o *operator) at(at time.Duration, do func() error) bool {
	select {
	case <-o.stop:
		return false
	case <-time.After(time.Until(o.began.Add(at))):
		o.servers.do(do)
		return true
	}
}

// later adds a task after a delay.
func (o *operator) later(d time.Duration, do func()) {
	time.AfterFunc(d, func() { o.servers.do(func() error { do(); return nil }) })
}

// doAll performs the operations of simultaneous events.
func (o *operator) doAll(events []scenario.Event) error {
	for _, e := range events {
		if err := o.do(e.Op); err != nil {
			return fmt.Errorf("line %d: %w", e.Line, err)
		}
	}
	return nil
}

// do performs one operation.
func (o *operator) do(op scenario.Op) error {
	if done, err := o.operations.Do(op); done {
		return err
	}
	switch op := op.(type) {
	case *scenario.Fault:
		return o.arm(op)
	case *scenario.Elect:
		return o.servers.depose(*op)
	case *scenario.Restore:
		return o.servers.restore()
	case *scenario.Pause:
		o.servers.pause(op.Server, op.For)
		return nil
	}
	return fmt.Errorf("%T cannot be played", op)
}

// arm arms a fault. A fault of a node or of the term strikes at once.
func (o *operator) arm(f *scenario.Fault) error {
	if err := o.faults.arm(*f); err != nil {
		return err
	}
	switch f.Name {
	case scenario.NodeCrash, scenario.NodeDisconnect:
		o.loseNode(f)
	case scenario.SchedUnplaceable:
		o.makeAllIneligible(f)
	case scenario.LeaderFlap:
		o.servers.flap()
	}
	return nil
}
