package swarm

import (
	"fmt"
	"time"
)

// Size is how large the clusters of a swarm are.
type Size uint8

// The sizes.
const (
	// Small is some five nodes with some three allocations each, of which two drain, or
	// three, or now and then all.
	Small Size = iota
	// Medium is some thirty-five nodes with some ten allocations each, of which four or
	// five drain.
	Medium
	// Large is a thousand nodes with twenty allocations each, of which some twenty
	// drain.
	Large

	sizeCount
)

// String returns the size as it is written on a command line.
func (s Size) String() string {
	names := [sizeCount]string{"small", "medium", "large"}
	if s >= sizeCount {
		return "unknown size"
	}
	return names[s]
}

// ParseSize returns the size of that name. The error names those that there are.
func ParseSize(name string) (Size, error) {
	for s := range sizeCount {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("%q is no size: there are %s, %s and %s", name, Small, Medium, Large)
}

// Sizes returns every size, the smallest first.
func Sizes() [sizeCount]Size { return [sizeCount]Size{Small, Medium, Large} }

// shape is a size in numbers, each from the least to the most.
type shape struct {
	nodes, allocs, drains bounds
	// together is how many nodes are drained at once where one request is for several: of
	// a large cluster that is a rack.
	together bounds
	// count is how many of a group there may be.
	count bounds
	// everywhere is how many jobs run on every node at most. Where nodes are few, more of
	// them would leave no room for those that are paced.
	everywhere int
	// spares are how many nodes there are at most that register later, or never.
	spares int
	// times is how often one kind of thing happens at most, several by how much more often
	// what is to hit a moment and mostly misses it.
	times, several int
	// restores is how likely a snapshot is restored at a time of its own, where that may be:
	// it costs as much as many entries, in a large world as two drains.
	restores float64
	// restoresElse is whether a fault may restore one in a story that may restore one at
	// such a time and does not. Where few of these do, it would hardly come otherwise.
	restoresElse bool
	// happens is how likely a kind of thing is done at all that the scenario has, of what
	// costs many entries: to jobs, nodes, strategies and leaders. Faults cost few.
	happens float64
	// unplaceable is how likely nothing can be placed for a while where that may be: it
	// takes two entries for each node, and an evaluation for each of those.
	unplaceable float64
	// ids is the least of the bounds of entries, and the most that is drawn.
	ids bounds
	// begun is when the last of the first drains begins at the latest.
	begun time.Duration
	// calm is when all faults have ended.
	calm [2]time.Duration
}

// bounds are the least and the most of something.
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

// garbage is how much garbage there may be before it is collected, in hundredths of
// what is in use. Of small worlds next to nothing is in use; to go through a large one
// takes long, and there is room: with this each worker holds a gigabyte and a half.
func (s Size) garbage() int {
	switch s {
	case Medium:
		return 400
	case Large:
		return 800
	}
	return 2000
}
