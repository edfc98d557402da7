package timeline

import "fmt"

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
	s.y += 4
	s.label("name", s.y+14, "leader")
	i := 0
	for t, end := range spans(s.run.terms, s.scale.end) {
		x, width := s.x(t.at), s.x(end)-s.x(t.at)
		name := serverName(t.server)
		s.open(fmt.Sprintf("leader-%d", i), fmt.Sprintf("%s leads, %s to %s", name, rounded(t.at), rounded(end)))
		s.rect(fmt.Sprintf("server%d", t.server%5), x, s.y, max(1, width-1), 20, "")
		if width > (len(name)+1)*svgLetter {
			s.text("white", x+6, s.y+14, name)
		}
		s.close()
		i++
	}
	s.y += 20 + svgPadding
}

// faultRows draws a row for each fault that has struck.
func (s svgRuns) faultRows() {
	if len(s.run.faults) == 0 {
		return
	}
	s.heading("faults")
	for _, name := range faultNames(s.run.faults) {
		struck := 0
		for i, f := range s.run.faults {
			if f.name != name {
				continue
			}
			struck++
			title := fmt.Sprintf("%s at %s", f.name, rounded(f.at))
			if f.until > f.at {
				title += " to " + rounded(f.until)
			}
			if f.target != "" {
				title += ": " + f.target
			}
			s.open(fmt.Sprintf("fault-%d", i), title)
			if width := s.x(f.until) - s.x(f.at); width > 0 {
				s.rect("lasting", s.x(f.at), s.y+5, width, 6, "")
			}
			s.rect("fault", s.x(f.at)-1, s.y+2, 3, 12, "")
			s.close()
		}
		s.label("", s.y+12, name)
		s.text("small muted", svgRight+svgPadding*2, s.y+12, fmt.Sprintf("× %d", struck))
		s.y += 18
	}
}

// entryRows draws the requests of operators and the entries of the drainer.
func (s svgRuns) entryRows() {
	if len(s.run.writes)+len(s.run.requests) == 0 {
		return
	}
	s.heading("raft entries")
	if len(s.run.requests) > 0 {
		s.requestRow()
	}
	if len(s.run.writes) == 0 {
		return
	}
	s.rules = s.y
	s.label("", s.y+15, "drainer")
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
		s.open(fmt.Sprintf("entry-%d", w.index), fmt.Sprintf("entry %d at %s: %s", w.index, rounded(w.at), w.text))
		s.rect(class, s.x(w.at)-1, s.y+20-height, 3, height, "")
		s.close()
	}
	s.line("axis", svgLeft, s.y+20, svgRight, s.y+20)
	s.text("small muted", svgRight+svgPadding*2, s.y+8, counted(marks, "mark"))
	s.text("small muted", svgRight+svgPadding*2, s.y+20, counted(ends, "end"))
	s.y += 20 + svgPadding
}

// requestRow draws the requests of operators, with their texts where there is room.
func (s svgRuns) requestRow() {
	s.label("", s.y+12, "operator")
	for i, w := range s.run.requests {
		x, room := s.x(w.at), svgRight
		for _, next := range s.run.requests[i+1:] {
			if s.x(next.at) > x {
				room = s.x(next.at)
				break
			}
		}
		s.open(fmt.Sprintf("entry-%d", w.index), fmt.Sprintf("entry %d at %s: %s", w.index, rounded(w.at), w.text))
		s.path("request", fmt.Sprintf("M%d %dh8l-4 7z", x-4, s.y+4), "")
		alone := i == 0 || s.x(s.run.requests[i-1].at) != x
		if i+1 < len(s.run.requests) && s.x(s.run.requests[i+1].at) == x {
			alone = false
		}
		if alone && x+10+len([]rune(w.text))*svgSmall < room-4 {
			s.text("small halo", x+8, s.y+12, w.text)
		}
		s.close()
	}
	s.text("small muted", svgRight+svgPadding*2, s.y+12, counted(len(s.run.requests), "request"))
	s.y += 18
}
