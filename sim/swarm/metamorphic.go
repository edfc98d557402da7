package swarm

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// isRetold reports whether a seed's steady story is told otherwise.
func (o Options) isRetold(seed uint64) bool {
	return o.Metamorphic > 0 && world.Stream(seed, "swarm/metamorphic").Float64() < o.Metamorphic
}

// Scenarios are what failed: the seed's scenario, or if its story failed when it was told
// otherwise, the steady story and the other one.
func (f *Failure) Scenarios() []*scenario.Scenario {
	s := Generate(f.Seed, f.Size)
	for _, r := range Relations() {
		if r.Name == f.Relation {
			steady := Steady(s)
			return []*scenario.Scenario{steady, r.Tell(steady)}
		}
	}
	return []*scenario.Scenario{s}
}

// relation is the one by which a seed's story is told otherwise.
func relation(seed uint64) Relation {
	return one(dice{world.Stream(seed, "swarm/relation")}, Relations()...)
}

// retell tells the steady story of a scenario as it is and otherwise: both have to keep
// the guarantees and to come to the same facts.
func (o Options) retell(s *scenario.Scenario, r Relation) *Failure {
	steady := Steady(s)
	want, failure := o.facts(steady)
	if failure == nil {
		var got []string
		if got, failure = o.facts(r.Tell(steady)); failure == nil {
			failure = compare(want, got)
		}
	}
	if failure != nil {
		failure.Relation = r.Name
		failure.Text = fmt.Sprintf("told steadily and with %s (%s): %s", r.Name, r.What, failure.Text)
	}
	return failure
}

// facts are what a scenario comes to.
func (o Options) facts(s *scenario.Scenario) ([]string, *Failure) {
	var end *world.World // nil if the play did not reach it
	_, failure := o.play(s, sim.Options{Watch: func(w *world.World) { end = w }})
	if failure != nil || end == nil {
		return nil, failure
	}
	var facts []string
	for _, fact := range invariant.Facts(end.Truth()) {
		if !strings.HasPrefix(fact, fmt.Sprintf("node %s ", bystander)) {
			facts = append(facts, fact)
		}
	}
	return facts, nil
}

// compare has a judge compare the facts of two runs.
func compare(want, got []string) *Failure {
	judge := invariant.New(invariant.Options{})
	judge.SameFacts(time.Time{}, want, got)
	found := judge.Violations()
	if len(found) == 0 {
		return nil
	}
	return &Failure{Kind: Metamorphic, Violations: found, Text: found[0].String()}
}
