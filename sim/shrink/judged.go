package shrink

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/placement"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// Judged plays a scenario in a world and has it judged. The checks that it may fail
// are those of the guarantees, "G1 below limit"; a scenario that panics or cannot be
// played to its end fails a check that tells why, so that others that end so for
// another reason are not taken for it. One that is stopped because a context has ended
// fails nothing.
func Judged(s *scenario.Scenario) Outcome { return Judging(sim.Play)(s) }

// Judging is Judged for one [Shrink] or [Freeze], with a function in place of
// [sim.Play]. The scenario that is played first sets how many steps the others may
// take: some smaller ones run in circles, and would do so for long.
func Judging(play func(*scenario.Scenario, sim.Options) (*sim.Result, error)) Play {
	maxSteps := 0
	return func(s *scenario.Scenario) Outcome {
		o, steps := judged(s, play, maxSteps)
		if maxSteps == 0 {
			maxSteps = leastSteps + moreSteps*steps
		}
		return o
	}
}

// A scenario may take moreSteps times as many steps as the first one, and leastSteps
// in any case.
const (
	leastSteps = 20_000
	moreSteps  = 2
)

// judged plays a scenario and tells how many steps it took, zero if it did not come to
// its end: what runs in circles does so in few steps as well. No more than maxSteps
// are taken; zero is no bound.
func judged(s *scenario.Scenario, play func(*scenario.Scenario, sim.Options) (*sim.Result, error), maxSteps int) (o Outcome, steps int) {
	defer func() {
		if reason := recover(); reason != nil {
			o.Failures = []Failure{because("panic", fmt.Sprint(reason))}
		}
	}()
	result, err := play(s, sim.Options{MaxSteps: maxSteps, Watch: func(w *world.World) {
		w.Observe(world.Observer{Struck: func(strike world.Strike) { o.Strikes = append(o.Strikes, strike) }})
	}})
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return o, 0 // it was stopped: that tells nothing of the scenario
	case err != nil:
		o.Failures = []Failure{because("unplayable", innermost(err).Error())}
		return o, 0
	}
	for _, v := range result.NoEffect {
		o.Vain = append(o.Vain, v.Event)
	}
	for _, v := range result.Violations {
		check := v.Guarantee + " " + v.Check
		if _, known := o.of(check); !known {
			o.Failures = append(o.Failures, Failure{Check: check, Text: v.Text, At: v.At.Sub(world.Epoch)})
		}
	}
	return o, result.Steps
}

// Known reports whether there is a check of that name that a scenario may fail when it is
// [Judged].
func Known(check string) bool {
	for c := range invariant.CheckCount {
		if check == c.Guarantee()+" "+c.String() {
			return true
		}
	}
	kind, _, found := strings.Cut(check, ": ")
	return check == "G10 too many steps" || placement.Known(check) || found && (kind == "panic" || kind == "unplayable")
}

// because is a failure of a kind for a reason. Of the reason, the numbers do not
// matter: they are of this scenario and no other.
func because(kind, reason string) Failure {
	reason, _, _ = strings.Cut(reason, "\n")
	like := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, reason)
	return Failure{Check: kind + ": " + like, Text: reason}
}

// innermost returns the first error of a chain.
func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
