package shrink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/claimed"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/collected"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/ended"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/journaled"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/listed"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/moved"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/placement"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/rolled"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/timed"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// Judging returns a [Play] with the simulator and its judges for one [Shrink] or [Freeze]. It may fail
// checks of guarantees, such as "G1 below limit". A panic, or an error of the run, is a failed check
// whose name contains the reason, so that a different reason is a different check. A run that a context
// stops fails no check. The steps of the first scenario limit the steps of the others, because some
// smaller ones loop for a long time. play is [sim.Play], except in tests.
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

// The limit is moreSteps times the steps of the first scenario, plus leastSteps.
const (
	leastSteps = 20_000
	moreSteps  = 2
)

// judged plays a scenario with a limit of steps, where zero is no limit. It returns the number of
// steps, or zero if the run did not end.
func judged(s *scenario.Scenario, play func(*scenario.Scenario, sim.Options) (*sim.Result, error), maxSteps int) (o Outcome, steps int) {
	defer func() {
		if reason := recover(); reason != nil {
			o.Failures = []Failure{failureOf("panic", fmt.Sprint(reason))}
		}
	}()
	result, err := play(s, sim.Options{MaxSteps: maxSteps, Watch: func(w *world.World) {
		w.Observe(world.Observer{Struck: func(strike world.Strike) { o.Strikes = append(o.Strikes, strike) }})
	}})
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return o, 0 // the scenario may pass or fail
	case err != nil:
		o.Failures = []Failure{failureOf("unplayable", innermost(err).Error())}
		return o, 0
	}
	for _, v := range result.NoEffect {
		o.NoEffect = append(o.NoEffect, v.Event)
	}
	for _, v := range result.Violations {
		check := v.Guarantee + " " + v.Check
		if _, exists := o.of(check); !exists {
			o.Failures = append(o.Failures, Failure{Check: check, Text: v.Text, At: v.At.Sub(world.Epoch)})
		}
	}
	return o, result.Steps
}

// Known reports whether [Judging] has a check with the name.
func Known(check string) bool {
	checks := slices.Concat(invariant.Checks(), placement.Checks(), collected.Checks(), claimed.Checks(), ended.Checks(), moved.Checks(), rolled.Checks(), listed.Checks(), journaled.Checks(), timed.Checks(), []invariant.Check{"G10 too many steps"})
	kind, _, found := strings.Cut(check, ": ")
	return slices.Contains(checks, invariant.Check(check)) || found && (kind == "panic" || kind == "unplayable")
}

// failureOf returns a failure of a kind with a reason. The name of the check leaves out the numbers
// of the reason, because a smaller scenario has other numbers.
func failureOf(kind, reason string) Failure {
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
