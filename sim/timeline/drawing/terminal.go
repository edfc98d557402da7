package drawing

import (
	"fmt"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// The widths of a picture in a terminal.
const (
	DefaultColumns = 100
	MinColumns     = 60
	// BreakColumns is the width of a break in the scale.
	BreakColumns = 3
)

// Terminal draws lanes below one axis of time.
type Terminal struct {
	Glyphs Glyphs
	Scale  Scale
	// Columns is the width of the picture. Label, Number and Remark are the widths of what is around a
	// lane, with a space between each two.
	Columns, Label, Number, Remark int
	// names are the labels of the lanes with names that may be too long.
	names map[string]string
	out   strings.Builder
}

// Divide divides the width. It shortens the names of lanes to different labels.
func (t *Terminal) Divide(names []string) {
	for i, name := range names {
		names[i] = t.Glyphs.Clean(name)
	}
	t.Label = min(t.Label, t.Columns/4)
	t.names = t.Glyphs.Distinct(names, t.Label)
	t.Scale.Width = t.Columns - t.Label - t.Number - t.Remark - 3
}

// String returns the picture.
func (t *Terminal) String() string { return t.out.String() }

// Write writes a line without spaces at its end.
func (t *Terminal) Write(line string) {
	t.out.WriteString(strings.TrimRight(line, " "))
	t.out.WriteByte('\n')
}

// Lane writes a lane with its label, number and remark.
func (t *Terminal) Lane(label, number string, cells []rune, remark string) {
	label = t.Glyphs.Clean(label)
	if name, is := t.names[label]; is {
		label = name
	}
	label = t.Glyphs.Fit(label, t.Label)
	label += strings.Repeat(" ", t.Label-len([]rune(label)))
	t.Write(fmt.Sprintf("%s %*s %s %*s", label, t.Number, number, string(cells), t.Remark, remark))
}

// Blank is an empty lane.
func (t *Terminal) Blank() []rune { return []rune(strings.Repeat(" ", t.Scale.Width)) }

// Wrap writes a text after a word, in lines that fit.
func (t *Terminal) Wrap(word, text string) { t.list(word, " ", strings.Fields(text)) }

// Words writes words after a title, in lines that fit, unless there are none.
func (t *Terminal) Words(title string, words []string) {
	if len(words) > 0 {
		t.list(title, "  ", words)
	}
}

// list writes things after a word, in lines that fit.
func (t *Terminal) list(word, between string, things []string) {
	start := strings.Repeat(" ", len([]rune(word)))
	for i, line := range Packed(things, between, t.Columns-len(start)) {
		if i > 0 {
			word = start
		}
		t.Write(word + line)
	}
}

// Packed joins things to lines of at most this number of letters. It breaks only a thing that
// is longer than a line.
func Packed(things []string, between string, most int) []string {
	var lines []string
	line := []rune(nil)
	for _, thing := range things {
		next := []rune(thing)
		if len(line) > 0 && len(line)+len(between)+len(next) <= most {
			line = append(append(line, []rune(between)...), next...)
			continue
		}
		if len(line) > 0 {
			lines = append(lines, string(line))
		}
		for ; len(next) > most; next = next[most:] {
			lines = append(lines, string(next[:most]))
		}
		line = next
	}
	return append(lines, string(line))
}

// Axis writes the axis of time.
func (t *Terminal) Axis() {
	cells := t.Blank()
	for _, at := range t.Scale.Ticks(10) {
		word := []rune(scenario.DurationText(at))
		if x := t.Scale.Column(at); x+len(word) <= len(cells) {
			copy(cells[x:], word)
		}
	}
	for _, b := range t.Scale.Breaks {
		for x, to := t.Scale.Column(b.From)+1, t.Scale.Column(b.To); x < to; x++ {
			cells[x] = t.Glyphs.Skip
		}
	}
	t.Lane("", "", cells, "")
}
