package timeline

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// The measures of the picture, in pixels.
const (
	svgWidth   = 1280
	svgLeft    = 200 // where the lanes begin
	svgRight   = 1104
	svgMargin  = 24
	svgBreak   = 30
	svgLetter  = 7 // the width of a letter, rounded up
	svgBold    = 8 // of a bold one
	svgSmall   = 6 // of a small one
	svgPadding = 6
)

// SVG draws the run as an SVG, in light or dark colours as the reader prefers. Equal calls
// give equal bytes. The error is the writer's.
func (r *Recorder) SVG(w io.Writer) error {
	p := &page{picture: r.picture(svgRight-svgLeft, svgBreak), glyphs: unicodeGlyphs(), y: 40}
	s := svg{p}
	s.head()
	s.legend()
	s.flags()
	s.axis()
	svgRuns{p}.draw()
	svgNodes{p}.draw()
	svgGroups{p}.draw()
	p.bottom = p.y
	s.list()
	p.y += svgMargin
	_, err := io.WriteString(w, s.document())
	return err
}

// page is a picture that is drawn from top to bottom.
type page struct {
	picture
	glyphs glyphs
	canvas // the shapes
	// y is the top of the next part. The lanes are between top and bottom. The vertical lines of
	// the drainer's entries start at rules. If it is zero, there are none.
	y, top, bottom, rules int
}

// x is the place of a time in the lanes.
func (p *page) x(at time.Duration) int { return svgLeft + p.scale.x(at) }

// heading starts a part of the picture.
func (p *page) heading(text string) {
	p.y += 22
	p.text("heading", svgMargin, p.y, strings.ToUpper(text))
	p.y += svgPadding
}

// remark writes a line about the lanes that are not drawn.
func (p *page) remark(text string) {
	p.y += svgPadding
	p.text("small muted halo", svgMargin, p.y, text)
	p.y += svgPadding
}

// label writes a lane's name before it, shortened if necessary.
func (p *page) label(class string, y int, text string) {
	letter := svgLetter
	if class == "name" {
		letter = svgBold
	}
	p.text(class, svgMargin, y, p.glyphs.fit(text, (svgLeft-svgMargin)/letter))
}

// after writes a name and remarks after a lane, the first baseline at y. It returns the
// height of the remarks.
func (p *page) after(y int, name string, remarks ...string) (height int) {
	const x = svgRight + 2*svgPadding
	p.text("name", x, y, name)
	for _, text := range remarks {
		height += 13
		p.text("small muted", x, y+height, text)
	}
	return height
}

// svg draws the frame of a page: head, legend, axis, and the shapes that cross the lanes.
type svg struct{ *page }

// document joins the parts of the picture. It draws the shapes behind the lanes last, because they
// need the height of the lanes.
func (s svg) document() string {
	verdict, _ := s.verdict()
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n",
		svgWidth, s.y, svgWidth, s.y)
	fmt.Fprintf(&out, "<title>%s: %s</title>\n<style>\n%s</style>\n", escape(s.run.options.Name), escape(verdict), style)
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

// behind draws the grid, the breaks, and a vertical line (a rule) for each entry of the drainer.
func (s svg) behind(c *canvas) {
	for _, b := range s.scale.breaks {
		c.rect("break", s.x(b.from), s.top, s.x(b.to)-s.x(b.from), s.bottom-s.top,
			fmt.Sprintf("%s in which nothing happened, not to scale", rounded(b.to-b.from)))
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

const (
	// denseRules is the number of rules above which the picture draws them faintly.
	denseRules = 80
	// tickGap is the smallest distance between ticks.
	tickGap = 80
)

// before draws the violations in front of the lanes.
func (s svg) before(c *canvas) {
	for i, v := range s.run.violations {
		x := s.x(v.at)
		c.open(fmt.Sprintf("violation-%d", i), v.title())
		c.line("violation", x, s.top, x, s.bottom)
		c.close()
	}
}

// head writes the name, the verdict and the facts of the run.
func (s svg) head() {
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

// flags writes the names of violations above the lanes, each in the first row with space for it.
// If no row has space, the violation has no flag, only its line and its place in the list.
func (s svg) flags() {
	const rows = 3
	var ends [rows]int
	deepest := -1
	s.y += 8
	for _, v := range s.run.violations {
		text := s.glyphs.fit(v.Guarantee, maxWord)
		width := (len([]rune(text)) + 1) * svgBold
		x := min(s.x(v.at)-1, svgRight-width)
		for row := range rows {
			if x <= ends[row] {
				continue
			}
			y := s.y + row*20
			s.rect("flag", x, y, width, 17, v.title())
			s.text("white middle", x+width/2, y+13, text)
			ends[row], deepest = x+width+2, max(deepest, row)
			break
		}
	}
	s.y += (deepest + 1) * 20
}

// axis draws the axis of time.
func (s svg) axis() {
	s.y += 30
	for _, at := range s.scale.ticks(tickGap) {
		s.text("small muted middle", s.x(at), s.y-6, scenario.DurationText(at))
	}
	last := 0
	for _, b := range s.scale.breaks {
		if x := (s.x(b.from) + s.x(b.to)) / 2; x > last {
			s.text("small muted middle", x, s.y-18, "≈ "+rounded(b.to-b.from))
			last = x + 60
		}
	}
	s.top = s.y
	s.line("axis", svgLeft, s.y, svgRight, s.y)
	s.y += svgPadding
}

// list writes the violations.
func (s svg) list() {
	if len(s.run.violations) == 0 {
		return
	}
	s.heading("violations")
	for i, v := range s.run.violations {
		s.y += 18
		if i == maxViolations {
			s.text("muted", svgMargin, s.y, fmt.Sprintf("and %s", counted(len(s.run.violations)-maxViolations, "more violation")))
			break
		}
		s.text("name", svgMargin, s.y, s.glyphs.fit(v.Guarantee, maxWord))
		s.text("muted", svgMargin+maxWord*svgBold+svgPadding*2, s.y, rounded(v.at))
		for j, line := range packed(strings.Fields(v.Text), " ", (svgWidth-svgLeft-svgMargin)/svgLetter) {
			if j > 0 {
				s.y += 16
			}
			s.text("", svgLeft, s.y, line)
		}
	}
	s.y += svgPadding
}
