package live_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/live"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// read reads a scenario.
func read(t testing.TB, file string) *scenario.Scenario {
	t.Helper()
	text, err := os.ReadFile(file)
	must.NoError(t, err)
	s, _, err := scenario.Parse(filepath.Base(file), bytes.NewReader(text))
	must.NoError(t, err)
	return s
}

// Goroutines come to the same end as steps do.
func TestPlay_sameFacts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../scenarios/*.drain")
	must.NoError(t, err)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".drain"), func(t *testing.T) {
			t.Parallel()
			s := read(t, file)
			if why := live.Unplayable(s); why != nil {
				t.Skip(why)
			}
			var w *world.World
			stepped, err := sim.Play(s, sim.Options{Watch: func(its *world.World) { w = its }})
			must.NoError(t, err)
			lasts := stepped.Lasted
			if stepped.Idle {
				lasts += 10 * time.Minute
			}
			synctest.Test(t, func(t *testing.T) {
				got, err := live.Play(s, live.Options{For: lasts})
				must.NoError(t, err)
				must.Eq(t, live.Facts(w.Truth()), got.Facts)
				must.SliceEmpty(t, got.Findings)
			})
		})
	}
}
