package timeline

import (
	"fmt"
	"io"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/sim/timeline/drawing"
)

// SVG draws the run as an SVG, in light or dark colours as the reader prefers. Equal calls
// give equal bytes. The error is the writer's.
func (r *Recorder) SVG(w io.Writer) error {
	shown, scale := r.picture(drawing.Right-drawing.Left, drawing.Break)
	p := &page{picture: shown, Page: drawing.NewPage(scale)}
	s := svg{p}
	s.head()
	s.legend()
	s.flags()
	s.frame().Axis()
	svgRuns{p}.draw()
	svgNodes{p}.draw()
	svgGroups{p}.draw()
	p.Bottom = p.Y
	s.list()
	p.Y += drawing.Margin
	verdict, _ := s.verdict()
	_, err := io.WriteString(w, s.frame().Document(s.run.options.Name+": "+verdict, s.behind(), s.before()))
	return err
}

// page is a picture on a page.
type page struct {
	picture
	drawing.Page
	// rules is where the vertical lines of the drainer's entries start. If it is zero, there are none.
	rules int
}

// svg draws the frame of a page: head, legend, axis, and the shapes that cross the lanes.
type svg struct{ *page }

func (s svg) frame() drawing.Frame { return drawing.Frame{Page: &s.Page} }

// behind draws a vertical line (a rule) for each entry of the drainer.
func (s svg) behind() *drawing.Canvas {
	c := s.frame().Behind()
	class, last := "rule", -1
	if len(s.run.writes) > denseRules {
		class = "rule dense"
	}
	for _, w := range s.run.writes {
		if x := s.X(w.at); x != last && s.rules > 0 {
			c.Line(class, x, s.rules, x, s.Bottom)
			last = x
		}
	}
	return c
}

// denseRules is the number of rules above which the picture draws them faintly.
const denseRules = 80

// before draws the violations in front of the lanes.
func (s svg) before() *drawing.Canvas {
	c := new(drawing.Canvas)
	for i, v := range s.run.violations {
		x := s.X(v.at)
		c.Open(fmt.Sprintf("violation-%d", i), v.title())
		c.Line("violation", x, s.Top, x, s.Bottom)
		c.Close()
	}
	return c
}

// head writes the name, the verdict and the facts of the run.
func (s svg) head() {
	verdict, well := s.verdict()
	class := "good"
	if !well {
		class = "bad"
	}
	s.frame().Head(s.run.options.Name, verdict, class, s.facts(), s.run.options.Replay)
}

// flags writes the names of violations above the lanes, each in the first row with space for it.
// If no row has space, the violation has no flag, only its line and its place in the list.
func (s svg) flags() {
	const rows = 3
	var ends [rows]int
	deepest := -1
	s.Y += 8
	for _, v := range s.run.violations {
		text := s.Glyphs.Fit(v.Guarantee, maxWord)
		width := (len([]rune(text)) + 1) * drawing.Bold
		x := min(s.X(v.at)-1, drawing.Right-width)
		for row := range rows {
			if x <= ends[row] {
				continue
			}
			y := s.Y + row*20
			s.Rect("flag", x, y, width, 17, v.title())
			s.Text("white middle", x+width/2, y+13, text)
			ends[row], deepest = x+width+2, max(deepest, row)
			break
		}
	}
	s.Y += (deepest + 1) * 20
}

// list writes the violations.
func (s svg) list() {
	if len(s.run.violations) == 0 {
		return
	}
	s.Heading("violations")
	for i, v := range s.run.violations {
		s.Y += 18
		if i == maxViolations {
			s.Text("muted", drawing.Margin, s.Y, fmt.Sprintf("and %s", counted(len(s.run.violations)-maxViolations, "more violation")))
			break
		}
		s.Text("name", drawing.Margin, s.Y, s.Glyphs.Fit(v.Guarantee, maxWord))
		s.Text("muted", drawing.Margin+maxWord*drawing.Bold+drawing.Padding*2, s.Y, drawing.Rounded(v.at))
		for j, line := range drawing.Packed(strings.Fields(v.Text), " ", (drawing.Width-drawing.Left-drawing.Margin)/drawing.Letter) {
			if j > 0 {
				s.Y += 16
			}
			s.Text("", drawing.Left, s.Y, line)
		}
	}
	s.Y += drawing.Padding
}
