package world_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// planned is a function to queue, and the delays of the functions that it queues itself.
type planned struct {
	at   time.Duration
	then []time.Duration
}

// Functions run by time, then by tie, then in the order in which they were queued. The order is
// that of a slice that is sorted before each step.
func TestWorld_order(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.Map(rapid.IntRange(0, 4), func(n int) time.Duration { return time.Duration(n) * time.Second })
		plans := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) planned {
			return planned{at: span.Draw(t, "at"), then: rapid.SliceOfN(span, 0, 3).Draw(t, "then")}
		}), 1, 30).Draw(t, "plans")
		seed := rapid.Uint64Range(0, 5).Draw(t, "seed")
		must.Eq(t, runSorted(seed, plans), runInWorld(t, seed, plans))
	})
}

// runInWorld runs the functions in a world and returns their numbers in the order in which they
// run. The numbers count the functions in the order in which they were queued.
func runInWorld(t must.T, seed uint64, plans []planned) (ran []int) {
	w, err := world.New(world.Options{Seed: seed})
	must.NoError(t, err)
	number := 0
	var queue func(planned)
	queue = func(a planned) {
		n := number
		number++
		w.At(world.Epoch.Add(a.at), func() error {
			ran = append(ran, n)
			for _, d := range a.then {
				queue(planned{at: a.at + d})
			}
			return nil
		})
	}
	for _, a := range plans {
		queue(a)
	}
	_, err = w.Run(world.Epoch.Add(time.Minute))
	must.NoError(t, err)
	return ran
}

// runSorted does the same as runInWorld with a sorted slice.
func runSorted(seed uint64, plans []planned) (ran []int) {
	type event struct {
		planned
		number int
		tie    uint64
	}
	ties := world.Stream(seed, "tie/scripted")
	number := 0
	var events []event
	queue := func(a planned) {
		e := event{planned: a, number: number}
		if seed != 0 {
			e.tie = ties.Uint64()
		}
		number++
		events = append(events, e)
	}
	for _, a := range plans {
		queue(a)
	}
	for len(events) > 0 {
		slices.SortFunc(events, func(a, b event) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.tie, b.tie), cmp.Compare(a.number, b.number))
		})
		next := events[0]
		events = events[1:]
		ran = append(ran, next.number)
		for _, d := range next.then {
			queue(planned{at: next.at + d})
		}
	}
	return ran
}

// Without a seed functions of one time run in the order in which they were queued; with
// seeds, in other orders.
func TestWorld_ties(t *testing.T) {
	t.Parallel()
	together := make([]planned, 20)
	orders := map[int][]int{}
	for seed := range uint64(4) {
		order := runInWorld(t, seed, together)
		must.Eq(t, slices.IsSorted(order), seed == 0)
		slices.Sort(order)
		must.Len(t, len(together), slices.Compact(order))
		orders[int(seed)] = runInWorld(t, seed, together)
	}
	must.NotEq(t, orders[1], orders[2])
	must.NotEq(t, orders[2], orders[3])
}
