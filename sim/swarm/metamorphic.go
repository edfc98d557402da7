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

// isMetamorphic reports whether a seed is also played as a steady scenario and as a variant.
func (o Options) isMetamorphic(seed uint64) bool {
	return o.Metamorphic > 0 && world.Stream(seed, "swarm/metamorphic").Float64() < o.Metamorphic
}

// Scenarios returns the failed scenario of the seed. If a variant failed, it returns the steady
// scenario and the variant.
func (f *Failure) Scenarios() []*scenario.Scenario {
	s := Generate(f.Seed, f.Size)
	for _, v := range Variants() {
		if v.Name == f.Variant {
			steady := Steady(s)
			return []*scenario.Scenario{steady, v.Apply(steady)}
		}
	}
	return []*scenario.Scenario{s}
}

// variantOf draws the variant of a seed.
func variantOf(seed uint64) Variant {
	return one(dice{world.Stream(seed, "swarm/relation")}, Variants()...)
}

// compareVariant plays the steady scenario and its variant. Both must keep the guarantees, and their
// final facts must be equal.
func (o Options) compareVariant(s *scenario.Scenario, v Variant) *Failure {
	steady := Steady(s)
	want, failure := o.facts(steady)
	if failure == nil {
		var got []string
		if got, failure = o.facts(v.Apply(steady)); failure == nil {
			failure = compare(want, got)
		}
	}
	if failure != nil {
		failure.Variant = v.Name
		failure.Text = fmt.Sprintf("steady run and variant %s (%s): %s", v.Name, v.What, failure.Text)
	}
	return failure
}

// facts plays a scenario and returns its final facts, but for the bystander and for groups that run
// nothing: the collection deletes a job whose work has ended.
func (o Options) facts(s *scenario.Scenario) ([]string, *Failure) {
	var end *world.World // nil if Play does not call Watch
	_, failure := o.play(s, sim.Options{Watch: func(w *world.World) { end = w }})
	if failure != nil || end == nil {
		return nil, failure
	}
	var facts []string
	for _, fact := range invariant.Facts(end.Truth()) {
		if !strings.HasPrefix(fact, fmt.Sprintf("node %s ", bystander)) && !strings.Contains(fact, " runs 0 of ") {
			facts = append(facts, fact)
		}
	}
	return facts, nil
}

// compare returns a failure if the facts of two runs differ.
func compare(want, got []string) *Failure {
	judge := invariant.New(invariant.Options{})
	judge.SameFacts(time.Time{}, want, got)
	found := judge.Violations()
	if len(found) == 0 {
		return nil
	}
	return &Failure{Kind: Metamorphic, Violations: found, Text: found[0].String()}
}
