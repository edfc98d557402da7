package timeline_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline/drawing"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// difficultNames returns names with characters that need escaping, and other special cases.
func difficultNames() []string {
	return []string{
		"", " ", `<&"'>`, "]]>", "<!--", "&amp;", "a\nb\tc\x00\x1b[31m", "\xff\xfe", "日本語", "e\u0301", "👩‍🚀", "\u202eabc",
		strings.Repeat("long-", 60), "-", "\u2028", "\ufffe", "</title><script>", "%d%s%!", "\U0010ffff", "ǅ",
	}
}

// randomRun records a seed of the swarm, with random faults and violations that have these names.
func randomRun(t testing.TB, seed uint64, names []string, o timeline.Options) *timeline.Recorder {
	rng := rand.New(rand.NewPCG(seed, 0))
	name := func() string { return names[rng.IntN(len(names))] }
	return swarmed(t, seed, o, func(r *timeline.Recorder, w *world.World, a shims.Applied) {
		at := w.Now().Sub(world.Epoch)
		switch rng.IntN(30) {
		case 0:
			r.Fault(at, at+time.Duration(rng.Int64N(int64(time.Hour))), name(), name())
		case 1:
			r.Fault(at, 0, "apply/reject", "")
		case 2:
			r.Leader(at, rng.IntN(9))
		case 3:
			v := timeline.Violation{Guarantee: name(), Text: name() + " " + name()}
			for n := range a.After.Nodes() {
				v.Node = n.ID
			}
			r.Violation(at, v)
		}
	})
}

// checkText checks a terminal picture: its width and its characters.
func checkText(t testing.TB, r *timeline.Recorder, o timeline.TextOptions) {
	t.Helper()
	text := textOf(t, r, o)
	columns := o.Columns
	switch {
	case columns == 0:
		columns = drawing.DefaultColumns
	case columns < drawing.MinColumns:
		columns = drawing.MinColumns
	}
	must.True(t, utf8.ValidString(text))
	must.StrHasSuffix(t, "\n", text)
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		must.LessEq(t, columns, utf8.RuneCountInString(line), must.Sprintf("%q", line))
		must.Eq(t, strings.TrimRight(line, " "), line)
		for _, c := range line {
			must.False(t, c < ' ' || c == 0x7f || o.ASCII && c > 0x7f, must.Sprintf("%q in %q", c, line))
		}
	}
}

// coordinate matches a coordinate in a path.
var coordinate = regexp.MustCompile(`-?[0-9]+`)

// checkSVG checks an SVG: it is XML, all coordinates are whole numbers within the picture, and
// all ids differ.
func checkSVG(t testing.TB, r *timeline.Recorder) {
	t.Helper()
	picture := svgOf(t, r)
	must.Eq(t, picture, svgOf(t, r), must.Sprint("drawn twice"))
	d := xml.NewDecoder(strings.NewReader(picture))
	width, height, ids := 0, 0, make(map[string]bool)
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		must.NoError(t, err)
		e, is := token.(xml.StartElement)
		if !is {
			continue
		}
		if e.Name.Local == "svg" {
			width, height = number(t, e, "width"), number(t, e, "height")
			continue
		}
		checkShape(t, e, width, height)
		if id := attribute(e, "id"); id != "" {
			must.False(t, ids[id], must.Sprintf("two shapes have the id %s", id))
			ids[id] = true
		}
	}
	must.Positive(t, height)
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// number is an attribute as a whole number. It is zero if there is none.
func number(t testing.TB, e xml.StartElement, name string) int {
	t.Helper()
	text := attribute(e, name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	must.NoError(t, err, must.Sprintf("%v", e))
	return n
}

func checkShape(t testing.TB, e xml.StartElement, width, height int) {
	t.Helper()
	within := func(n, most int) {
		must.Between(t, 0, n, most, must.Sprintf("%v", e))
	}
	for _, x := range []string{"x", "x1", "x2", "cx"} {
		within(number(t, e, x), width)
	}
	for _, y := range []string{"y", "y1", "y2", "cy"} {
		within(number(t, e, y), height)
	}
	within(number(t, e, "x")+number(t, e, "width"), width)
	within(number(t, e, "y")+number(t, e, "height"), height)
	must.GreaterEq(t, 0, number(t, e, "width"))
	must.GreaterEq(t, 0, number(t, e, "height"))
	if d := attribute(e, "d"); d != "" && !strings.Contains(d, "h") { // all paths but arrows are absolute
		for _, n := range coordinate.FindAllString(d, -1) {
			at, err := strconv.Atoi(n)
			must.NoError(t, err)
			within(at, max(width, height))
		}
	}
}

// Pictures of random runs are valid.
func TestPictures_ofRandomRuns(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		r := randomRun(t, seed, difficultNames(), timeline.Options{Name: difficultNames()[seed%20], Replay: strings.Join(difficultNames(), " ")})
		rng := rand.New(rand.NewPCG(seed, 1))
		checkText(t, r, timeline.TextOptions{Columns: rng.IntN(250), ASCII: seed%2 == 0})
		checkSVG(t, r)
	}
}

