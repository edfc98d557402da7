package world

import (
	"errors"
	"fmt"
	"strings"
)

// ErrTooManySteps says that a world has taken as many steps as it may; see
// [World.InCircles].
var ErrTooManySteps = errors.New("too many steps")

// spent counts what a world's steps are spent on.
type spent struct {
	kinds [KindCount]int
	// alone is how many steps drainers have taken in a row, and circling how many of all
	// they have taken in rows that were too long.
	alone, circling int
}

// enoughAlone is how many steps drainers take in a row for a reason: what was written is
// answered and looked at, and times come that are waited for.
const enoughAlone = 20

// drainer notes a step of a drainer.
func (s *spent) drainer() {
	if s.alone++; s.alone > enoughAlone {
		s.circling++
	}
}

// outside notes that something happens that no drainer has done: somebody else wrote, a
// fault struck, a script went on.
func (s *spent) outside() { s.alone = 0 }

// String says what the steps are spent on.
func (s *spent) String() string {
	var parts []string
	for k, n := range s.kinds {
		parts = append(parts, fmt.Sprintf("%s %d", Kind(k), n))
	}
	return fmt.Sprintf("%s; %d of the drainers' while nothing else happened", strings.Join(parts, ", "), s.circling)
}

// InCircles reports whether the world's drainers go round in circles: many of its steps are
// theirs, one after the other, while nobody else does anything. In a storm of faults they
// are not: each of their steps has somebody else to ask for it.
func (w *World) InCircles() bool { return w.spent.circling > w.steps/circlesShare }

// circlesShare: a drainer that circles by writing takes every second step, and the log the
// other; one that circles by its timer takes all.
const circlesShare = 4
