package live_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/live"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// scenarios are those that are kept, by name.
func scenarios(t testing.TB) map[string]*scenario.Scenario {
	t.Helper()
	files, err := filepath.Glob("../scenarios/*.drain")
	must.NoError(t, err)
	must.SliceNotEmpty(t, files)
	kept := map[string]*scenario.Scenario{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must.NoError(t, err)
		s, _, err := scenario.Parse(filepath.Base(file), bytes.NewReader(text))
		must.NoError(t, err)
		kept[strings.TrimSuffix(filepath.Base(file), ".drain")] = s
	}
	return kept
}

// ending is what the deterministic run comes to.
type ending struct {
	facts []string
	// lasts is for how long goroutines are to play the same. Where steps had nothing left
	// to do they have time enough to come to that too; rests says so.
	lasts time.Duration
	rests bool
}

// afterRest is for goroutines to come to rest when steps have.
const afterRest = 10 * time.Minute

func step(t testing.TB, s *scenario.Scenario) ending {
	t.Helper()
	var w *world.World
	result, err := sim.Play(s, sim.Options{Watch: func(its *world.World) { w = its }})
	must.NoError(t, err)
	e := ending{invariant.Facts(w.Truth()), result.Lasted, result.Idle}
	if e.rests {
		e.lasts += afterRest
	}
	return e
}

// play plays a scenario in a bubble: it comes to the same end, and neither the witness
// nor the judge of every entry finds anything.
func play(t *testing.T, s *scenario.Scenario, want ending, o live.Options) (result *live.Result) {
	t.Helper()
	o.For = want.lasts
	synctest.Test(t, func(t *testing.T) {
		var violations []invariant.Violation
		result, violations = judged(t, s, o)
		must.Eq(t, want.facts, result.Facts)
		must.SliceEmpty(t, violations)
	})
	return result
}

// judged plays a scenario and has every entry judged. It is to be called in a bubble.
func judged(t *testing.T, s *scenario.Scenario, o live.Options) (*live.Result, []invariant.Violation) {
	t.Helper()
	config, err := setting.Drainer(s.Drainer)
	must.NoError(t, err)
	judge := invariant.New(invariant.Options{
		Policy: config.Policy, MaxIDs: config.MaxIDsPerEntry, MaxBytes: config.MaxBytesPerEntry, MaxInFlight: config.MaxInFlight,
	})
	o.OnApply = judge.Applied
	result, err := live.Play(s, o)
	must.NoError(t, err)
	must.SliceEmpty(t, result.Findings)
	judge.End(time.Now(), result.State)
	return result, judge.Violations()
}

// Goroutines come to the same end as steps do.
func TestPlay_sameEnd(t *testing.T) {
	t.Parallel()
	for name, s := range scenarios(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if why := live.Unplayable(s, live.Options{}); why != nil {
				t.Skip(strings.Join(why, "; "))
			}
			play(t, s, step(t, s), live.Options{})
		})
	}
}

// What cannot be played is little, and is said.
func TestUnplayable(t *testing.T) {
	t.Parallel()
	const most = 0.1
	all := scenarios(t)
	var reasons []string
	for name, s := range all {
		for _, why := range live.Unplayable(s, live.Options{}) {
			reasons = append(reasons, name+": "+why)
			_, err := live.Play(s, live.Options{})
			must.ErrorContains(t, err, why)
		}
	}
	slices.Sort(reasons)
	t.Logf("%d of %d cannot be played:\n%s", len(reasons), len(all), strings.Join(reasons, "\n"))
	must.LessEq(t, most*float64(len(all)), float64(len(reasons)))
}
