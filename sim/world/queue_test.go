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

// asked is something that is to happen, and what it asks for in turn when it does.
type asked struct {
	at   time.Duration
	then []time.Duration
}

// What is asked for happens by time, then by tie, then in the order in which it was
// asked for: as in a slice that is sorted whenever something is to happen.
func TestWorld_order(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.Map(rapid.IntRange(0, 4), func(n int) time.Duration { return time.Duration(n) * time.Second })
		plans := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) asked {
			return asked{at: span.Draw(t, "at"), then: rapid.SliceOfN(span, 0, 3).Draw(t, "then")}
		}), 1, 30).Draw(t, "plans")
		seed := rapid.Uint64Range(0, 5).Draw(t, "seed")
		must.Eq(t, sortedTwin(seed, plans), played(t, seed, plans))
	})
}

// played has it all happen in a world, and returns the numbers of what happened:
// everything is numbered as it is asked for.
func played(t must.T, seed uint64, plans []asked) (happened []int) {
	w, err := world.New(world.Options{Seed: seed})
	must.NoError(t, err)
	number := 0
	var ask func(asked)
	ask = func(a asked) {
		n := number
		number++
		w.At(world.Epoch.Add(a.at), func() error {
			happened = append(happened, n)
			for _, d := range a.then {
				ask(asked{at: a.at + d})
			}
			return nil
		})
	}
	for _, a := range plans {
		ask(a)
	}
	_, err = w.Run(world.Epoch.Add(time.Minute))
	must.NoError(t, err)
	return happened
}

// sortedTwin is the same with a slice.
func sortedTwin(seed uint64, plans []asked) (happened []int) {
	type event struct {
		asked
		number int
		tie    uint64
	}
	ties := world.Stream(seed, "tie/scripted")
	number := 0
	var events []event
	ask := func(a asked) {
		e := event{asked: a, number: number}
		if seed != 0 {
			e.tie = ties.Uint64()
		}
		number++
		events = append(events, e)
	}
	for _, a := range plans {
		ask(a)
	}
	for len(events) > 0 {
		slices.SortFunc(events, func(a, b event) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.tie, b.tie), cmp.Compare(a.number, b.number))
		})
		next := events[0]
		events = events[1:]
		happened = append(happened, next.number)
		for _, d := range next.then {
			ask(asked{at: next.at + d})
		}
	}
	return happened
}

// Without a seed what is asked for at one time happens in its order; with seeds, in
// others.
func TestWorld_ties(t *testing.T) {
	t.Parallel()
	together := make([]asked, 20)
	orders := map[int][]int{}
	for seed := range uint64(4) {
		order := played(t, seed, together)
		must.Eq(t, slices.IsSorted(order), seed == 0)
		slices.Sort(order)
		must.Len(t, len(together), slices.Compact(order))
		orders[int(seed)] = played(t, seed, together)
	}
	must.NotEq(t, orders[1], orders[2])
	must.NotEq(t, orders[2], orders[3])
}
