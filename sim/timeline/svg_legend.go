package timeline

import "slices"

// legend explains the colours of the picture.
func (s svg) legend() {
	x := svgMargin
	s.y += 4
	entry := func(draw func(x, y int), text string) {
		width := 18 + (len([]rune(text))+2)*svgSmall
		if x+width > svgWidth-svgMargin {
			x, s.y = svgMargin, s.y+16
		}
		draw(x, s.y)
		s.text("small", x+18, s.y+9, text)
		x += width
	}
	box := func(class string) func(x, y int) {
		return func(x, y int) { s.rect(class, x, y, 12, 10, "") }
	}
	for p, drawn := range s.drawnPhases() {
		if drawn && Phase(p) != Gone {
			entry(box(Phase(p).String()), Phase(p).String())
		}
	}
	if len(s.nodes) > 0 {
		entry(func(x, y int) { s.circle("replaced", x+6, y+5, 3, "") }, "replacement healthy")
		entry(func(x, y int) { s.line("due", x+6, y-1, x+6, y+11) }, "deadline")
	}
	if slices.ContainsFunc(s.nodes, (*node).wasNotReady) {
		entry(box("lost"), "node down or gone")
	}
	if len(s.run.writes) > 0 {
		entry(box("marks"), "marks written")
		entry(box("ends"), "drains ended")
	}
	if len(s.groups) > 0 {
		entry(box("room"), "room")
		entry(box("tight"), "no room")
		entry(box("below"), "below the limit")
		entry(func(x, y int) { s.line("limit", x, y+5, x+12, y+5) }, "limit: count - max_parallel")
		entry(func(x, y int) { s.line("count", x, y+5, x+12, y+5) }, "count")
	}
	s.y += 12
}

// drawnPhases are the phases in the picture.
func (s svg) drawnPhases() (drawn [PhaseCount]bool) {
	for _, n := range s.nodes {
		for _, w := range n.rows {
			for c, end := range spans(w.changes, s.scale.end) {
				drawn[c.phase] = drawn[c.phase] || s.x(end) > s.x(c.at)
			}
		}
	}
	return drawn
}
