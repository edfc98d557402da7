package swarm

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Tally counts the events of many runs.
type Tally struct {
	// Runs is how many there were.
	Runs int
	// Events are those that happened, by name; never nil in one that was made by Add.
	Events map[Event]Seen
}

// Seen is how often an event has happened.
type Seen struct {
	// Runs is in how many runs, Times how often in all of them.
	Runs, Times int
}

// Add adds the events of a run.
func (t *Tally) Add(seen map[Event]int) {
	if t.Events == nil {
		t.Events = map[Event]Seen{}
	}
	t.Runs++
	for e, times := range seen {
		s := t.Events[e]
		t.Events[e] = Seen{Runs: s.Runs + 1, Times: s.Times + times}
	}
}

// Shortfall is an event that happened in fewer runs than it should.
type Shortfall struct {
	Rate
	// Runs is in how many runs it happened, Want in how many it should have.
	Runs, Want int
}

// String lists the rare events and their rates.
func (s Shortfall) String() string {
	return fmt.Sprintf("%s (%s): in %d runs, and should be in %d", s.Event, s.What, s.Runs, s.Want)
}

// Short returns the events that happened in fewer runs of the size than their rates
// say, in the order of the rates. An event is short if chance does not explain it:
// if it is further from what is expected than three deviations. So nothing is said
// of a rare event that is expected in fewer than nine of the runs; but what nearly all
// show is missed in a single one.
func (t *Tally) Short(size Size) []Shortfall {
	var short []Shortfall
	for _, r := range Rates() {
		want := float64(t.Runs) * r.Least[size]
		chance := 3 * math.Sqrt(want*(1-r.Least[size]))
		if seen := t.Events[r.Event].Runs; float64(seen) < want-chance {
			short = append(short, Shortfall{Rate: r, Runs: seen, Want: int(math.Ceil(want))})
		}
	}
	return short
}

// String is the tally as a table, an event a line: in how many of a hundred runs it
// happened, how often in all, and its name.
func (t *Tally) String() string {
	events := make([]Event, 0, len(t.Events))
	for e := range t.Events {
		events = append(events, e)
	}
	slices.Sort(events)
	var b strings.Builder
	for _, e := range events {
		s := t.Events[e]
		fmt.Fprintf(&b, "%6.2f %8d  %s\n", 100*float64(s.Runs)/float64(max(1, t.Runs)), s.Times, e)
	}
	return b.String()
}
