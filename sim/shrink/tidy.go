package shrink

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// The passes that take nothing out and make a scenario easier to read.

// closeGaps has everything from an event on happen sooner, at once after what was
// before or a while after it.
func closeGaps(gap time.Duration) func(*scenario.Scenario) []edit {
	return func(s *scenario.Scenario) (edits []edit) {
		var times []time.Duration
		for i := range s.Events {
			times = append(times, s.Events[i].At)
		}
		slices.Sort(times)
		before := -gap // the first comes at once
		for _, at := range slices.Compact(times) {
			if sooner := at - before - gap; sooner > 0 {
				edits = append(edits, func(d *draft) { d.hasten(s, at, sooner) })
			}
			before = at
		}
		return edits
	}
}

// hasten moves what happened in s at a time or later.
func (d *draft) hasten(s *scenario.Scenario, from, by time.Duration) {
	for i := range d.Events {
		if s.Events[i].At >= from {
			d.Events[i].At -= by
		}
	}
}

// inOrder has events stand in the order in which they happen.
func inOrder(*scenario.Scenario) []edit {
	return []edit{func(d *draft) {
		slices.SortStableFunc(d.Events, func(a, b scenario.Event) int { return cmp.Compare(a.At, b.At) })
	}}
}

// join has nodes that are alike, and allocations of one group that are alike, share
// a line.
func join(*scenario.Scenario) []edit {
	return []edit{func(d *draft) {
		d.Nodes = joined(d.Nodes, joinNodes)
		d.Allocs = joined(d.Allocs, joinAllocs)
		for i := range d.Allocs {
			if a := &d.Allocs[i]; a.Indexes == (scenario.Indexes{Count: len(a.On)}) {
				a.Indexes = scenario.Indexes{} // what is not said is the same
			}
		}
	}}
}

// joined is a list in which those next to each other are one that can be.
func joined[T any](list []T, both func(a, b T) (T, bool)) []T {
	var all []T
	for _, next := range list {
		if last := len(all) - 1; last >= 0 {
			if one, is := both(all[last], next); is {
				all[last] = one
				continue
			}
		}
		all = append(all, next)
	}
	return all
}

func joinNodes(a, b scenario.Node) (scenario.Node, bool) {
	ids := slices.Concat(a.IDs, b.IDs)
	a.IDs, b.IDs = nil, nil
	alike := reflect.DeepEqual(a, b)
	a.IDs = ids
	return a, alike
}

func joinAllocs(a, b scenario.Alloc) (scenario.Alloc, bool) {
	if a.Indexes.Count != len(a.On) || b.Indexes.Count != len(b.On) || b.Indexes.First != a.Indexes.First+a.Indexes.Count {
		return a, false
	}
	on, at := slices.Concat(a.On, b.On), a.Indexes
	a.On, b.On, a.Indexes, b.Indexes = nil, nil, scenario.Indexes{}, scenario.Indexes{}
	alike := reflect.DeepEqual(a, b)
	a.On, a.Indexes = on, scenario.Indexes{First: at.First, Count: len(on)}
	return a, alike
}