// The picture of an empty run is valid.
func TestPictures_ofNothing(t *testing.T) {
	t.Parallel()
	r := timeline.New(timeline.Options{Epoch: world.Epoch})
	checkText(t, r, timeline.TextOptions{})
	checkSVG(t, r)
	r.End(time.Hour)
	checkText(t, r, timeline.TextOptions{ASCII: true})
	checkSVG(t, r)
}

// The picture of the longest possible run is valid.
func TestPictures_ofAllTime(t *testing.T) {
	t.Parallel()
	r := timeline.New(timeline.Options{Epoch: world.Epoch})
	r.Leader(0, 0)
	r.Fault(time.Second, 1<<63-1, "node/crash", "n1")
	r.Leader(1<<62, 1)
	r.Leader(1<<63-1, 2)
	r.Violation(-time.Hour, timeline.Violation{Guarantee: "G4", Text: "before the start"})
	r.End(1<<63 - 1)
	checkText(t, r, timeline.TextOptions{})
	checkSVG(t, r)
}

// Of a thousand nodes, the picture shows those that a post-mortem needs.
func TestPictures_ofAThousandNodes(t *testing.T) {
	t.Parallel()
	r := recorded(t, `
node n1..n1000
job sum type=batch count=20
alloc sum on=n981..n1000
at 0s drain n1..n1000
at 2m cancel n981..n995
at 3m cancel n996
at 3m finish sum[16]
at 3m finish sum[17]
run for=4m
`, invariant.Violation{Guarantee: "G8", Check: "no reason", At: world.Epoch.Add(3 * time.Minute), Node: "n7"})
	must.Eq(t, []cluster.NodeID{
		"n7", "n981", "n982", "n983", "n984", "n985", "n986", "n987", "n988", "n989", "n990", "n991", "n992", "n996", "n999", "n1000",
	}, r.Shown())
	must.StrContains(t, textOf(t, r, timeline.TextOptions{}), "and 984 more nodes: 3 cancelled, 981 complete")
	checkText(t, r, timeline.TextOptions{})
	checkSVG(t, r)
}

// No name makes a picture invalid.
func FuzzNames(f *testing.F) {
	for i, name := range difficultNames() {
		f.Add(name, uint64(i))
	}
	f.Fuzz(func(t *testing.T, name string, seed uint64) {
		if len(name) > 300 { // names are bounded in raft entries
			t.Skip()
		}
		r := randomRun(t, seed, []string{name}, timeline.Options{Name: name, Replay: name})
		checkText(t, r, timeline.TextOptions{ASCII: seed%2 == 0, Columns: int(seed % 200)})
		checkSVG(t, r)
	})
}
