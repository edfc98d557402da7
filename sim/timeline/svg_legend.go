package timeline

import (
	"slices"
)

// legend explains the colours of the picture.
func (s svg) legend() {
	l := s.frame().Legend()
	for p, drawn := range s.drawnPhases() {
		if drawn && Phase(p) != Gone {
			l.Box(Phase(p).String(), Phase(p).String())
		}
	}
	if len(s.nodes) > 0 {
		l.Entry(func(x, y int) { s.Circle("replaced", x+6, y+5, 3, "") }, "replacement healthy")
		l.Entry(func(x, y int) { s.Line("due", x+6, y-1, x+6, y+11) }, "deadline")
	}
	if slices.ContainsFunc(s.nodes, (*node).wasNotReady) {
		l.Box("lost", "node down or gone")
	}
	if len(s.run.writes) > 0 {
		l.Box("marks", "marks written")
		l.Box("ends", "drains ended")
	}
	if len(s.groups) > 0 {
		l.Box("room", "room")
		l.Box("tight", "no room")
		l.Box("below", "below the limit")
		l.Entry(func(x, y int) { s.Line("limit", x, y+5, x+12, y+5) }, "limit: count - max_parallel")
		l.Entry(func(x, y int) { s.Line("count", x, y+5, x+12, y+5) }, "count")
	}
	l.End()
}

// drawnPhases are the phases in the picture.
func (s svg) drawnPhases() (drawn [PhaseCount]bool) {
	for _, n := range s.nodes {
		for _, w := range n.rows {
			for c, end := range spans(w.changes, s.Scale.End) {
				drawn[c.phase] = drawn[c.phase] || s.X(end) > s.X(c.at)
			}
		}
	}
	return drawn
}
