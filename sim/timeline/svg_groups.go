package timeline

import (
	"fmt"
	"time"
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
	s.heading("groups")
	names := s.glyphs.distinct(s.groupNames(), (svgLeft-svgMargin-30)/svgBold)
	for i, g := range s.groups {
		s.lane(i, g, names[g.name()])
	}
	if len(s.hiddenGroups) > 0 {
		s.remark(s.leftOutGroups())
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
	base, h := s.y+groupHeight, heightsOf(g)
	s.open(fmt.Sprintf("group-%d", number), "")
	s.rect("panel", svgLeft, s.y, svgRight-svgLeft, groupHeight, "")
	for l, end := range spans(g.levels, s.scale.end) {
		s.level(g, l, end, base, h)
	}
	s.steps("count", g, base, h, func(l level) int { return l.count })
	s.steps("limit", g, base, h, func(l level) int { return max(0, l.limit) })
	s.steps("healthy", g, base, h, func(l level) int { return l.healthy })
	low := g.lowest()
	s.text("name", svgMargin, s.y+14, name)
	s.text("small muted", svgMargin, s.y+28, "limit "+limit(low))
	s.text("small muted right", svgLeft-svgPadding, s.y+10, fmt.Sprint(h.high))
	s.text("small muted right", svgLeft-svgPadding, base, fmt.Sprint(h.low))
	var remarks []string
	switch {
	case low.below():
		remarks = append(remarks, fmt.Sprintf("%d below at %s", -low.room(), rounded(low.at)))
	case low.exists && !low.whole():
		remarks = append(remarks, fmt.Sprintf("room for %d at %s", low.room(), rounded(low.at)))
	}
	s.after(s.y+14, fmt.Sprintf("lowest %d", low.healthy), remarks...)
	s.close()
	s.y += groupHeight + svgPadding*2
}

// level draws one level of a group. A level below the limit is visible even if it was short.
func (s svgGroups) level(g *group, l level, end time.Duration, base int, h heights) {
	class, width := "room", s.x(end)-s.x(l.at)
	switch {
	case l.below():
		class, width = "below", max(1, width)
	case l.tight():
		class = "tight"
	}
	if width <= 0 || !l.exists {
		return
	}
	title := fmt.Sprintf("%s: %d of %d healthy, limit %d, %s to %s", g.name(), l.healthy, l.count, max(0, l.limit), rounded(l.at), rounded(end))
	if class == "below" { // up to the limit, so that it is visible even if no allocation is healthy
		s.rect("below", s.x(l.at), base-h.y(l.limit), width, h.y(l.limit), title)
		return
	}
	height := max(minHeight, h.y(l.healthy))
	s.rect(class, s.x(l.at), base-height, width, height, title)
}

// steps draws a number of each level as a line.
func (s svgGroups) steps(class string, g *group, base int, h heights, n func(level) int) {
	var p points
	drawn := false
	for l, end := range spans(g.levels, s.scale.end) {
		if !l.exists {
			drawn = false
			continue
		}
		y := base - h.y(n(l))
		if !drawn {
			p.start(s.x(l.at), y)
			drawn = true
		}
		p.to(s.x(l.at), y)
		p.to(s.x(end), y)
	}
	if !p.empty() {
		s.path(class, p.out.String(), "")
	}
}
