package world

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// shortestTerm is how long a term lasts at least that flapping ends: at one time
// there would be no end of terms.
const shortestTerm = 10 * time.Millisecond

// flap ends a term that begins while the leader is to flap.
func (w *World) flap() {
	if delay, strikes := w.strike(scenario.LeaderFlap, target{}); strikes {
		w.loseLeaderIn(max(delay, shortestTerm), scenario.LeaderFlap)
	}
}

// mayLoseLeader ends the term before the answer to a write, if that is what a fault
// wants.
func (w *World) mayLoseLeader(p *proposal) {
	if p.Source != FromDrainer || p.Message == nil {
		return
	}
	if delay, strikes := w.strike(scenario.LeaderLoseMidBatch, target{}); strikes {
		p.deposes = true
		w.loseLeaderIn(delay, scenario.LeaderLoseMidBatch)
	}
}

// loseLeaderIn ends the term after a while, if it has not ended by itself.
func (w *World) loseLeaderIn(d time.Duration, why scenario.FaultName) {
	term := w.terms
	w.unlessCalm(d, func() error {
		if w.terms != term {
			return nil
		}
		return w.loseLeader(why)
	})
}

// loseLeader ends the term. It is drawn whether all that was in flight survives, or
// how much of it.
func (w *World) loseLeader(why scenario.FaultName) error {
	chance := w.streams.of("survive/" + string(why))
	e := Election{Next: -1, Lost: chance.IntN(2) == 1}
	if inFlight := w.log.inFlight(); e.Lost && inFlight > 1 {
		e.Kept = chance.IntN(inFlight)
	}
	return w.Depose(e)
}
