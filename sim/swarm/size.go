package swarm

import (
	"fmt"
	"time"
)

// Size is how large the clusters of a swarm are.
type Size uint8

// The sizes.
const (
	// Small is some eight nodes with some five allocations each, of which two or three
	// drain.
	Small Size = iota
	// Medium is fifty nodes with some twenty allocations each, of which five or six
	// drain.
	Medium
	// Large is a thousand nodes with twenty allocations each, of which some fifty
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
	// count is how many of a group there may be.
	count bounds
	// groups are how many groups of a kind are odd in one way, apart from the odds.
	spares int
	// times is how often one kind of thing happens at most, restores how often a
	// snapshot is restored in all: that costs as much as many entries.
	times, restores int
	// ids is the least of the bounds of entries, and the most that is drawn.
	ids bounds
	// calm is when all faults have ended.
	calm [2]time.Duration
}

// bounds are the least and the most of something.
type bounds struct{ least, most int }

func (s Size) shape() shape {
	switch s {
	case Medium:
		return shape{
			nodes: bounds{50, 50}, allocs: bounds{950, 1000}, drains: bounds{5, 6}, count: bounds{1, 40},
			spares: 4, times: 3, restores: 2, ids: bounds{2, 24}, calm: [2]time.Duration{3 * time.Minute, 6 * time.Minute},
		}
	case Large:
		return shape{
			nodes: bounds{1000, 1000}, allocs: bounds{19_900, 20_000}, drains: bounds{45, 55}, count: bounds{4, 80},
			spares: 20, times: 5, restores: 1, ids: bounds{20, 100}, calm: [2]time.Duration{4 * time.Minute, 7 * time.Minute},
		}
	}
	return shape{
		nodes: bounds{6, 9}, allocs: bounds{28, 44}, drains: bounds{2, 3}, count: bounds{2, 9},
		spares: 2, times: 1, restores: 1, ids: bounds{2, 12}, calm: [2]time.Duration{2 * time.Minute, 4 * time.Minute},
	}
}

// garbage is how much garbage there may be before it is collected, in hundredths of
// what is in use: the smaller the worlds, the more.
func (s Size) garbage() int {
	switch s {
	case Medium:
		return 400
	case Large:
		return 150
	}
	return 1000
}
