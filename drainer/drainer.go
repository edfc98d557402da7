package drainer

import (
	"fmt"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// clockCheck is how often a drainer that waits for a time looks at the wall
// clock: timers are monotonic, deadlines are not.
const clockCheck = 30 * time.Second

// NodeDrainer drains nodes while its server leads. Build it with
// [NewNodeDrainer], once in a server's life; call [NodeDrainer.SetEnabled] when
// leadership is gained, lost, or the state store is replaced.
//
// While enabled it owns one goroutine, which steps a [Term] and otherwise waits.
// All methods are safe for concurrent use.
type NodeDrainer struct {
	config NodeDrainerConfig

	mu sync.Mutex
	// run is the running term, or nil while disabled; guarded by mu.
	run *run
}

// run is a term and the goroutine that steps it.
type run struct {
	term   *Term
	wake   chan struct{} // capacity 1
	stop   chan struct{}
	exited chan struct{}
}

// NewNodeDrainer returns a drainer that is not enabled. A config that cannot
// work is refused, with the field named.
func NewNodeDrainer(c NodeDrainerConfig) (*NodeDrainer, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &NodeDrainer{config: c}, nil
}

// SetEnabled starts the drainer over a state, or stops it. Nothing of an earlier
// term survives: enabling an enabled drainer starts a new term. When SetEnabled
// returns, the earlier term's goroutine has ended and no write of it will begin;
// it does not wait for writes in flight, and is prompt.
//
// Enable it after the server's own leadership work has begun; the drainer waits
// for a barrier of its own before it plans. The state is not used once disabled
// and may be nil then. An error means that the drainer is disabled.
func (d *NodeDrainer) SetEnabled(enabled bool, state StateReader) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run != nil {
		d.run.end()
		d.run = nil
	}
	if !enabled {
		return nil
	}
	r := &run{wake: make(chan struct{}, 1), stop: make(chan struct{}), exited: make(chan struct{})}
	term, err := NewTerm(d.config, state, r.wake)
	if err != nil {
		return fmt.Errorf("enabling the node drainer: %w", err)
	}
	r.term = term
	d.run = r
	go r.loop()
	return nil
}

// end stops the goroutine and waits for it.
func (r *run) end() {
	close(r.stop)
	r.term.Close()
	<-r.exited
}

// loop only waits: for a wake-up, for the time the term asked for, or for the
// end.
func (r *run) loop() {
	defer close(r.exited)
	timer := time.NewTimer(clockCheck)
	defer timer.Stop()
	for {
		stepped := wallClock()
		wakeAt := r.step(stepped)
		for waiting := true; waiting; {
			select {
			case <-r.stop:
				return
			case <-r.wake:
				waiting = false
			case <-timerAt(timer, wakeAt):
				now := wallClock()
				waiting = now.Before(wakeAt) && !now.Before(stepped)
			}
		}
	}
}

// step steps the term, and tells how long that took.
func (r *run) step(now time.Time) (wakeAt time.Time) {
	began := time.Now()
	wakeAt = r.term.Step(now)
	if observe := r.term.config.OnStep; observe != nil {
		observe(time.Since(began))
	}
	return wakeAt
}

// timerAt sets the timer to a time, or to the next look at the clock if that is
// sooner, and returns its channel; nil, which is never ready, for no time.
func timerAt(timer *time.Timer, at time.Time) <-chan time.Time {
	if at.IsZero() {
		timer.Stop()
		return nil
	}
	timer.Reset(max(0, min(clockCheck, at.Sub(wallClock()))))
	return timer.C
}

// wallClock is the time without its monotonic part: deadlines are compared by
// the wall clock, wherever it jumps.
func wallClock() time.Time { return time.Now().Round(0) }

// Explain reports the drain of one node and why each allocation is still there.
// The error is [rules.ErrNotEnabled], [rules.ErrAbandoned] or [rules.ErrNotDraining].
func (d *NodeDrainer) Explain(id cluster.NodeID) (rules.Report, error) {
	term, err := d.term()
	if err != nil {
		return rules.Report{}, err
	}
	return term.Explain(id, wallClock())
}

// Status reports every running drain in numbers, by node. The error is
// [rules.ErrNotEnabled] or [rules.ErrAbandoned].
func (d *NodeDrainer) Status() ([]rules.Status, error) {
	term, err := d.term()
	if err != nil {
		return nil, err
	}
	return term.Status(wallClock()), nil
}

func (d *NodeDrainer) term() (*Term, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run == nil {
		return nil, rules.ErrNotEnabled
	}
	if d.run.term.Abandoned() {
		return nil, rules.ErrAbandoned
	}
	return d.run.term, nil
}
