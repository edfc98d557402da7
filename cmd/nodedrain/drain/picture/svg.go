package picture

import (
	"fmt"
	"io"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/timeline/drawing"
)

const (
	rowHeight  = 18
	laneHeight = 30
)

// SVG draws the drain as an SVG, in light or dark colours as the reader prefers. The error is the writer's.
func (p *Picture) SVG(w io.Writer) error {
	page := drawing.NewPage(p.scale(drawing.Right-drawing.Left, drawing.Break))
	s := svg{&page, p}
	frame := drawing.Frame{Page: &page}
	frame.Head(p.title, p.state, outcomeClass(string(p.outcome)), p.facts, "")
	s.legend(frame.Legend())
	frame.Axis()
	s.Heading(p.heading)
	for i, r := range p.rows {
		s.row(i, r)
	}
	if p.omitted != "" {
		s.Remark(p.omitted)
	}
	s.groupLanes()
	s.Bottom = s.Y
	s.Y += drawing.Margin
	_, err := io.WriteString(w, frame.Document(p.title+": "+p.state, s.behind(frame.Behind()), new(drawing.Canvas)))
	return err
}

// svg draws a picture on a page.
type svg struct {
	*drawing.Page
	of *Picture
}

// legend explains the colours of the picture.
func (s svg) legend(l *drawing.Legend) {
	drawn := make(map[string]bool)
	for _, r := range s.of.rows {
		switch {
		case drawn[r.class]:
		case r.class == "request":
			l.Entry(func(x, y int) { s.request(x+6, y-3) }, "request")
		case r.meaning() != "":
			l.Box(r.class, r.meaning())
		}
		drawn[r.class] = true
	}
	if s.deadline() > 0 {
		l.Entry(func(x, y int) { s.Line("due", x+6, y-1, x+6, y+11) }, "deadline")
	}
	if len(s.of.groups) > 0 {
		l.Box("room", "lowest health, above the need")
		l.Box("tight", "as many as needed")
		l.Box("below", "fewer than needed")
	}
	l.End()
}

// deadline is the time of the deadline, or zero if there is none in the picture.
func (s svg) deadline() time.Duration {
	if at := s.of.deadline; at > 0 && at <= s.Scale.End {
		return at
	}
	return 0
}

// request draws the mark of a request.
func (s svg) request(x, y int) {
	s.Path("request", fmt.Sprintf("M%d %dh8l-4 7z", x-4, y+4), "")
}

// row draws a row of events, with their texts where there is room.
func (s svg) row(number int, r row) {
	s.Label("", s.Y+12, r.name)
	for i, m := range r.marks {
		x, width := s.X(m.at), s.X(m.until)-s.X(m.at)
		s.Open(fmt.Sprintf("row-%d-%d", number, i), fmt.Sprintf("%s: %s", drawing.Rounded(max(0, m.at)), m.text))
		switch {
		case r.name == "requests":
			s.request(x, s.Y)
		case width > 0:
			s.Rect(r.class, x, s.Y+3, width, 10, "")
		default:
			s.Rect(r.class, x-1, s.Y+2, 3, 12, "")
		}
		if r.class != stageClass {
			s.beside(r, i)
		}
		s.Close()
	}
	remark := r.took
	if r.count != "" {
		remark = "× " + r.count
	}
	s.Text("small muted", drawing.Right+drawing.Padding*2, s.Y+12, remark)
	s.Y += rowHeight
}

// beside writes the text of a mark after it, or before it if it is the only one.
func (s svg) beside(r row, i int) {
	m, room := r.marks[i], drawing.Right
	if i+1 < len(r.marks) {
		room = s.X(r.marks[i+1].at)
	}
	before, after, width := s.X(m.at)-8, s.X(m.until)+8, len([]rune(m.text))*drawing.Small
	switch {
	case after+width < room:
		s.Text("small halo", after, s.Y+12, m.text)
	case len(r.marks) == 1 && before-width > drawing.Left:
		s.Text("small halo right", before, s.Y+12, m.text)
	}
}

// groupLanes draws the groups.
func (s svg) groupLanes() {
	if len(s.of.groups) == 0 {
		return
	}
	s.Heading("lowest health")
	var names []string
	for _, g := range s.of.groups {
		names = append(names, g.name)
	}
	labels := s.Glyphs.Distinct(names, (drawing.Left-drawing.Margin)/drawing.Bold)
	for i, g := range s.of.groups {
		class := "room"
		switch {
		case g.room() < 0:
			class = "below"
		case g.room() == 0:
			class = "tight"
		}
		s.Open(fmt.Sprintf("group-%d", i), g.text())
		s.Rect("panel", drawing.Left, s.Y, drawing.Right-drawing.Left, laneHeight, "")
		s.Rect(class, s.X(g.at), s.Y+4, max(3, s.X(g.until)-s.X(g.at)), laneHeight-8, "")
		s.Text("name", drawing.Margin, s.Y+12, labels[g.name])
		s.Text("small muted", drawing.Margin, s.Y+25, fmt.Sprintf("%d moved", g.Marked))
		s.After(s.Y+12, fmt.Sprintf("lowest %d", g.Lowest), fmt.Sprintf("%d needed, for %s", max(0, g.Needed), g.lasted()))
		s.Close()
		s.Y += laneHeight + drawing.Padding
	}
	if s.of.hidden > 0 {
		s.Remark(s.of.leftOut())
	}
}

// behind draws the deadline behind the lanes.
func (s svg) behind(c *drawing.Canvas) *drawing.Canvas {
	if at := s.deadline(); at > 0 {
		c.Open("deadline", "deadline at "+drawing.Rounded(at))
		c.Line("due", s.X(at), s.Top, s.X(at), s.Bottom)
		c.Close()
	}
	return c
}
