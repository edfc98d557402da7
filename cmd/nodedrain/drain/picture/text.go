package picture

import (
	"fmt"
	"io"

	"github.com/seed-f9cf0b39/nodedrain/sim/timeline/drawing"
)

// Text draws the drain for a terminal of that many columns. Zero is [drawing.DefaultColumns]. The error is the writer's.
func (p *Picture) Text(w io.Writer, columns int, ascii bool) error {
	if columns == 0 {
		columns = drawing.DefaultColumns
	}
	t := text{Picture: p, Terminal: drawing.Terminal{Glyphs: drawing.Unicode(), Columns: max(drawing.MinColumns, columns)}}
	if ascii {
		t.Glyphs = drawing.ASCII()
	}
	t.draw()
	_, err := io.WriteString(w, t.String())
	return err
}

// text writes a terminal picture.
type text struct {
	*Picture
	drawing.Terminal
}

func (t *text) draw() {
	t.Scale = t.scale(t.Columns, drawing.BreakColumns)
	t.Label, t.Number, t.Remark = len("confirmed"), len("needed"), len("lowest")
	var names []string
	for _, r := range t.rows {
		t.Label = max(t.Label, len(r.name))
		t.Remark = max(t.Remark, len(r.took))
	}
	for _, g := range t.groups {
		names = append(names, g.name)
		t.Label = max(t.Label, len([]rune(g.name)))
	}
	t.Divide(names)
	t.Axis()
	t.Lane(t.heading, "count", t.Blank(), "took")
	for _, r := range t.rows {
		t.row(r)
	}
	if t.omitted != "" {
		t.Wrap("  ", t.omitted)
	}
	t.groupLanes()
}

// row writes a row of events.
func (t *text) row(r row) {
	cells := t.Blank()
	for _, m := range r.marks {
		from, to := t.Scale.Column(m.at), t.Scale.Column(m.until)
		for x := from; x < to; x++ {
			cells[x] = t.Glyphs.Line
		}
		switch {
		case r.name == "end":
			cells[to] = t.Glyphs.End(t.outcome)
		case from < to && m.open:
			cells[to] = t.Glyphs.Line
		case from < to:
			cells[to] = t.Glyphs.Turn
		case cells[to] == ' ':
			cells[to] = t.Glyphs.Point
		default:
			cells[to] = t.Glyphs.More
		}
	}
	t.Lane(r.name, r.count, cells, r.took)
}

// groupLanes writes the groups and their legend.
func (t *text) groupLanes() {
	if len(t.groups) == 0 {
		return
	}
	drawn := make(map[rune]bool)
	t.Lane("groups", "needed", t.Blank(), "lowest")
	for _, g := range t.groups {
		cells := t.Blank()
		sign := t.Glyphs.Room(g.room())
		for x, to := t.Scale.Column(g.at), t.Scale.Column(g.until); x <= to; x++ {
			cells[x] = sign
		}
		if g.room() > 0 {
			sign = '1'
		}
		drawn[sign] = true
		t.Lane(g.name, fmt.Sprint(max(0, g.Needed)), cells, fmt.Sprint(g.Lowest))
	}
	if t.hidden > 0 {
		t.Wrap("  ", t.leftOut())
	}
	var words []string
	if drawn['1'] {
		words = append(words, "1-9 more healthy than needed")
	}
	if drawn[t.Glyphs.Tight] {
		words = append(words, string(t.Glyphs.Tight)+" as many as needed")
	}
	if drawn[t.Glyphs.Below] {
		words = append(words, string(t.Glyphs.Below)+" fewer than needed")
	}
	t.Words("at the lowest: ", words)
}
