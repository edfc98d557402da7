package sim

import "github.com/seed-f9cf0b39/nodedrain/sim/scenario"

// A run is calm from the time on that its scenario names for it, when all faults are
// ended; or, if it names none, by itself, as soon as no fault is on and none will be any
// more. From then on every drain has a bound. Nothing is ended in a run that is calm by
// itself: there is nothing to be ended.

// calm ends all faults, at the time that the scenario has for it.
func (p *player) calm() error {
	if err := p.world.Calm(); err != nil {
		return err
	}
	p.beCalm()
	return nil
}

// beCalm has drains be held to their bounds from now on.
func (p *player) beCalm() {
	p.calmed = true
	p.judging.judge.Calm(p.world.Now())
}

// troubles counts the events that are faults, or are done to servers: until the last of
// them has happened no run is calm by itself. What operators do lengthens a drain only
// where its bound is counted again.
func troubles(events []scenario.Event) int {
	n := 0
	for _, e := range events {
		switch e.Op.(type) {
		case *scenario.Fault, *scenario.Elect, *scenario.Pause, *scenario.Clock, *scenario.Restore, *scenario.Forget:
			n++
		}
	}
	return n
}
