package shrink

import (
	"context"
	"errors"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// Play plays a scenario and tells what came of it. Equal scenarios must come to equal
// outcomes.
type Play func(*scenario.Scenario) Outcome

// Outcome is what came of a scenario.
type Outcome struct {
	// Failures are the checks that it failed, each once, the first failed first; none
	// if it failed none.
	Failures []Failure
	// Strikes are what the faults did. [Freeze] writes them down; without them it
	// leaves faults as they are.
	Strikes []world.Strike
	// Vain are the events that nothing came of, by their numbers. What is left of them
	// says that it is meant.
	Vain []int
}

// Failure is one check that a scenario failed.
type Failure struct {
	// Check names it: "G1/below-limit". Scenarios that fail for one reason must fail
	// the same check.
	Check string
	// Text says what was wrong.
	Text string
	// At is when it was found, from the beginning; zero is not known.
	At time.Duration
}

// of returns the failure of a check.
func (o *Outcome) of(check string) (Failure, bool) {
	for _, f := range o.Failures {
		if f.Check == check {
			return f, true
		}
	}
	return Failure{}, false
}

// Options are how much is tried. The zero value of each is its default.
type Options struct {
	// Check is the check that candidates must fail; empty is the first that the
	// scenario fails.
	Check string
	// MaxPlays bounds the candidates that are played. Zero is [DefaultMaxPlays].
	MaxPlays int
	// Progress is called after each candidate that was played, or nil.
	Progress func(Report)
}

// DefaultMaxPlays is enough for what a swarm finds in small clusters.
const DefaultMaxPlays = 2000

// ErrPasses says that there is nothing to shrink: the scenario fails no check, or not
// the one that was asked for.
var ErrPasses = errors.New("the scenario does not fail")

// Report is how far it was shrunk, and what that took.
type Report struct {
	// Failure is what the smallest scenario fails.
	Failure Failure
	// Plays counts the candidates that were played, the first scenario too.
	Plays int
	// Before and After are the scenario's size.
	Before, After Size
	// Complete says that nothing more can be missed. Otherwise plays or time ran out.
	Complete bool
}

// Size is how large a scenario is to its reader.
type Size struct{ Events, Nodes, Jobs, Allocs int }

// SizeOf returns the size of a scenario.
func SizeOf(s *scenario.Scenario) Size {
	size := Size{Events: len(s.Events), Jobs: len(s.Jobs)}
	for i := range s.Nodes {
		size.Nodes += len(s.Nodes[i].IDs)
	}
	for i := range s.Allocs {
		size.Allocs += max(len(s.Allocs[i].On), s.Allocs[i].Indexes.Count)
	}
	return size
}

// Shrink returns the smallest scenario that it finds to fail the check that s fails.
// Its prose says what it fails and how to play it. It expects nothing: its
// story is not that of s. The error is [ErrPasses], or says why the small scenario
// cannot be written; the context only ends the search early.
func Shrink(ctx context.Context, s *scenario.Scenario, play Play, o Options) (*scenario.Scenario, Report, error) {
	m, err := newShrinker(ctx, s, play, o)
	if err != nil {
		return nil, Report{}, err
	}
	m.shrink()
	return m.finished(s, "Shrunk")
}
