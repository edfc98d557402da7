package sim

import (
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/witness"
	"github.com/seed-f9cf0b39/nodedrain/witness/applied"
)

// story records the story of a run, and its final facts.
type story struct {
	player     *player
	transcript *world.Transcript
	witness    *witness.Witness
}

func newStory(p *player) *story {
	s := &story{player: p, transcript: world.NewTranscript(p.world), witness: witness.New(WitnessOptions(p.config.Policy))}
	s.transcript.Brief, s.transcript.Everything = p.scenario.Run.Brief, p.options.Everything
	p.world.Observe(world.Observer{Applied: func(a world.Applied) { s.witness.Observe(applied.Entry(a)) }})
	return s
}

// write writes the story and the final facts into the result: the outcomes, the lowest
// healthy counts of the witness, and the witness's findings.
func (s *story) write(r *Result) {
	lowest, err := witnessed(s.witness, s.player.world.State())
	r.Story, r.Lowest = s.transcript.String(), lowest
	r.End = ending(s.player.world.State(), s.player.scenario.Run.Brief) + "\n" + lowest
	if err != nil {
		r.End += "\n" + err.Error()
	}
	r.End = strings.TrimSpace(r.End)
}
