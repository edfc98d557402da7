package sim

import (
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// A run is calm from the time on that its scenario names for it, when all faults are
// ended; or, if it names none, by itself, as soon as no fault is on and none will be any
// more. From then on every drain has a bound. Nothing is ended in a run that is calm by
// itself: there is nothing to be ended.

// calm ends all faults but for what stays broken outside of the core, at the time that
// the scenario has for it.
func (p *player) calm() error {
	run := &p.scenario.Run
	outside := world.Outside{Nodes: run.CutNodes}
	for _, number := range run.CutServers {
		outside.Servers = append(outside.Servers, number-1)
	}
	if err := p.world.Calm(outside); err != nil {
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
