package timeline_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline"
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

func storyOptions() timeline.Options {
	return timeline.Options{Name: "story", Seed: 7, Servers: 3, Epoch: epoch, Replay: "nodedrain sim run story.drain"}
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
	r := story(t, storyOptions())
	golden(t, "story.txt", textOf(t, r, timeline.TextOptions{}))
	golden(t, "story-ascii.txt", textOf(t, r, timeline.TextOptions{ASCII: true, Columns: timeline.MinColumns}))
}

func TestSVG(t *testing.T) {
	t.Parallel()
	golden(t, "story.svg", svgOf(t, story(t, storyOptions())))
}

func TestTrace(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	trace := timeline.NewTrace(&out)
	step := uint64(0)
	trace.Event(timeline.Position{Server: 0}, timeline.Event{Kind: "elected", Text: "starts to lead"})
	story(t, storyOptions(), func(at time.Duration, a shims.Applied) {
		step++
		trace.Applied(timeline.Position{Step: step, At: at, Server: -1, Cause: &timeline.Cause{By: timeline.ByEntry, Step: step - 1, Index: a.Index - 1}}, a)
	})
	must.NoError(t, trace.Err())
	golden(t, "story.ndjson", out.String())
}
