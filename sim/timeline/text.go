package timeline

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline/drawing"
)

// TextOptions configure a terminal picture.
type TextOptions struct {
	// Columns is the largest width. Zero is [drawing.DefaultColumns]. Less than [drawing.MinColumns] is
	// MinColumns.
	Columns int
	// ASCII draws with ASCII characters only.
	ASCII bool
}

// Text draws the run for a terminal. The error is the writer's.
func (r *Recorder) Text(w io.Writer, o TextOptions) error {
	if o.Columns == 0 {
		o.Columns = drawing.DefaultColumns
	}
	t := &text{
		Terminal:      &drawing.Terminal{Glyphs: drawing.Unicode(), Columns: max(drawing.MinColumns, o.Columns)},
		drawnOutcomes: make(map[cluster.Outcome]bool), drawnLevels: make(map[rune]bool),
	}
	if o.ASCII {
		t.Glyphs = drawing.ASCII()
	}
	t.measure(r)
	t.head()
	t.Axis()
	t.leaderLane()
	t.faultLanes()
	t.nodeLanes()
	t.groupLanes()
	t.violationLane()
	t.legend()
	_, err := io.WriteString(w, t.String())
	return err
}

// text writes a terminal picture.
type text struct {
	picture
	*drawing.Terminal

	// The legend needs the letters of faults by name, the outcomes of the drawn drains, and
	// the characters of the drawn levels.
	keys          map[string]rune
	drawnOutcomes map[cluster.Outcome]bool
	drawnLevels   map[rune]bool
}

// measure divides the width and chooses the lanes.
func (t *text) measure(r *Recorder) {
	t.picture, t.Scale = r.picture(t.Columns, drawing.BreakColumns)
	t.Label, t.Number, t.Remark = len("violations"), len("to go"), len("running")
	for _, n := range t.nodes {
		t.Label = max(t.Label, len([]rune(n.id)))
		t.Remark = max(t.Remark, len(took(n.main())))
	}
	for _, g := range t.groups {
		t.Label = max(t.Label, len([]rune(g.name())))
		t.Number = max(t.Number, len(limit(g.lowest())))
	}
	t.Divide(slices.Concat(t.nodeNames(), t.groupNames()))
}

// maxWord is the largest length of a guarantee's name.
const maxWord = 12

// head writes the name, the verdict and the facts of the run.
func (t *text) head() {
	verdict, _ := t.verdict()
	facts := append([]string{verdict}, t.facts()...)
	t.Wrap("", t.Glyphs.Clean(t.run.options.Name+": "+strings.Join(facts, t.Glyphs.Dot)))
	if t.run.options.Replay != "" {
		t.Wrap("replay: ", t.Glyphs.Clean(t.run.options.Replay))
	}
	t.Write("")
}

// legend explains the characters in the picture.
func (t *text) legend() {
	var words []string
	for _, name := range faultNames(t.run.faults) {
		words = append(words, fmt.Sprintf("%c %s", t.keys[name], t.Glyphs.Clean(name)))
	}
	t.Words("faults: ", words)
	words = nil
	for _, o := range drawing.Outcomes() {
		if t.drawnOutcomes[o] {
			words = append(words, fmt.Sprintf("%c %s", t.Glyphs.End(o), o))
		}
	}
	t.Words("ends: ", words)
	words = nil
	for _, r := range []struct {
		sign rune
		text string
	}{
		{t.Glyphs.Whole, "nothing missing"}, {'1', "1-9 room left"}, {t.Glyphs.Tight, "no room"}, {t.Glyphs.Below, "below its limit"},
	} {
		if t.drawnLevels[r.sign] {
			words = append(words, strings.TrimPrefix(fmt.Sprintf("%c %s", r.sign, r.text), "1 "))
		}
	}
	t.Words("groups: ", words)
}
