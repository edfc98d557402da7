package world

import (
	"errors"
	"fmt"
	"strings"
)

// ErrTooManySteps says that a world has reached [Options].MaxSteps; see [Loop.Livelocked].
var ErrTooManySteps = errors.New("too many steps")

// stepCounts counts the steps of a world. A streak is a sequence of drainers' steps without an
// event that no drainer caused.
type stepCounts struct {
	kinds [KindCount]int
	// streak is the number of steps in the current streak. excess is the number of steps in the
	// whole run that were beyond the first maxStreak steps of their streak.
	streak, excess int
}

// maxStreak is the number of steps of a streak that correct drainers may take: a step follows
// each answer, each new state and each timer.
const maxStreak = 20

// drainerStep counts a step of a drainer.
func (c *stepCounts) drainerStep() {
	if c.streak++; c.streak > maxStreak {
		c.excess++
	}
}

// endStreak notes an event that no drainer caused: a write of another source, a strike of a
// fault, or a scripted step.
func (c *stepCounts) endStreak() { c.streak = 0 }

// String returns the counts as text for an error message.
func (c *stepCounts) String() string {
	var parts []string
	for k, n := range c.kinds {
		parts = append(parts, fmt.Sprintf("%s %d", Kind(k), n))
	}
	return fmt.Sprintf("%s; %d drainer steps with no other event", strings.Join(parts, ", "), c.excess)
}

// Livelocked reports whether a drainer causes its own next step again and again: excess steps are
// more than one of livelockDivisor of all steps. Frequent faults alone are no livelock, because
// each strike ends a streak.
func (l *Loop) Livelocked() bool { return l.counts.excess > l.steps/livelockDivisor }

// livelockDivisor makes more than a quarter of all steps a livelock. A drainer that wakes itself
// by its writes takes half of all steps, and the log takes the other half. A drainer that wakes
// itself by its timer takes all steps.
const livelockDivisor = 4
