package drawing

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// The measures of an SVG, in pixels.
const (
	Width   = 1280
	Left    = 200 // where the lanes begin
	Right   = 1104
	Margin  = 24
	Break   = 30 // the width of a break in the scale
	Letter  = 7  // the width of a letter, rounded up
	Bold    = 8  // of a bold one
	Small   = 6  // of a small one
	Padding = 6
	// tickGap is the smallest distance between ticks.
	tickGap = 80
)

// Page is an SVG that is drawn from top to bottom.
type Page struct {
	Glyphs Glyphs
	Scale  Scale
	Canvas // the shapes
	// Y is the top of the next part. The lanes are between Top and Bottom.
	Y, Top, Bottom int
}

// NewPage returns an empty page.
func NewPage(s Scale) Page { return Page{Glyphs: Unicode(), Scale: s, Y: 40} }

// X is the place of a time in the lanes.
func (p *Page) X(at time.Duration) int { return Left + p.Scale.X(at) }

// Heading starts a part of the page.
func (p *Page) Heading(text string) {
	p.Y += 22
	p.Text("heading", Margin, p.Y, strings.ToUpper(text))
	p.Y += Padding
}

// Remark writes a line about the lanes that are not drawn.
func (p *Page) Remark(text string) {
	p.Y += Padding
	p.Text("small muted halo", Margin, p.Y, text)
	p.Y += Padding
}

// Label writes a lane's name before it, shortened if necessary.
func (p *Page) Label(class string, y int, text string) {
	letter := Letter
	if class == "name" {
		letter = Bold
	}
	p.Text(class, Margin, y, p.Glyphs.Fit(text, (Left-Margin)/letter))
}

// After writes a name and remarks after a lane, the first baseline at y. It returns the
// height of the remarks.
func (p *Page) After(y int, name string, remarks ...string) (height int) {
	const x = Right + 2*Padding
	p.Text("name", x, y, name)
	for _, text := range remarks {
		height += 13
		p.Text("small muted", x, y+height, text)
	}
	return height
}

// Frame draws what every page has around its lanes.
type Frame struct{ *Page }

// Head writes a title, a verdict on a coloured field, and facts. Code is a command, or empty.
func (f Frame) Head(title, verdict, class string, facts []string, code string) {
	verdict = f.Glyphs.Fit(verdict, 40)
	width := (len([]rune(verdict)) + 3) * Letter
	f.Text("title", Margin, f.Y, f.Glyphs.Fit(title, 70))
	fmt.Fprintf(&f.out, `<rect class="%s" x="%d" y="%d" width="%d" height="24" rx="12"/>`+"\n", class, Width-Margin-width, f.Y-18, width)
	f.Text("middle white", Width-Margin-width/2, f.Y-2, verdict)
	f.Y += 22
	f.Text("muted", Margin, f.Y, strings.Join(facts, " · "))
	if code != "" {
		for _, line := range Packed(strings.Fields(code), " ", (Width-2*Margin)/(Letter+1)) {
			f.Y += 18
			f.Text("mono muted", Margin, f.Y, line)
		}
	}
	f.Y += 14
}

// Legend explains the shapes of a page.
type Legend struct {
	page *Page
	x    int
}

// Legend begins the legend. [Legend.End] ends it.
func (f Frame) Legend() *Legend {
	f.Y += 4
	return &Legend{page: f.Page, x: Margin}
}

// Entry adds a shape with its meaning.
func (l *Legend) Entry(draw func(x, y int), text string) {
	width := 18 + (len([]rune(text))+2)*Small
	if l.x+width > Width-Margin {
		l.x, l.page.Y = Margin, l.page.Y+16
	}
	draw(l.x, l.page.Y)
	l.page.Text("small", l.x+18, l.page.Y+9, text)
	l.x += width
}

// Box adds a colour with its meaning.
func (l *Legend) Box(class, text string) {
	l.Entry(func(x, y int) { l.page.Rect(class, x, y, 12, 10, "") }, text)
}

// End ends the legend.
func (l *Legend) End() { l.page.Y += 12 }

// Axis draws the axis of time.
func (f Frame) Axis() {
	f.Y += 30
	for _, at := range f.Scale.Ticks(tickGap) {
		f.Text("small muted middle", f.X(at), f.Y-6, scenario.DurationText(at))
	}
	last := 0
	for _, b := range f.Scale.Breaks {
		if x := (f.X(b.From) + f.X(b.To)) / 2; x > last {
			f.Text("small muted middle", x, f.Y-18, "≈ "+Rounded(b.To-b.From))
			last = x + 60
		}
	}
	f.Top = f.Y
	f.Line("axis", Left, f.Y, Right, f.Y)
	f.Y += Padding
}

// Behind returns a canvas with what is behind the lanes: the page, the grid and the breaks.
func (f Frame) Behind() *Canvas {
	c := new(Canvas)
	c.Rect("page", 0, 0, Width, f.Y, "")
	for _, b := range f.Scale.Breaks {
		c.Rect("break", f.X(b.From), f.Top, f.X(b.To)-f.X(b.From), f.Bottom-f.Top,
			fmt.Sprintf("%s in which nothing happened, not to scale", Rounded(b.To-b.From)))
	}
	for _, at := range f.Scale.Ticks(tickGap) {
		c.Line("grid", f.X(at), f.Top, f.X(at), f.Bottom)
	}
	return c
}

// Document returns the SVG. Behind and before are what is behind the lanes and in front of them. They are
// drawn last, because they need the height of the lanes.
func (f Frame) Document(title string, behind, before *Canvas) string {
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n", Width, f.Y, Width, f.Y)
	fmt.Fprintf(&out, "<title>%s</title>\n<style>\n%s</style>\n", escape(title), style)
	out.WriteString(behind.out.String())
	out.WriteString(f.out.String())
	out.WriteString(before.out.String())
	out.WriteString("</svg>\n")
	return out.String()
}
