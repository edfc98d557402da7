package swarm

import (
	"fmt"
	"time"
)

// Size is the size of the clusters of a swarm.
type Size uint8

// The sizes.
const (
	// Small has about five nodes with about three allocations each. Two or three nodes drain,
	// sometimes all.
	Small Size = iota
	// Medium has about 35 nodes with about ten allocations each. Four or five nodes drain.
	Medium
	// Large has a thousand nodes with twenty allocations each. About twenty nodes drain.
	Large

	sizeCount
)

// String returns the name of the size on a command line.
func (s Size) String() string {
	names := [sizeCount]string{"small", "medium", "large"}
	if s >= sizeCount {
		return "unknown size"
	}
	return names[s]
}

// UnmarshalText sets the size with the name. The error lists the names.
func (s *Size) UnmarshalText(name []byte) error {
	for _, size := range Sizes() {
		if size.String() == string(name) {
			*s = size
			return nil
		}
	}
	return fmt.Errorf("%q is not a size: the sizes are %s, %s and %s", name, Small, Medium, Large)
}

// Sizes returns every size, the smallest first.
func Sizes() [sizeCount]Size { return [sizeCount]Size{Small, Medium, Large} }

// shape holds the numbers of a size.
type shape struct {
	nodes, allocs, drains bounds
	// together is the number of nodes in a request for several nodes. In a large cluster this is
	// a rack.
	together bounds
	// count is the count of a group.
	count bounds
	// everywhere is the most jobs that run on every node. With few nodes, more such jobs would
	// replace the service jobs, which have paced moves.
	everywhere int
	// spares is the most nodes that register later, or never.
	spares int
	// times is the most events of one trait. several multiplies it for events that must hit a
	// short moment and mostly miss it.
	times, several int
	// restores is the probability that a scenario with the trait restores a snapshot at a set
	// time. A restore costs as much as many entries, in a large world as much as two drains.
	restores float64
	// restoresElse allows the fault store/restore in a scenario that has the trait and does not
	// restore at a set time. If restores is low, such faults would otherwise be too rare.
	restoresElse bool
	// happens is the probability that a trait of the scenario has events at all, for events that
	// cost many entries: on jobs, nodes, strategies and leaders. Faults cost few entries.
	happens float64
	// unplaceable is the probability that a scenario with the trait arms sched/unplaceable. The
	// fault costs two entries for each node, and an evaluation for each entry.
	unplaceable float64
	// ids bounds max-ids of the drainer.
	ids bounds
	// begun is the latest time at which a first drain of a node begins.
	begun time.Duration
	// calm bounds the time at which all faults end.
	calm [2]time.Duration
}

// bounds are the least and the most of a number.
type bounds struct{ least, most int }

func (s Size) shape() shape {
	switch s {
	case Medium:
		return shape{
			nodes: bounds{30, 40}, allocs: bounds{300, 400}, drains: bounds{4, 5}, together: bounds{2, 3}, count: bounds{1, 24},
			everywhere: 4, spares: 4, times: 2, several: 2, restores: 0.6, happens: 1, unplaceable: 0.25, ids: bounds{2, 24},
			begun: 45 * time.Second, calm: [2]time.Duration{3 * time.Minute, 6 * time.Minute},
		}
	case Large:
		return shape{
			nodes: bounds{1000, 1000}, allocs: bounds{19_900, 20_000}, drains: bounds{20, 24}, together: bounds{4, 8}, count: bounds{4, 80},
			everywhere: 12, spares: 20, times: 3, several: 2, restores: 0.1, restoresElse: true, happens: 1, ids: bounds{20, 100},
			begun: 45 * time.Second, calm: [2]time.Duration{4 * time.Minute, 7 * time.Minute},
		}
	}
	return shape{
		nodes: bounds{4, 6}, allocs: bounds{9, 13}, drains: bounds{2, 2}, together: bounds{2, 3}, count: bounds{2, 6},
		everywhere: 2, spares: 1, times: 1, several: 1, restores: 0.6, happens: 0.35, unplaceable: 0.5, ids: bounds{2, 8},
		begun: 20 * time.Second, calm: [2]time.Duration{75 * time.Second, 150 * time.Second},
	}
}

// garbage is the percentage for [debug.SetGCPercent]. A small world uses little memory. A collection
// of a large world takes long; with this value each worker needs 1.5 GB.
func (s Size) garbage() int {
	switch s {
	case Medium:
		return 400
	case Large:
		return 800
	}
	return 2000
}
