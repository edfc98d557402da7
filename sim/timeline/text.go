package timeline

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// TextOptions say how a terminal picture is drawn.
type TextOptions struct {
	// Columns is how wide it may be; zero is [DefaultColumns], and less than
	// [MinColumns] is that many.
	Columns int
	// ASCII draws with nothing else.
	ASCII bool
}

// The bounds of [TextOptions].
const (
	DefaultColumns = 100
	MinColumns     = 60
)

// Text draws the run for a terminal, every line ending in a newline. The error is
// the writer's.
func (r *Recorder) Text(w io.Writer, o TextOptions) error {
	if o.Columns == 0 {
		o.Columns = DefaultColumns
	}
	t := &text{
		glyphs: unicodeGlyphs(), columns: max(MinColumns, o.Columns),
		ended: make(map[cluster.Outcome]bool), stood: make(map[rune]bool),
	}
	if o.ASCII {
		t.glyphs = asciiGlyphs()
	}
	t.measure(r)
	t.head()
	t.axis()
	t.leaderLane()
	t.faultLanes()
	t.nodeLanes()
	t.groupLanes()
	t.violationLane()
	t.legend()
	_, err := io.WriteString(w, t.out.String())
	return err
}

// text is a terminal picture being written.
type text struct {
	picture
	glyphs glyphs
	out    strings.Builder
	// columns is how wide the picture is: label, number, the lane itself, remark,
	// and a blank between each two.
	columns, label, number, remark int
	// names are what is shown of the names of nodes and groups.
	names map[string]string

	// What was drawn, for the legend: the letters of faults by name, how drains
	// ended, what groups came to.
	keys  map[string]rune
	ended map[cluster.Outcome]bool
	stood map[rune]bool
}

// measure cuts the width into its parts, and chooses what to draw.
func (t *text) measure(r *Recorder) {
	t.picture = r.picture(t.columns, breakColumns)
	t.label, t.number, t.remark = len("violations"), len("to go"), len("runs on")
	for _, n := range t.nodes {
		t.label = max(t.label, len([]rune(n.id)))
		t.remark = max(t.remark, len(took(n.main())))
	}
	for _, g := range t.groups {
		t.label = max(t.label, len([]rune(g.name())))
		t.number = max(t.number, len(limit(g.lowest())))
	}
	t.label = min(t.label, t.columns/4)
	t.names = t.glyphs.apart(t.cleaned(slices.Concat(t.nodeNames(), t.groupNames())), t.label)
	t.scale.width = t.columns - t.label - t.number - t.remark - 3
}

const (
	// breakColumns is how wide a break in the times is.
	breakColumns = 3
	// maxWord is how long the name of a guarantee may be.
	maxWord = 12
)

// write writes a line without the blanks at its end.
func (t *text) write(line string) {
	t.out.WriteString(strings.TrimRight(line, " "))
	t.out.WriteByte('\n')
}

// lane writes a lane and what stands before and after it.
func (t *text) lane(label, number string, cells []rune, remark string) {
	label = t.glyphs.clean(label)
	if name, is := t.names[label]; is {
		label = name
	}
	label = t.glyphs.fit(label, t.label)
	label += strings.Repeat(" ", t.label-len([]rune(label)))
	t.write(fmt.Sprintf("%s %*s %s %*s", label, t.number, number, string(cells), t.remark, remark))
}

// blank is a lane with nothing in it.
func (t *text) blank() []rune { return []rune(strings.Repeat(" ", t.scale.width)) }

// cleaned are the names as they are drawn.
func (t *text) cleaned(names []string) []string {
	for i, name := range names {
		names[i] = t.glyphs.clean(name)
	}
	return names
}

// head writes what the run was.
func (t *text) head() {
	verdict, _ := t.verdict()
	facts := append([]string{verdict}, t.facts()...)
	t.wrap("", t.glyphs.clean(t.run.options.Name+": "+strings.Join(facts, t.glyphs.dot)))
	if t.run.options.Replay != "" {
		t.wrap("replay: ", t.glyphs.clean(t.run.options.Replay))
	}
	t.write("")
}

// wrap writes a text after a word, in as many lines as it takes.
func (t *text) wrap(word, text string) { t.list(word, " ", strings.Fields(text)) }

// list writes things after a word, in as many lines as it takes.
func (t *text) list(word, between string, things []string) {
	start := strings.Repeat(" ", len([]rune(word)))
	for i, line := range packed(things, between, t.columns-len(start)) {
		if i > 0 {
			word = start
		}
		t.write(word + line)
	}
}

// packed puts things into lines of at most so many letters. Only what is longer than
// a line is broken.
func packed(things []string, between string, most int) []string {
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

// axis writes the times.
func (t *text) axis() {
	cells := t.blank()
	for _, at := range t.scale.ticks(10) {
		word := []rune(brief(at))
		if x := t.scale.column(at); x+len(word) <= len(cells) {
			copy(cells[x:], word)
		}
	}
	for _, b := range t.scale.breaks {
		for x, to := t.scale.column(b.from)+1, t.scale.column(b.to); x < to; x++ {
			cells[x] = t.glyphs.skip
		}
	}
	t.lane("", "", cells, "")
}

// legend writes what the signs mean that were drawn.
func (t *text) legend() {
	var words []string
	for _, name := range faultNames(t.run.faults) {
		words = append(words, fmt.Sprintf("%c %s", t.keys[name], t.glyphs.clean(name)))
	}
	t.words("faults: ", words)
	words = nil
	for _, o := range outcomes() {
		if t.ended[o] {
			words = append(words, fmt.Sprintf("%c %s", t.glyphs.end(o), o))
		}
	}
	t.words("ends: ", words)
	words = nil
	for _, r := range []struct {
		sign rune
		text string
	}{
		{t.glyphs.whole, "nothing missing"}, {'1', "1-9 room left"}, {t.glyphs.tight, "no room"}, {t.glyphs.below, "below its limit"},
	} {
		if t.stood[r.sign] {
			words = append(words, strings.TrimPrefix(fmt.Sprintf("%c %s", r.sign, r.text), "1 "))
		}
	}
	t.words("groups: ", words)
}

// words writes a part of the legend, if there is anything in it.
func (t *text) words(about string, words []string) {
	if len(words) > 0 {
		t.list(about, "  ", words)
	}
}
