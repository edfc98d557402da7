package sim

import (
	"errors"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// A scenario that says so ends when its last drain has, and nothing that is left to happen
// begins another: all that follows is the scheduler's and the clients'.

// afterDrains is how long a run goes on then, to show what the drainer does with nothing
// to drain.
const afterDrains = 15 * time.Second

// errDrained ends such a run.
var errDrained = errors.New("all drains have ended")

// drained returns errDrained if the run is to end with its last drain, and has to by now.
func (p *player) drained() error {
	if !p.scenario.Run.Drained {
		return nil
	}
	now := p.world.Now()
	if p.drains || p.begins > 0 || p.world.Drains() {
		p.drainsBy = now
	}
	if now.Sub(p.drainsBy) < afterDrains {
		return nil
	}
	return errDrained
}

// begins counts the events that may begin a drain. One that comes before an entry of a
// drainer does only while there are drains.
func begins(events []scenario.Event) int {
	n := 0
	for _, e := range events {
		if _, drains := e.Op.(*scenario.Drain); drains && e.Before != scenario.Marks && e.Before != scenario.Completions {
			n++
		}
	}
	return n
}
