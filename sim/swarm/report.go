package swarm

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

// Run is the result of one seed.
type Run struct {
	Seed uint64
	// Hash is the hash of the run. It is equal for equal seeds and sizes.
	Hash uint64
	// Steps and Entries count the steps and raft entries. Busy is the virtual time with activity.
	Steps, Entries int
	Busy           time.Duration
	// Failure is nil if the run passed.
	Failure *Failure
	// events counts its events.
	events map[Event]int
}

// Kind is the kind of a failure.
type Kind string

// The kinds of failures.
const (
	// Violated: a guarantee was broken.
	Violated Kind = "violation"
	// Nondeterminism: a second run of the seed differed.
	Nondeterminism Kind = "nondeterminism"
	// Panicked: the run panicked.
	Panicked Kind = "panic"
	// Unplayable: the run ended with an error.
	Unplayable Kind = "unplayable"
)

// Failure describes a failed run.
type Failure struct {
	Seed uint64
	Size Size
	Kind Kind
	// Violations are the broken guarantees, in the order of the run. [Violated] has at least one.
	Violations []invariant.Violation
	// Text describes the failure in one line, or in several after a panic.
	Text string
}

// String describes the failure and how to replay it.
func (f *Failure) String() string {
	return fmt.Sprintf("seed %d: %s: %s\n\t%s", f.Seed, f.Kind, f.Text, f.Replay())
}

// Replay returns the command that repeats the failure.
func (f *Failure) Replay() string {
	return fmt.Sprintf("nodedrain sim swarm --size %s --seed %d --seeds 1", f.Size, f.Seed)
}

// Report is the result of a swarm.
type Report struct {
	Size Size
	// First is the first seed. Seeds counts the seeds that were played, Twice those of them that
	// were played twice.
	First        uint64
	Seeds, Twice int
	// Hash is the hash of the hashes of all seeds, in their order.
	Hash uint64
	// Failed counts the failed seeds. Failures are the first of them.
	Failed   int
	Failures []*Failure
	// Tally counts the events of the runs. Short lists the events that are too rare.
	Tally Tally
	Short []Shortfall
	// Steps, Entries and Busy are the sums over all runs. Took is the real time on Workers.
	Steps, Entries int
	Busy, Took     time.Duration
	Workers        int
}

// OK reports whether no seed failed and no event was too rare.
func (r *Report) OK() bool { return r.Failed == 0 && len(r.Short) == 0 }

// SeedsPerMinute is the number of seeds per minute of real time.
func (r *Report) SeedsPerMinute() float64 { return per(float64(r.Seeds), r.Took) * 60 }

// BusyHoursPerSecond is the number of busy virtual hours per second of real time.
func (r *Report) BusyHoursPerSecond() float64 { return per(r.Busy.Hours(), r.Took) }

// per returns the amount per second.
func per(amount float64, took time.Duration) float64 {
	if took <= 0 {
		return 0
	}
	return amount / took.Seconds()
}

// add adds the run of the next seed.
func (r *Report) add(run Run, keep int) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%x %x", r.Hash, run.Hash)
	r.Hash = h.Sum64()
	r.Seeds++
	r.Steps += run.Steps
	r.Entries += run.Entries
	r.Busy += run.Busy
	r.Tally.Add(run.events)
	if run.Failure == nil {
		return
	}
	if r.Failed++; len(r.Failures) < keep {
		r.Failures = append(r.Failures, run.Failure)
	}
}
