package world

import (
	"errors"
	"fmt"
	"strings"
)

// ErrTooManySteps says that a world has reached [Options].MaxSteps; see [Loop.Livelocked].
var ErrTooManySteps = errors.New("too many steps")

// stepCounts counts the steps of a world.
type stepCounts struct {
	kinds [KindCount]int
	// inRow counts the drainers' steps since the last event that no drainer caused. excess
	// counts the steps of the whole run that were not among the first maxInRow of their row.
	inRow, excess int
}

// maxInRow is the number of steps that correct drainers may take in a row: a step follows each
// answer, each new state and each timer.
const maxInRow = 20

// drainer counts a step of a drainer.
func (c *stepCounts) drainer() {
	if c.inRow++; c.inRow > maxInRow {
		c.excess++
	}
}

// outside ends a row of drainers' steps, because of an event that no drainer caused: a write of
// another source, a strike of a fault, or a scripted step.
func (c *stepCounts) outside() { c.inRow = 0 }

// String returns the counts in words.
func (c *stepCounts) String() string {
	var parts []string
	for k, n := range c.kinds {
		parts = append(parts, fmt.Sprintf("%s %d", Kind(k), n))
	}
	return fmt.Sprintf("%s; %d drainer steps with no other event", strings.Join(parts, ", "), c.excess)
}

// Livelocked reports whether a drainer causes its own next step again and again: a large part of
// all steps are drainers' steps in long rows without another event. Frequent faults alone are no
// livelock, because each strike ends a row.
func (l *Loop) Livelocked() bool { return l.counts.excess > l.steps/livelockShare }

// livelockShare is the divisor of the smallest share that counts as a livelock. A drainer that
// wakes itself by its writes takes every second step, because the log takes the other one. A
// drainer that wakes itself by its timer takes all steps.
const livelockShare = 4
