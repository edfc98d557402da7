package drawing

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// Canvas writes a part of an SVG. All coordinates are whole numbers.
type Canvas struct{ out strings.Builder }

// escape escapes a text for XML. Characters that XML cannot hold become U+FFFD.
func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder does not fail
	return b.String()
}

// Open starts a group of shapes with an id and a tooltip; either may be empty.
func (c *Canvas) Open(id, title string) {
	c.out.WriteString("<g")
	if id != "" {
		fmt.Fprintf(&c.out, ` id="%s"`, id)
	}
	c.out.WriteString(">")
	c.title(title)
}

// Close ends the group.
func (c *Canvas) Close() { c.out.WriteString("</g>\n") }

func (c *Canvas) title(title string) {
	if title != "" {
		fmt.Fprintf(&c.out, "<title>%s</title>", escape(title))
	}
}

// Rect draws a rectangle. Its tooltip may be empty.
func (c *Canvas) Rect(class string, x, y, width, height int, title string) {
	fmt.Fprintf(&c.out, `<rect class="%s" x="%d" y="%d" width="%d" height="%d"`, class, x, y, width, height)
	c.end("rect", title)
}

// Circle draws a circle. Its tooltip may be empty.
func (c *Canvas) Circle(class string, x, y, radius int, title string) {
	fmt.Fprintf(&c.out, `<circle class="%s" cx="%d" cy="%d" r="%d"`, class, x, y, radius)
	c.end("circle", title)
}

// Line draws a line.
func (c *Canvas) Line(class string, x1, y1, x2, y2 int) {
	fmt.Fprintf(&c.out, `<line class="%s" x1="%d" y1="%d" x2="%d" y2="%d"`, class, x1, y1, x2, y2)
	c.end("line", "")
}

// Path draws a path. Its tooltip may be empty.
func (c *Canvas) Path(class, d, title string) {
	fmt.Fprintf(&c.out, `<path class="%s" d="%s"`, class, d)
	c.end("path", title)
}

// Text writes a text that starts at x, with the baseline at y.
func (c *Canvas) Text(class string, x, y int, text string) {
	fmt.Fprintf(&c.out, `<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, x, y, escape(text))
}

func (c *Canvas) end(element, title string) {
	if title == "" {
		c.out.WriteString("/>\n")
		return
	}
	c.out.WriteString(">")
	c.title(title)
	fmt.Fprintf(&c.out, "</%s>\n", element)
}

// Points collects the corners of a path of horizontal and vertical lines.
type Points struct {
	out  strings.Builder
	x, y int
}

// Start starts a new line at a point.
func (p *Points) Start(x, y int) {
	fmt.Fprintf(&p.out, "M%d %d", x, y)
	p.x, p.y = x, y
}

// To draws a horizontal line to x, and then a vertical one to y.
func (p *Points) To(x, y int) {
	if x != p.x {
		fmt.Fprintf(&p.out, "H%d", x)
	}
	if y != p.y {
		fmt.Fprintf(&p.out, "V%d", y)
	}
	p.x, p.y = x, y
}

// String returns the lines as the data of a path.
func (p *Points) String() string { return p.out.String() }

// Empty reports whether the path has no line.
func (p *Points) Empty() bool { return p.out.Len() == 0 }
