package sim

import (
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/witness"
	"github.com/seed-f9cf0b39/nodedrain/witness/applied"
)

// teller tells what happened in a world, for people and to the letter.
type teller struct {
	player     *player
	transcript *world.Transcript
	witness    *witness.Witness
}

func newTeller(p *player) *teller {
	t := &teller{player: p, transcript: p.world.Record(), witness: witness.New(WitnessOptions(p.config.Policy))}
	t.transcript.Brief, t.transcript.Everything = p.scenario.Run.Brief, p.options.Everything
	p.world.OnApply(func(a world.Applied) { t.witness.Observe(applied.Entry(a)) })
	return t
}

// quiet notes why things wait.
func (t *teller) quiet() { t.transcript.Reasons() }

// tell tells the story, and the final facts with the lowest healthy counts that a
// witness saw. What the witness found is told at the end.
func (t *teller) tell(r *Result) {
	lowest, err := witnessed(t.witness, t.player.world.State())
	r.Story, r.Lowest = t.transcript.String(), lowest
	r.End = ending(t.player.world, t.player.scenario.Run.Brief) + "\n" + lowest
	if err != nil {
		r.End += "\n" + err.Error()
	}
	r.End = strings.TrimSpace(r.End)
}
