package shrink

import (
	"context"
	"errors"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// Play plays a scenario. Equal scenarios must have equal outcomes.
type Play func(*scenario.Scenario) Outcome

// Outcome is the result of a play.
type Outcome struct {
	// Failures are the failed checks, each once, in the order of the run.
	Failures []Failure
	// Strikes are the strikes of faults. [Freeze] needs them to replace faults.
	Strikes []world.Strike
	// NoEffect are the indexes of the events without effect. Those in the result get Maybe.
	NoEffect []int
}

// Failure is a failed check.
type Failure struct {
	// Check is its name, such as "G1 below limit". Equal reasons must have equal names.
	Check string
	// Text describes the failure.
	Text string
	// At is the time of the failure since the beginning. Zero is unknown.
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

// Options configure a search. A zero field has its default.
type Options struct {
	// Check is the check that candidates must fail. Empty is the first one that s fails.
	Check string
	// MaxPlays limits the plays. Zero is [DefaultMaxPlays].
	MaxPlays int
	// Progress is called after each play of a candidate, or nil.
	Progress func(Report)
}

// DefaultMaxPlays is enough for failures in small clusters.
const DefaultMaxPlays = 2000

// ErrPasses means that the scenario fails no check, or not the requested one.
var ErrPasses = errors.New("the scenario does not fail")

// Report describes a search.
type Report struct {
	// Failure is the failure of the smallest scenario.
	Failure Failure
	// Plays counts the plays, with the first scenario.
	Plays int
	// Before and After are the sizes of the first and the smallest scenario.
	Before, After Size
	// Complete is true if no pass makes progress. Otherwise the search ended early.
	Complete bool
}

// Size is the size of a scenario for its reader.
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

// Shrink returns the smallest scenario that it finds with the failure of s. The prose of the result
// names the failure and the command to play it. The result has no expected texts. The error is
// [ErrPasses], or states why the result cannot be printed. If the context ends, Shrink returns the
// smallest scenario so far.
func Shrink(ctx context.Context, s *scenario.Scenario, play Play, o Options) (*scenario.Scenario, Report, error) {
	m, err := newShrinker(ctx, s, play, o)
	if err != nil {
		return nil, Report{}, err
	}
	m.shrink()
	return m.finished(s, "Shrunk")
}
