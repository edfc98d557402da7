package shrink

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// The passes that remove nothing and make a scenario easier to read.

// closeGaps moves events to an earlier time, so that they follow the previous time after the gap.
func closeGaps(gap time.Duration) func(*scenario.Scenario) []edit {
	return func(s *scenario.Scenario) (edits []edit) {
		var times []time.Duration
		for i := range s.Events {
			times = append(times, s.Events[i].At)
		}
		slices.Sort(times)
		before := -gap // the first event is at 0
		for _, at := range slices.Compact(times) {
			if sooner := at - before - gap; sooner > 0 {
				edits = append(edits, func(d *draft) { d.moveEarlier(s, at, sooner) })
			}
			before = at
		}
		return edits
	}
}

// moveEarlier moves all events that s has at a time or later.
func (d *draft) moveEarlier(s *scenario.Scenario, from, by time.Duration) {
	for i := range d.Events {
		if s.Events[i].At >= from {
			d.Events[i].At -= by
		}
	}
}

// sortEvents sorts events by time.
func sortEvents(*scenario.Scenario) []edit {
	return []edit{func(d *draft) {
		slices.SortStableFunc(d.Events, func(a, b scenario.Event) int { return cmp.Compare(a.At, b.At) })
	}}
}

// join merges the lines of equal nodes, and of equal allocations of one group.
func join(*scenario.Scenario) []edit {
	return []edit{func(d *draft) {
		d.Nodes = joined(d.Nodes, joinNodes)
		d.Allocs = joined(d.Allocs, joinAllocs)
		for i := range d.Allocs {
			if a := &d.Allocs[i]; a.Indexes == (scenario.Indexes{Count: len(a.On)}) {
				a.Indexes = scenario.Indexes{} // the default is the same
			}
		}
	}}
}

// joined merges neighbors in a list where merge can.
func joined[T any](list []T, merge func(a, b T) (T, bool)) []T {
	var all []T
	for _, next := range list {
		if last := len(all) - 1; last >= 0 {
			if merged, ok := merge(all[last], next); ok {
				all[last] = merged
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
