package swarm

import (
	"fmt"
	"math"
)

// Tally counts the events of many runs.
type Tally struct {
	// Runs is the number of runs.
	Runs int
	// Events holds the events that happened. It is nil before the first Add.
	Events map[Event]Count
}

// Count counts an event.
type Count struct {
	// Runs is the number of runs with the event, Times the number of events in all runs.
	Runs, Times int
}

// Add adds the events of a run.
func (t *Tally) Add(counts map[Event]int) {
	if t.Events == nil {
		t.Events = map[Event]Count{}
	}
	t.Runs++
	for e, times := range counts {
		s := t.Events[e]
		t.Events[e] = Count{Runs: s.Runs + 1, Times: s.Times + times}
	}
}

// Shortfall is an event that is rarer than its rate.
type Shortfall struct {
	Rate
	// Runs is the number of runs with the event, Want the expected number.
	Runs, Want int
}

// String describes the shortfall.
func (s Shortfall) String() string {
	return fmt.Sprintf("%s (%s): in %d runs, expected in %d", s.Event, s.What, s.Runs, s.Want)
}

// Short returns the events that are rarer than their rates, in the order of the rates. An event is
// short if its number of runs is more than three standard deviations below the expected number. So a
// rare event that is expected in fewer than nine runs is never short. An event that nearly every run
// has is short even after a single run without it.
func (t *Tally) Short(size Size) []Shortfall {
	var short []Shortfall
	for _, r := range Rates() {
		expected := float64(t.Runs) * r.Least[size]
		chance := 3 * math.Sqrt(expected*(1-r.Least[size]))
		if runs := t.Events[r.Event].Runs; float64(runs) < expected-chance {
			short = append(short, Shortfall{Rate: r, Runs: runs, Want: int(math.Ceil(expected))})
		}
	}
	return short
}
