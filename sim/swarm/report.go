package swarm

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

// Run is one seed that was played.
type Run struct {
	Seed uint64
	// Hash is that of its run: equal for equal seeds and sizes.
	Hash uint64
	// Steps and Entries count what happened, Busy is the virtual time that it took.
	Steps, Entries int
	Busy           time.Duration
	// Failure is nil if nothing was wrong.
	Failure *Failure
	// seen are its events.
	seen map[Event]int
}

// Kind is what kind of thing was wrong with a run.
type Kind string

// The kinds of failures.
const (
	// Violated: a guarantee was broken.
	Violated Kind = "violation"
	// Nondeterminism: the seed played again came to something else.
	Nondeterminism Kind = "nondeterminism"
	// Metamorphic: its story, told otherwise, came to other facts.
	Metamorphic Kind = "metamorphic"
	// Panicked: something panicked.
	Panicked Kind = "panic"
	// Unplayable: the scenario could not be played to its end.
	Unplayable Kind = "unplayable"
)

// Failure describes a failed run.
type Failure struct {
	Seed uint64
	Size Size
	Kind Kind
	// Violations are the guarantees that were broken, in the order in which they were;
	// of [Violated] at least one.
	Violations []invariant.Violation
	// Relation is the name of the [Relation] by which its story was told when it failed, or
	// empty if it failed as it is.
	Relation string
	// Text describes the failure in one line, or in several after a panic.
	Text string
}

// String describes the failure and how to see it again.
func (f *Failure) String() string {
	return fmt.Sprintf("seed %d: %s: %s\n\t%s", f.Seed, f.Kind, f.Text, f.Replay())
}

// Replay is the command that plays the seed again as it was played when it failed.
func (f *Failure) Replay() string {
	command := fmt.Sprintf("nodedrain sim swarm --size %s --seed %d --seeds 1", f.Size, f.Seed)
	if f.Relation != "" {
		command += " --metamorphic 1"
	}
	return command
}

// Report is what came of a swarm.
type Report struct {
	Size Size
	// First is the first seed, Seeds how many were played, Twice how many of them
	// twice, Retold of how many the story was told otherwise too.
	First                uint64
	Seeds, Twice, Retold int
	// Hash is of the hashes of all seeds, in their order.
	Hash uint64
	// Failed is how many seeds failed. Failures are the first of them.
	Failed   int
	Failures []*Failure
	// Tally counts the events of the runs. Short lists those that too few runs had.
	Tally Tally
	Short []Shortfall
	// Steps and Entries count what happened in all, Busy is the virtual time that it
	// took. Took is how long all of it has taken, on how many workers.
	Steps, Entries int
	Busy, Took     time.Duration
	Workers        int
}

// OK reports whether no seed failed and nothing was too rare.
func (r *Report) OK() bool { return r.Failed == 0 && len(r.Short) == 0 }

// SeedsPerMinute is how many seeds a minute of real time has played.
func (r *Report) SeedsPerMinute() float64 { return per(float64(r.Seeds), r.Took) * 60 }

// BusyHoursPerSecond is how many hours of virtual time, in which something was going
// on, a second of real time has played.
func (r *Report) BusyHoursPerSecond() float64 { return per(r.Busy.Hours(), r.Took) }

// per is an amount for each second.
func per(amount float64, took time.Duration) float64 {
	if took <= 0 {
		return 0
	}
	return amount / took.Seconds()
}

// add adds a run, in the order of seeds.
func (r *Report) add(run Run, keep int) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%x %x", r.Hash, run.Hash)
	r.Hash = h.Sum64()
	r.Seeds++
	r.Steps += run.Steps
	r.Entries += run.Entries
	r.Busy += run.Busy
	r.Tally.Add(run.seen)
	if run.Failure == nil {
		return
	}
	if r.Failed++; len(r.Failures) < keep {
		r.Failures = append(r.Failures, run.Failure)
	}
}
