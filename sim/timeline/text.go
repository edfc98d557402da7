package timeline

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// TextOptions configure a terminal picture.
type TextOptions struct {
	// Columns is the largest width. Zero is [DefaultColumns]. Less than [MinColumns] is
	// MinColumns.
	Columns int
	// ASCII draws with ASCII characters only.
	ASCII bool
}

// The bounds of [TextOptions].
const (
	DefaultColumns = 100
	MinColumns     = 60
)

// Text draws the run for a terminal. The error is the writer's.
func (r *Recorder) Text(w io.Writer, o TextOptions) error {
	if o.Columns == 0 {
		o.Columns = DefaultColumns
	}
	t := &text{
		glyphs: unicodeGlyphs(), columns: max(MinColumns, o.Columns),
		drawnOutcomes: make(map[cluster.Outcome]bool), drawnLevels: make(map[rune]bool),
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

// text writes a terminal picture.
type text struct {
	picture
	glyphs glyphs
	out    strings.Builder
	// columns is the width of the picture: label, number, lane and remark, with a space
	// between each two.
	columns, label, number, remark int
	// names are the labels of nodes and groups.
	names map[string]string

	// The legend needs the letters of faults by name, the outcomes of the drawn drains, and
	// the characters of the drawn levels.
	keys          map[string]rune
	drawnOutcomes map[cluster.Outcome]bool
	drawnLevels   map[rune]bool
}

// measure divides the width and chooses the lanes.
func (t *text) measure(r *Recorder) {
	t.picture = r.picture(t.columns, breakColumns)
	t.label, t.number, t.remark = len("violations"), len("to go"), len("running")
	for _, n := range t.nodes {
		t.label = max(t.label, len([]rune(n.id)))
		t.remark = max(t.remark, len(took(n.main())))
	}
	for _, g := range t.groups {
		t.label = max(t.label, len([]rune(g.name())))
		t.number = max(t.number, len(limit(g.lowest())))
	}
	t.label = min(t.label, t.columns/4)
	t.names = t.glyphs.distinct(t.cleaned(slices.Concat(t.nodeNames(), t.groupNames())), t.label)
	t.scale.width = t.columns - t.label - t.number - t.remark - 3
}

const (
	// breakColumns is the width of a break in the scale.
	breakColumns = 3
	// maxWord is the largest length of a guarantee's name.
	maxWord = 12
)

// write writes a line without spaces at its end.
func (t *text) write(line string) {
	t.out.WriteString(strings.TrimRight(line, " "))
	t.out.WriteByte('\n')
}

// lane writes a lane with its label, number and remark.
func (t *text) lane(label, number string, cells []rune, remark string) {
	label = t.glyphs.clean(label)
	if name, is := t.names[label]; is {
		label = name
	}
	label = t.glyphs.fit(label, t.label)
	label += strings.Repeat(" ", t.label-len([]rune(label)))
	t.write(fmt.Sprintf("%s %*s %s %*s", label, t.number, number, string(cells), t.remark, remark))
}

// blank is an empty lane.
func (t *text) blank() []rune { return []rune(strings.Repeat(" ", t.scale.width)) }

// cleaned replaces the characters of names that cannot be drawn.
func (t *text) cleaned(names []string) []string {
	for i, name := range names {
		names[i] = t.glyphs.clean(name)
	}
	return names
}

// head writes the name, the verdict and the facts of the run.
func (t *text) head() {
	verdict, _ := t.verdict()
	facts := append([]string{verdict}, t.facts()...)
	t.wrap("", t.glyphs.clean(t.run.options.Name+": "+strings.Join(facts, t.glyphs.dot)))
	if t.run.options.Replay != "" {
		t.wrap("replay: ", t.glyphs.clean(t.run.options.Replay))
	}
	t.write("")
}

// wrap writes a text after a word, in lines that fit.
func (t *text) wrap(word, text string) { t.list(word, " ", strings.Fields(text)) }

// list writes things after a word, in lines that fit.
func (t *text) list(word, between string, things []string) {
	start := strings.Repeat(" ", len([]rune(word)))
	for i, line := range packed(things, between, t.columns-len(start)) {
		if i > 0 {
			word = start
		}
		t.write(word + line)
	}
}

// packed joins things to lines of at most this number of letters. It breaks only a thing that
// is longer than a line.
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

// axis writes the axis of time.
func (t *text) axis() {
	cells := t.blank()
	for _, at := range t.scale.ticks(10) {
		word := []rune(scenario.DurationText(at))
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

// legend explains the characters in the picture.
func (t *text) legend() {
	var words []string
	for _, name := range faultNames(t.run.faults) {
		words = append(words, fmt.Sprintf("%c %s", t.keys[name], t.glyphs.clean(name)))
	}
	t.words("faults: ", words)
	words = nil
	for _, o := range outcomes() {
		if t.drawnOutcomes[o] {
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
		if t.drawnLevels[r.sign] {
			words = append(words, strings.TrimPrefix(fmt.Sprintf("%c %s", r.sign, r.text), "1 "))
		}
	}
	t.words("groups: ", words)
}

// words writes a part of the legend, unless it is empty.
func (t *text) words(title string, words []string) {
	if len(words) > 0 {
		t.list(title, "  ", words)
	}
}
