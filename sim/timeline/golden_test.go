package timeline_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline/drawing"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

var rewrite = flag.Bool("rewrite", false, "write what the tests see into testdata; read the diff and see the pictures before you commit it")

// golden compares text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		must.NoError(t, os.MkdirAll("testdata", 0o755))
		must.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must.NoError(t, err)
	must.Eq(t, string(want), got)
}

// recorded plays a scenario with a recorder. The violations are those of the run.
func recorded(t testing.TB, text string, violations ...invariant.Violation) *timeline.Recorder {
	t.Helper()
	s, _, err := scenario.Parse("story.drain", strings.NewReader(text))
	must.NoError(t, err)
	r := timeline.New(timeline.Options{Name: s.Name, Seed: s.Seed, Epoch: world.Epoch, Replay: "nodedrain sim run story.drain", Servers: s.Cluster.Servers})
	r.Operations(s.Events)
	result, err := sim.Play(s, sim.Options{Watch: r.Watch})
	must.NoError(t, err)
	result.Violations = violations
	r.Result(result)
	return r
}

// story returns a scenario with everything that a picture shows, and a violation.
func story(t testing.TB) (text string, broken invariant.Violation) {
	t.Helper()
	file, err := os.ReadFile("testdata/story.drain")
	must.NoError(t, err)
	return string(file), invariant.Violation{Guarantee: "G1", Check: "below limit", At: world.Epoch.Add(20 * time.Second), Index: 7, Text: "<&\"> and\n"}
}

func textOf(t testing.TB, r *timeline.Recorder, o timeline.TextOptions) string {
	var out bytes.Buffer
	must.NoError(t, r.Text(&out, o))
	return out.String()
}

func svgOf(t testing.TB, r *timeline.Recorder) string {
	var out bytes.Buffer
	must.NoError(t, r.SVG(&out))
	return out.String()
}

func TestText(t *testing.T) {
	t.Parallel()
	text, broken := story(t)
	r := recorded(t, text, broken)
	golden(t, "story.txt", textOf(t, r, timeline.TextOptions{}))
	golden(t, "story-ascii.txt", textOf(t, r, timeline.TextOptions{ASCII: true, Columns: drawing.MinColumns}))
}

func TestSVG(t *testing.T) {
	t.Parallel()
	text, broken := story(t)
	golden(t, "story.svg", svgOf(t, recorded(t, text, broken)))
}
