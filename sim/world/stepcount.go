package world

import (
	"errors"
	"fmt"
	"strings"
)

// ErrTooManySteps says that a world has reached [Options].MaxSteps; see [Loop.InCircles].
var ErrTooManySteps = errors.New("too many steps")

// stepCounts counts the steps of a world.
type stepCounts struct {
	kinds [KindCount]int
	// alone counts the drainers' steps since the last event that no drainer caused.
	// circling counts those of them, in the whole run, beyond the first maxAlone in a row.
	alone, circling int
}

// maxAlone is the number of steps that drainers may take in a row for a good reason: a
// step follows each answer, each new state and each timer.
const maxAlone = 20

// drainer counts a step of a drainer.
func (c *stepCounts) drainer() {
	if c.alone++; c.alone > maxAlone {
		c.circling++
	}
}

// outside notes an event that no drainer caused: a write of another source, a strike of a
// fault, or a scripted step.
func (c *stepCounts) outside() { c.alone = 0 }

// String returns the counts in words.
func (c *stepCounts) String() string {
	var parts []string
	for k, n := range c.kinds {
		parts = append(parts, fmt.Sprintf("%s %d", Kind(k), n))
	}
	return fmt.Sprintf("%s; %d of the drainers' while nothing else happened", strings.Join(parts, ", "), c.circling)
}

// InCircles reports whether the drainers wake themselves again and again: many steps are
// theirs, in a row, while nothing else happens. Frequent faults alone do not count, because
// each fault ends the row.
func (l *Loop) InCircles() bool { return l.counts.circling > l.steps/circlesShare }

// circlesShare is below the share of any circling drainer. A drainer that circles by writing
// takes every second step, because the log takes the other; by its timer it takes all.
const circlesShare = 4
