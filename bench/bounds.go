package main

import (
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// bound is what a figure may be at most.
type bound struct {
	// name is the benchmark's, or the beginning of several ones' up to a slash.
	name string
	// unit is the metric that is bounded: [measure.UnitRatio], or a count.
	unit string
	most float64
	// what says in words what is bounded.
	what string
}

// count reports whether the figure is a count, which is the same on every machine.
func (b bound) count() bool { return b.unit != measure.UnitRatio }

// bounds are those of all figures, in the order in which they are printed.
func bounds() []bound {
	const ratio = measure.UnitRatio
	return []bound{
		{"recheck", ratio, 2, "applying marks that are judged again, to applying them unjudged"},
		{"deadlines", ratio, 3, "deadlines: watch, remove and next, to container/heap and a map"},
		{"idle", "writes", 0, "nodes that drain with nothing to do: writes in ten minutes"},
		{"idle", "steps", 0, "nodes that drain with nothing to do: steps in ten minutes"},
		{"memory", "share", 1, "memory held by the drainer, of 2 KiB a node and 100 B an allocation"},
		{"drains/cpu/max_parallel=1", ratio, 1.5, "whole drains, to applying their entries"},
		{"drains/cpu/max_parallel=10", ratio, 1.2, "whole drains, to applying their entries"},
		{"drains/cpu/max_parallel=100", ratio, 1.2, "whole drains, to applying their entries"},
		{"drains/cpu", "in-flight", drainer.DefaultMaxInFlight, "the drainer's entries in flight"},
		{"drains/lockstep", "mark-entries", 1.1, "entries with marks, of as few as they fit in"},
		{"drains/lockstep", "end-entries", 1.1, "entries with ends, of as few as they fit in"},
	}
}
