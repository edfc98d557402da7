package timeline

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// canvas writes a part of an SVG. All coordinates are whole numbers.
type canvas struct{ out strings.Builder }

// escape escapes a text for XML. Characters that XML cannot hold become U+FFFD.
func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder does not fail
	return b.String()
}

// open starts a group of shapes with an id and a tooltip; either may be empty.
func (c *canvas) open(id, title string) {
	c.out.WriteString("<g")
	if id != "" {
		fmt.Fprintf(&c.out, ` id="%s"`, id)
	}
	c.out.WriteString(">")
	c.title(title)
}

func (c *canvas) close() { c.out.WriteString("</g>\n") }

func (c *canvas) title(title string) {
	if title != "" {
		fmt.Fprintf(&c.out, "<title>%s</title>", escape(title))
	}
}

// rect draws a rectangle. Its tooltip may be empty.
func (c *canvas) rect(class string, x, y, width, height int, title string) {
	fmt.Fprintf(&c.out, `<rect class="%s" x="%d" y="%d" width="%d" height="%d"`, class, x, y, width, height)
	c.end("rect", title)
}

func (c *canvas) circle(class string, x, y, radius int, title string) {
	fmt.Fprintf(&c.out, `<circle class="%s" cx="%d" cy="%d" r="%d"`, class, x, y, radius)
	c.end("circle", title)
}

func (c *canvas) line(class string, x1, y1, x2, y2 int) {
	fmt.Fprintf(&c.out, `<line class="%s" x1="%d" y1="%d" x2="%d" y2="%d"`, class, x1, y1, x2, y2)
	c.end("line", "")
}

// path draws a path. Its tooltip may be empty.
func (c *canvas) path(class, d, title string) {
	fmt.Fprintf(&c.out, `<path class="%s" d="%s"`, class, d)
	c.end("path", title)
}

// text writes a text that starts at x, with the baseline at y.
func (c *canvas) text(class string, x, y int, text string) {
	fmt.Fprintf(&c.out, `<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, x, y, escape(text))
}

func (c *canvas) end(element, title string) {
	if title == "" {
		c.out.WriteString("/>\n")
		return
	}
	c.out.WriteString(">")
	c.title(title)
	fmt.Fprintf(&c.out, "</%s>\n", element)
}

// points collects the corners of a path of horizontal and vertical lines.
type points struct {
	out  strings.Builder
	x, y int
}

// start starts a new line at a point.
func (p *points) start(x, y int) {
	fmt.Fprintf(&p.out, "M%d %d", x, y)
	p.x, p.y = x, y
}

// to draws a horizontal line to x, and then a vertical one to y.
func (p *points) to(x, y int) {
	if x != p.x {
		fmt.Fprintf(&p.out, "H%d", x)
	}
	if y != p.y {
		fmt.Fprintf(&p.out, "V%d", y)
	}
	p.x, p.y = x, y
}

// empty reports whether the path has no line.
func (p *points) empty() bool { return p.out.Len() == 0 }
