package drainer

import (
	"fmt"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// clockCheck is how often a drainer that waits for a time reads the wall clock. Timers follow the
// monotonic clock, deadlines follow the wall clock.
const clockCheck = 30 * time.Second

// NodeDrainer drains nodes while its server leads. Build one for each server process, with
// [NewNodeDrainer]. Call [NodeDrainer.SetEnabled] when leadership is gained or lost, or the state
// store is replaced.
//
// While enabled it owns one goroutine, which steps a [Term] and otherwise waits. All methods are
// safe for concurrent use.
type NodeDrainer struct {
	config NodeDrainerConfig
	// now is the wall clock.
	now func() time.Time

	mu sync.Mutex
	// run is the running term, or nil while disabled; guarded by mu.
	run *run
}

// run is a term and the goroutine that steps it.
type run struct {
	term   *Term
	now    func() time.Time
	wake   chan struct{} // capacity 1
	stop   chan struct{}
	exited chan struct{}
}

// NewNodeDrainer returns a drainer that is not enabled. For a config that cannot work it returns an
// error that names the field.
func NewNodeDrainer(c NodeDrainerConfig) (*NodeDrainer, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &NodeDrainer{config: c, now: wallClock}, nil
}

// SetEnabled starts the drainer over a state, or stops it. Enabling an enabled drainer starts a new
// term, which keeps nothing of the earlier term. When SetEnabled returns, the goroutine of the
// earlier term has ended and will begin no write. SetEnabled does not wait for writes in flight, so
// it is quick.
//
// Enable it after the server's own leadership work has begun. The drainer waits for a barrier of
// its own before it plans. When enabled is false, the state is not used and may be nil. An error
// means that the drainer is disabled.
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
	r := &run{now: d.now, wake: make(chan struct{}, 1), stop: make(chan struct{}), exited: make(chan struct{})}
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

// loop steps the term after each wake-up and at the time that the last step returned, until stop is
// closed.
func (r *run) loop() {
	defer close(r.exited)
	timer := time.NewTimer(clockCheck)
	defer timer.Stop()
	for {
		stepped := r.now()
		wakeAt := r.step(stepped)
		for waiting := true; waiting; {
			select {
			case <-r.stop:
				return
			case <-r.wake:
				waiting = false
			case <-timerAt(timer, wakeAt, r.now()):
				now := r.now()
				waiting = now.Before(wakeAt) && !now.Before(stepped)
			}
		}
	}
}

// step steps the term, and reports the duration to OnStep.
func (r *run) step(now time.Time) (wakeAt time.Time) {
	began := time.Now()
	wakeAt = r.term.Step(now)
	if observe := r.term.config.OnStep; observe != nil {
		observe(time.Since(began))
	}
	return wakeAt
}

// timerAt sets the timer to a time, or to the next clock check if that is sooner, and returns its
// channel. For the zero time it returns nil, which is never ready.
func timerAt(timer *time.Timer, at, now time.Time) <-chan time.Time {
	if at.IsZero() {
		timer.Stop()
		return nil
	}
	timer.Reset(max(0, min(clockCheck, at.Sub(now))))
	return timer.C
}

// wallClock is the time without its monotonic part. Deadlines are compared by the wall clock,
// even when it jumps.
func wallClock() time.Time { return time.Now().Round(0) }

// Explain reports the drain of one node and why each allocation is still there.
// The error is [rules.ErrNotEnabled], [rules.ErrAbandoned] or [rules.ErrNotDraining].
func (d *NodeDrainer) Explain(id cluster.NodeID) (rules.Report, error) {
	term, err := d.term()
	if err != nil {
		return rules.Report{}, err
	}
	return term.Explain(id, d.now())
}

// Status reports every running drain in numbers, by node. The error is
// [rules.ErrNotEnabled] or [rules.ErrAbandoned].
func (d *NodeDrainer) Status() ([]rules.Status, error) {
	term, err := d.term()
	if err != nil {
		return nil, err
	}
	return term.Status(d.now()), nil
}

func (d *NodeDrainer) term() (*Term, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run == nil {
		return nil, rules.ErrNotEnabled
	}
	if d.run.term.isAbandoned() {
		return nil, rules.ErrAbandoned
	}
	return d.run.term, nil
}
