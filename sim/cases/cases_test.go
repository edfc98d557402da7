package cases_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// casesIn is where the cases are.
const casesIn = "../scenarios"

// maxSmallSteps is the maximum number of steps of a case with variants at each step.
const maxSmallSteps = 500

// Each case is played once, and must give exactly the story and the end of its file. Then its
// variants are played, with faults at many points: see variants. A variant may change the story. It
// must have the same end and break no guarantee.
func TestCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(casesIn + "/case-*.drain")
	must.NoError(t, err)
	must.SliceNotEmpty(t, files)
	for _, file := range files {
		c := readCase(t, file)
		t.Run(strings.TrimPrefix(c.Name, "case-"), func(t *testing.T) {
			t.Parallel()
			if raceEnabled && isHuge(c) {
				t.Skip("many times slower, and a world has one goroutine: it cannot race")
			}
			run(t, c)
		})
	}
}

// readCase reads a case. A case with a brief story is large: it has too many steps for a variant at
// each.
func readCase(t *testing.T, file string) *scenario.Scenario {
	text, err := os.ReadFile(file)
	must.NoError(t, err)
	c, warnings, err := scenario.Parse(filepath.Base(file), bytes.NewReader(text))
	must.NoError(t, err)
	must.SliceEmpty(t, warnings)
	return c
}

// isHuge reports whether a case has thousands of allocations.
func isHuge(c *scenario.Scenario) bool {
	allocs := 0
	for _, a := range c.Allocs {
		allocs += max(a.Indexes.Count, len(a.On))
	}
	return allocs > 1000
}

// run plays the case, then its variants.
func run(t *testing.T, c *scenario.Scenario) {
	base := play(c, variant{})
	must.NoError(t, base.err, must.Sprint(base.story))
	must.Eq(t, c.Story, base.story, must.Sprint("\n"+base.story+"\n"))
	must.Eq(t, c.End, base.end+base.lowest, must.Sprint("\n"+base.end+base.lowest))
	large := c.Run.Brief
	if !large {
		must.LessEq(t, maxSmallSteps, base.steps, must.Sprint("a small case must have few steps"))
	}
	if raceEnabled {
		return // a world has one goroutine: only parallel worlds can race, and one play of each is enough
	}
	all := slices.Collect(variants(c, base))
	if !large {
		playVariants(t, c, all, base)
		return
	}
	for i, half := range [...][]variant{all[:len(all)/2], all[len(all)/2:]} {
		t.Run(fmt.Sprintf("variants, half %d", i+1), func(t *testing.T) {
			t.Parallel()
			playVariants(t, c, half, base)
		})
	}
}

// playVariants fails for each variant that differs from the base where it must not.
func playVariants(t *testing.T, c *scenario.Scenario, variants []variant, base result) {
	failures := 0
	for _, v := range variants {
		err := playVariant(c, v, base)
		if err == nil {
			continue
		}
		v.everything = true
		t.Errorf("%s: %v\n%s", v.name, err, play(c, v).story)
		if failures++; failures == 2 {
			t.Fatal("no more variants are played")
		}
	}
}

// playVariant returns how the variant differs from the base, or nil.
func playVariant(c *scenario.Scenario, v variant, base result) error {
	got := play(c, v)
	switch {
	case got.err != nil:
		return got.err
	case got.end != base.end:
		return fmt.Errorf("the end differs:\n%s", got.end)
	case !v.faults && !jumps(c) && got.story != base.story:
		return errors.New("the story differs")
	}
	return nil
}

// result is the result of a play.
type result struct {
	// end does not contain the lowest healthy counts: they depend on the variant.
	story, end, lowest string
	steps, writes      int
	err                error
}

// play plays a variant of a case.
func play(c *scenario.Scenario, v variant) result {
	changed := *c
	if v.servers > 0 {
		changed.Cluster.Servers, changed.Cluster.Replicas = v.servers, true
	}
	var w *world.World
	promises := promises{}
	var errs []error
	r, err := sim.Play(&changed, sim.Options{
		Story: true, Everything: v.everything, Thorough: true, Reader: v.reader, MaxSteps: world.DefaultMaxSteps,
		Watch: func(its *world.World) {
			if w = its; v.begin != nil {
				v.begin(w)
			}
		},
		Quiet: v.quiet,
		Reports: func(reports []rules.Report) {
			if !jumps(c) {
				errs = append(errs, promises.check(w.Clock(), reports))
			}
		},
	})
	if err != nil {
		return result{err: err}
	}
	if !r.Idle && c.Run.For == 0 {
		errs = append(errs, fmt.Errorf("events are still pending after %s", r.Lasted))
	}
	for _, broken := range r.Violations {
		errs = append(errs, fmt.Errorf("at %s: %s", broken.At.Sub(world.Epoch), broken))
	}
	return result{
		story: r.Story, end: strings.TrimSuffix(r.End, r.Lowest), lowest: r.Lowest,
		steps: r.Steps, writes: w.Log.Writes(world.FromDrainer), err: errors.Join(errs...),
	}
}

// jumps reports whether the case sets the clock of a leader. Then ends do not come at the expected
// time, and an unneeded step sees the clock sooner.
func jumps(c *scenario.Scenario) bool {
	return slices.ContainsFunc(c.Events, func(e scenario.Event) bool {
		set, is := e.Op.(*scenario.Clock)
		return is && set.Server == 0
	})
}
