package timeline

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/sim/timeline/drawing"
)

// svgRuns draws the rows of the whole run: leaders, faults and entries.
type svgRuns struct{ *page }

func (s svgRuns) draw() {
	s.leader()
	s.faultRows()
	s.entryRows()
}

// leader draws the terms of the leaders.
func (s svgRuns) leader() {
	if len(s.run.terms) == 0 {
		return
	}
	s.Y += 4
	s.Label("name", s.Y+14, "leader")
	i := 0
	for t, end := range spans(s.run.terms, s.Scale.End) {
		x, width := s.X(t.at), s.X(end)-s.X(t.at)
		name := serverName(t.server)
		s.Open(fmt.Sprintf("leader-%d", i), fmt.Sprintf("%s leads, %s to %s", name, drawing.Rounded(t.at), drawing.Rounded(end)))
		s.Rect(fmt.Sprintf("server%d", t.server%5), x, s.Y, max(1, width-1), 20, "")
		if width > (len(name)+1)*drawing.Letter {
			s.Text("white", x+6, s.Y+14, name)
		}
		s.Close()
		i++
	}
	s.Y += 20 + drawing.Padding
}

// faultRows draws a row for each fault that has struck.
func (s svgRuns) faultRows() {
	if len(s.run.faults) == 0 {
		return
	}
	s.Heading("faults")
	for _, name := range faultNames(s.run.faults) {
		struck := 0
		for i, f := range s.run.faults {
			if f.name != name {
				continue
			}
			struck++
			title := fmt.Sprintf("%s at %s", f.name, drawing.Rounded(f.at))
			if f.until > f.at {
				title += " to " + drawing.Rounded(f.until)
			}
			if f.target != "" {
				title += ": " + f.target
			}
			s.Open(fmt.Sprintf("fault-%d", i), title)
			if width := s.X(f.until) - s.X(f.at); width > 0 {
				s.Rect("lasting", s.X(f.at), s.Y+5, width, 6, "")
			}
			s.Rect("fault", s.X(f.at)-1, s.Y+2, 3, 12, "")
			s.Close()
		}
		s.Label("", s.Y+12, name)
		s.Text("small muted", drawing.Right+drawing.Padding*2, s.Y+12, fmt.Sprintf("× %d", struck))
		s.Y += 18
	}
}

// entryRows draws the requests of operators and the entries of the drainer.
func (s svgRuns) entryRows() {
	if len(s.run.writes)+len(s.run.requests) == 0 {
		return
	}
	s.Heading("raft entries")
	if len(s.run.requests) > 0 {
		s.requestRow()
	}
	if len(s.run.writes) == 0 {
		return
	}
	s.rules = s.Y
	s.Label("", s.Y+15, "drainer")
	most, marks, ends := 1, 0, 0
	for _, w := range s.run.writes {
		if !w.end {
			most = max(most, w.ids)
		}
	}
	for _, w := range s.run.writes {
		class, height := "marks", 4+16*w.ids/most
		if w.end {
			class, height = "ends", 20
			ends += w.ids
		} else {
			marks += w.ids
		}
		s.Open(fmt.Sprintf("entry-%d", w.index), fmt.Sprintf("entry %d at %s: %s", w.index, drawing.Rounded(w.at), w.text))
		s.Rect(class, s.X(w.at)-1, s.Y+20-height, 3, height, "")
		s.Close()
	}
	s.Line("axis", drawing.Left, s.Y+20, drawing.Right, s.Y+20)
	s.Text("small muted", drawing.Right+drawing.Padding*2, s.Y+8, counted(marks, "mark"))
	s.Text("small muted", drawing.Right+drawing.Padding*2, s.Y+20, counted(ends, "end"))
	s.Y += 20 + drawing.Padding
}

// requestRow draws the requests of operators, with their texts where there is room.
func (s svgRuns) requestRow() {
	s.Label("", s.Y+12, "operator")
	for i, w := range s.run.requests {
		x, room := s.X(w.at), drawing.Right
		for _, next := range s.run.requests[i+1:] {
			if s.X(next.at) > x {
				room = s.X(next.at)
				break
			}
		}
		s.Open(fmt.Sprintf("entry-%d", w.index), fmt.Sprintf("entry %d at %s: %s", w.index, drawing.Rounded(w.at), w.text))
		s.Path("request", fmt.Sprintf("M%d %dh8l-4 7z", x-4, s.Y+4), "")
		alone := i == 0 || s.X(s.run.requests[i-1].at) != x
		if i+1 < len(s.run.requests) && s.X(s.run.requests[i+1].at) == x {
			alone = false
		}
		if alone && x+10+len([]rune(w.text))*drawing.Small < room-4 {
			s.Text("small halo", x+8, s.Y+12, w.text)
		}
		s.Close()
	}
	s.Text("small muted", drawing.Right+drawing.Padding*2, s.Y+12, counted(len(s.run.requests), "request"))
	s.Y += 18
}
