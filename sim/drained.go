package sim

import (
	"errors"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// A scenario may end with its drains. Its run ends some time after the last
// drain has ended and no event, request or fault can start another.

// afterDrains is how long a run continues after its last drain. It shows what the drainer
// does without drains.
const afterDrains = 15 * time.Second

// errDrained ends a run after its last drain.
var errDrained = errors.New("all drains have ended")

// drained returns errDrained if the run ends with its drains and they are over.
func (p *player) drained() error {
	if !p.scenario.Run.Drained {
		return nil
	}
	now := p.world.Now()
	if p.draining || p.drainEvents > 0 || p.world.DrainMayStart() {
		p.drainsBy = now
	}
	if now.Sub(p.drainsBy) < afterDrains {
		return nil
	}
	return errDrained
}

// drainEvents counts the events that may start a drain. Events before an entry of the
// drainer do not count: there is such an entry only while there are drains.
func drainEvents(events []scenario.Event) int {
	n := 0
	for _, e := range events {
		if _, drains := e.Op.(*scenario.Drain); drains && e.Before != scenario.Marks && e.Before != scenario.Completions {
			n++
		}
	}
	return n
}
