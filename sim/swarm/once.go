package swarm

import (
	"fmt"
	"runtime/debug"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// run plays a seed, and some seeds again.
func (o Options) run(seed uint64) Run {
	run := Run{Seed: seed}
	s := Generate(seed, o.Size)
	observer := NewObserver()
	result, failure := o.play(s, sim.Options{Watch: observer.Watch, Reports: observer.Reports})
	run.events = observer.Events()
	if result != nil {
		run.Hash, run.Steps, run.Entries, run.Busy = result.Hash, result.Steps, result.Entries, result.Busy
	}
	if failure == nil && o.isTwice(seed) {
		failure = o.again(s, result.Hash)
	}
	if failure != nil {
		failure.Seed, failure.Size = seed, o.Size
	}
	run.Failure = failure
	return run
}

// play plays a scenario once. A panic is a failure of the seed.
func (o Options) play(s *scenario.Scenario, how sim.Options) (result *sim.Result, failure *Failure) {
	defer func() {
		if reason := recover(); reason != nil {
			result, failure = nil, &Failure{Kind: Panicked, Text: fmt.Sprintf("%v\n%s", reason, debug.Stack())}
		}
	}()
	result, err := o.Play(s, how)
	switch {
	case err != nil:
		return nil, &Failure{Kind: Unplayable, Text: err.Error()}
	case len(result.Violations) > 0:
		return result, &Failure{Kind: Violated, Violations: result.Violations, Text: result.Violations[0].String()}
	}
	return result, nil
}

// isTwice reports whether a seed is played twice.
func (o Options) isTwice(seed uint64) bool {
	return o.Twice > 0 && world.Stream(seed, "swarm/twice").Float64() < o.Twice
}

// again plays a scenario again. If the result differs, it plays it twice more, step by step, to find
// the first difference.
func (o Options) again(s *scenario.Scenario, hash uint64) *Failure {
	result, failure := o.play(s, sim.Options{})
	if failure == nil && result.Hash == hash {
		return nil
	}
	text := fmt.Sprintf("the second run has the hash %s, not %016x", outcome(result, failure), hash)
	if step, differ := o.firstDifference(s); differ {
		text += fmt.Sprintf("; two more runs differ at step %d", step)
	} else {
		text += "; two more runs are equal"
	}
	return &Failure{Kind: Nondeterminism, Text: text}
}

func outcome(result *sim.Result, failure *Failure) string {
	if failure != nil {
		return string(failure.Kind) + ": " + failure.Text
	}
	return fmt.Sprintf("%016x", result.Hash)
}

// firstDifference plays a scenario twice and returns the first step before which the two runs differ.
func (o Options) firstDifference(s *scenario.Scenario) (step int, differ bool) {
	var hashes [2][]uint64
	for i := range hashes {
		_, _ = o.play(s, sim.Options{Watch: func(w *world.World) { // only its steps matter
			w.OnStep(func(int) error {
				hashes[i] = append(hashes[i], w.Hash())
				return nil
			})
		}})
	}
	for step := range max(len(hashes[0]), len(hashes[1])) {
		if step >= len(hashes[0]) || step >= len(hashes[1]) || hashes[0][step] != hashes[1][step] {
			return step, true
		}
	}
	return 0, false
}
