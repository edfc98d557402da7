package timeline

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/timeline/drawing"
)

const (
	groupHeight = 44
	minHeight   = 3 // so that zero is visible
)

// svgGroups draws the numbers of healthy allocations of groups.
type svgGroups struct{ *page }

func (s svgGroups) draw() {
	if len(s.groups) == 0 {
		return
	}
	s.Heading("groups")
	names := s.Glyphs.Distinct(s.groupNames(), (drawing.Left-drawing.Margin-30)/drawing.Bold)
	for i, g := range s.groups {
		s.lane(i, g, names[g.name()])
	}
	if len(s.hiddenGroups) > 0 {
		s.Remark(s.leftOutGroups())
	}
}

// heights is the range of counts that a group's lane shows.
type heights struct{ low, high int }

// heightsOf returns the range of a group's lane. The range starts at zero if the highest count is
// small, and otherwise a little below the lowest count.
func heightsOf(g *group) heights {
	h := heights{low: g.levels[0].healthy, high: 1}
	for _, l := range g.levels {
		h.low = min(h.low, l.healthy)
		h.high = max(h.high, l.healthy, l.count)
		if l.exists {
			h.low = min(h.low, max(0, l.limit))
		}
	}
	if h.low = h.low - 1 - (h.high-h.low)/8; h.low < 0 || h.high <= 12 {
		h.low = 0
	}
	return h
}

// y is the height of a count above the lane's base.
func (h heights) y(n int) int {
	return (min(max(n, h.low), h.high) - h.low) * (groupHeight - 4) / (h.high - h.low)
}

// lane draws one group.
func (s svgGroups) lane(number int, g *group, name string) {
	base, h := s.Y+groupHeight, heightsOf(g)
	s.Open(fmt.Sprintf("group-%d", number), "")
	s.Rect("panel", drawing.Left, s.Y, drawing.Right-drawing.Left, groupHeight, "")
	for l, end := range spans(g.levels, s.Scale.End) {
		s.level(g, l, end, base, h)
	}
	s.steps("count", g, base, h, func(l level) int { return l.count })
	s.steps("limit", g, base, h, func(l level) int { return max(0, l.limit) })
	s.steps("healthy", g, base, h, func(l level) int { return l.healthy })
	low := g.lowest()
	s.Text("name", drawing.Margin, s.Y+14, name)
	s.Text("small muted", drawing.Margin, s.Y+28, "limit "+limit(low))
	s.Text("small muted right", drawing.Left-drawing.Padding, s.Y+10, fmt.Sprint(h.high))
	s.Text("small muted right", drawing.Left-drawing.Padding, base, fmt.Sprint(h.low))
	var remarks []string
	switch {
	case low.below():
		remarks = append(remarks, fmt.Sprintf("%d below at %s", -low.room(), drawing.Rounded(low.at)))
	case low.exists && !low.whole():
		remarks = append(remarks, fmt.Sprintf("room for %d at %s", low.room(), drawing.Rounded(low.at)))
	}
	s.After(s.Y+14, fmt.Sprintf("lowest %d", low.healthy), remarks...)
	s.Close()
	s.Y += groupHeight + drawing.Padding*2
}

// level draws one level of a group. A level below the limit is visible even if it was short.
func (s svgGroups) level(g *group, l level, end time.Duration, base int, h heights) {
	class, width := "room", s.X(end)-s.X(l.at)
	switch {
	case l.below():
		class, width = "below", max(1, width)
	case l.tight():
		class = "tight"
	}
	if width <= 0 || !l.exists {
		return
	}
	title := fmt.Sprintf("%s: %d of %d healthy, limit %d, %s to %s", g.name(), l.healthy, l.count, max(0, l.limit), drawing.Rounded(l.at), drawing.Rounded(end))
	if class == "below" { // up to the limit, so that it is visible even if no allocation is healthy
		s.Rect("below", s.X(l.at), base-h.y(l.limit), width, h.y(l.limit), title)
		return
	}
	height := max(minHeight, h.y(l.healthy))
	s.Rect(class, s.X(l.at), base-height, width, height, title)
}

// steps draws a number of each level as a line.
func (s svgGroups) steps(class string, g *group, base int, h heights, n func(level) int) {
	var p drawing.Points
	drawn := false
	for l, end := range spans(g.levels, s.Scale.End) {
		if !l.exists {
			drawn = false
			continue
		}
		y := base - h.y(n(l))
		if !drawn {
			p.Start(s.X(l.at), y)
			drawn = true
		}
		p.To(s.X(l.at), y)
		p.To(s.X(end), y)
	}
	if !p.Empty() {
		s.Path(class, p.String(), "")
	}
}
