package timeline

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// The measures of the picture, in pixels.
const (
	svgWidth   = 1280
	svgLeft    = 200 // where the lanes begin
	svgRight   = 1104
	svgMargin  = 24
	svgBreak   = 30
	svgLetter  = 7 // how wide a letter is at most, on average
	svgBold    = 8 // and a bold one
	svgSmall   = 6 // and a small one
	svgPadding = 6
)

// SVG draws the run as an SVG, light or dark as its surroundings are. It is the same
// to the byte for the same calls. The error is the writer's.
func (r *Recorder) SVG(w io.Writer) error {
	s := &svg{picture: r.picture(svgRight-svgLeft, svgBreak), y: 40}
	s.glyphs = unicodeGlyphs()
	s.head()
	s.legend()
	s.flags()
	s.axis()
	s.leader()
	s.faultRows()
	s.entryRows()
	s.nodeLanes()
	s.groupLanes()
	s.bottom = s.y
	s.list()
	s.y += svgMargin
	_, err := io.WriteString(w, s.document())
	return err
}

// svg is a picture being drawn from top to bottom.
type svg struct {
	picture
	glyphs glyphs
	canvas // the marks
	// labels are what is shown of the names of nodes.
	labels map[string]string
	// y is how far it has come, top where the lanes begin and bottom where they end,
	// rules where the rules of the drainer's entries begin.
	y, top, bottom, rules int
}

// x is where a time is in the lanes.
func (s *svg) x(at time.Duration) int { return svgLeft + s.scale.x(at) }

// document puts the picture together: what lies behind the marks can only be drawn
// when it is known how far down they go.
func (s *svg) document() string {
	verdict, _ := s.verdict()
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n",
		svgWidth, s.y, svgWidth, s.y)
	fmt.Fprintf(&out, "<title>%s: %s</title>\n<style>\n%s</style>\n", escape(s.run.options.Name), escape(verdict), style())
	var behind, before canvas
	behind.rect("page", 0, 0, svgWidth, s.y, "")
	s.behind(&behind)
	s.before(&before)
	out.WriteString(behind.out.String())
	out.WriteString(s.out.String())
	out.WriteString(before.out.String())
	out.WriteString("</svg>\n")
	return out.String()
}

// behind draws the grid, the breaks, and the rules.
func (s *svg) behind(c *canvas) {
	for _, b := range s.scale.breaks {
		c.rect("break", s.x(b.from), s.top, s.x(b.to)-s.x(b.from), s.bottom-s.top,
			fmt.Sprintf("%s in which nothing happened, not to scale", about(b.to-b.from)))
	}
	for _, at := range s.scale.ticks(tickGap) {
		c.line("grid", s.x(at), s.top, s.x(at), s.bottom)
	}
	class, last := "rule", -1
	if len(s.run.writes) > denseRules {
		class = "rule dense"
	}
	for _, w := range s.run.writes {
		if x := s.x(w.at); x != last && s.rules > 0 {
			c.line(class, x, s.rules, x, s.bottom)
			last = x
		}
	}
}

// Rules closer together than this are made faint, and ticks are no closer.
const (
	denseRules = 80
	tickGap    = 80
)

// before draws the violations, over everything.
func (s *svg) before(c *canvas) {
	for i, v := range s.run.violations {
		x := s.x(v.at)
		c.open(fmt.Sprintf("violation-%d", i), fmt.Sprintf("%s at %s: %s", v.Guarantee, about(v.at), v.Text))
		c.line("violation", x, s.top, x, s.bottom)
		c.close()
	}
}

// head draws what the run was.
func (s *svg) head() {
	o := s.run.options
	verdict, well := s.verdict()
	class := "good"
	if !well {
		class = "bad"
	}
	verdict = s.glyphs.fit(verdict, 40)
	width := (len([]rune(verdict)) + 3) * svgLetter
	s.text("title", svgMargin, s.y, s.glyphs.fit(o.Name, 70))
	s.out.WriteString(fmt.Sprintf(`<rect class="%s" x="%d" y="%d" width="%d" height="24" rx="12"/>`+"\n", class, svgWidth-svgMargin-width, s.y-18, width))
	s.text("middle white", svgWidth-svgMargin-width/2, s.y-2, verdict)
	s.y += 22
	s.text("muted", svgMargin, s.y, strings.Join(s.facts(), " · "))
	if o.Replay != "" {
		for _, line := range packed(strings.Fields(o.Replay), " ", (svgWidth-2*svgMargin)/(svgLetter+1)) {
			s.y += 18
			s.text("mono muted", svgMargin, s.y, line)
		}
	}
	s.y += 14
}

// axis draws the times.
func (s *svg) axis() {
	s.y += 30
	for _, at := range s.scale.ticks(tickGap) {
		s.text("small muted middle", s.x(at), s.y-6, brief(at))
	}
	last := 0
	for _, b := range s.scale.breaks {
		if x := (s.x(b.from) + s.x(b.to)) / 2; x > last {
			s.text("small muted middle", x, s.y-18, "≈ "+about(b.to-b.from))
			last = x + 60
		}
	}
	s.top = s.y
	s.line("axis", svgLeft, s.y, svgRight, s.y)
	s.y += svgPadding
}

// heading begins a part of the picture.
func (s *svg) heading(text string) {
	s.y += 22
	s.text("heading", svgMargin, s.y, strings.ToUpper(text))
	s.y += svgPadding
}

// remark says what has no lane.
func (s *svg) remark(text string) {
	s.y += svgPadding
	s.text("small muted halo", svgMargin, s.y, text)
	s.y += svgPadding
}

// label writes a lane's name before it, shortened if it must be.
func (s *svg) label(class string, y int, text string) {
	letter := svgLetter
	if class == "name" {
		letter = svgBold
	}
	s.text(class, svgMargin, y, s.glyphs.fit(text, (svgLeft-svgMargin)/letter))
}

// after writes lines of remarks after a lane, the first baseline at y. They take so
// much room below it as is returned.
func (s *svg) after(y int, name string, remarks ...string) (height int) {
	const x = svgRight + 2*svgPadding
	s.text("name", x, y, name)
	for _, text := range remarks {
		height += 13
		s.text("small muted", x, y+height, text)
	}
	return height
}

// list writes what was violated.
func (s *svg) list() {
	if len(s.run.violations) == 0 {
		return
	}
	s.heading("violations")
	for i, v := range s.run.violations {
		s.y += 18
		if i == many {
			s.text("muted", svgMargin, s.y, fmt.Sprintf("and %s", counted(len(s.run.violations)-many, "more violation")))
			break
		}
		s.text("name", svgMargin, s.y, s.glyphs.fit(v.Guarantee, maxWord))
		s.text("muted", svgMargin+maxWord*svgBold+svgPadding*2, s.y, about(v.at))
		for j, line := range packed(strings.Fields(v.Text), " ", (svgWidth-svgLeft-svgMargin)/svgLetter) {
			if j > 0 {
				s.y += 16
			}
			s.text("", svgLeft, s.y, line)
		}
	}
	s.y += svgPadding
}
