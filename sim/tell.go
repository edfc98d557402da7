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
	config := p.config.Policy
	t := &teller{player: p, transcript: p.world.Record(), witness: witness.New(WitnessOptions(config))}
	t.transcript.Brief, t.transcript.Everything = p.scenario.Run.Brief, p.options.Everything
	p.world.OnApply(func(a world.Applied) { t.witness.Observe(applied.Entry(a)) })
	return t
}

// quiet notes why things wait.
func (t *teller) quiet() { t.transcript.Reasons() }

func (t *teller) story() string { return t.transcript.String() }

// end is the final facts, with the lowest healthy counts that a witness saw.
func (t *teller) end() string {
	lowest, err := Judged(t.witness, t.player.world.State())
	end := Ending(t.player.world, t.player.scenario.Run.Brief) + "\n" + lowest
	if err != nil {
		end += "\n" + err.Error()
	}
	return strings.TrimSpace(end)
}
