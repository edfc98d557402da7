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
const casesIn = "../sim/scenarios"

// maxSmallSteps is how many steps a story may have to be told once for each.
const maxSmallSteps = 500

// Every case is told once as it stands, and must go as it says, to the letter. Then
// it is told again with everything that may go wrong, at every point at which it may:
// see variants. However that changes the story, it must come to the same end, and no
// guarantee may break on the way.
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
				t.Skip("many times slower, and a world has one goroutine: there is nothing to race")
			}
			run(t, c)
		})
	}
}

// readCase reads a case. One that is told briefly is large: it has too many steps to
// tell it once for each.
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

// run tells the case as it stands, and then every variant of it.
func run(t *testing.T, c *scenario.Scenario) {
	base := tell(c, telling{})
	must.NoError(t, base.err, must.Sprint(base.story))
	must.Eq(t, c.Story, base.story, must.Sprint("\n"+base.story+"\n"))
	must.Eq(t, c.End, base.end+base.lowest, must.Sprint("\n"+base.end+base.lowest))
	large := c.Run.Brief
	if !large {
		must.LessEq(t, maxSmallSteps, base.steps, must.Sprint("a small story must be told with few steps"))
	}
	if raceEnabled {
		return // a world has one goroutine: what can race is worlds side by side
	}
	all := slices.Collect(variants(c, base))
	if !large {
		retellAll(t, c, all, base)
		return
	}
	for i, half := range [...][]telling{all[:len(all)/2], all[len(all)/2:]} {
		t.Run(fmt.Sprintf("told again, half %d", i+1), func(t *testing.T) {
			t.Parallel()
			retellAll(t, c, half, base)
		})
	}
}

// retellAll tells the case otherwise in many ways.
func retellAll(t *testing.T, c *scenario.Scenario, ways []telling, base told) {
	failures := 0
	for _, how := range ways {
		err := retell(c, how, base)
		if err == nil {
			continue
		}
		how.everything = true
		t.Errorf("%s: %v\n%s", how.name, err, tell(c, how).story)
		if failures++; failures == 2 {
			t.Fatal("and so on")
		}
	}
}

// retell tells the case otherwise and says what is wrong with how it went.
func retell(c *scenario.Scenario, how telling, base told) error {
	got := tell(c, how)
	switch {
	case got.err != nil:
		return got.err
	case got.end != base.end:
		return fmt.Errorf("it ended otherwise:\n%s", got.end)
	case !how.faults && !jumps(c) && got.story != base.story:
		return errors.New("it went otherwise")
	}
	return nil
}

// told is what came of telling a case.
type told struct {
	// end is how it ended, but for the lowest healthy counts, which depend on what
	// goes wrong.
	story, end, lowest string
	steps, writes      int
	err                error
}

// tell tells a case once.
func tell(c *scenario.Scenario, how telling) told {
	again := *c
	if how.servers > 0 {
		again.Cluster.Servers, again.Cluster.Replicas = how.servers, true
	}
	var w *world.World
	promises := promises{}
	var errs []error
	result, err := sim.Play(&again, sim.Options{
		Story: true, Everything: how.everything, Thorough: true, Reader: how.reader, MaxSteps: world.DefaultMaxSteps,
		Watch: func(its *world.World) {
			if w = its; how.begin != nil {
				how.begin(w)
			}
		},
		Quiet: how.quiet,
		Reports: func(reports []rules.Report) {
			if !jumps(c) {
				errs = append(errs, promises.check(w.Clock(), reports))
			}
		},
	})
	if err != nil {
		return told{err: err}
	}
	if !result.Idle && c.Run.For == 0 {
		errs = append(errs, fmt.Errorf("something is still to come after %s", result.Lasted))
	}
	for _, v := range result.Violations {
		errs = append(errs, fmt.Errorf("at %s: %s", v.At.Sub(world.Epoch), v))
	}
	return told{
		story: result.Story, end: strings.TrimSuffix(result.End, result.Lowest), lowest: result.Lowest,
		steps: result.Steps, writes: w.Log.Writes(world.FromDrainer), err: errors.Join(errs...),
	}
}

// jumps reports whether clocks of leaders are set on the way. Then nothing ends at
// the expected time, and an extra step looks at the clock sooner.
func jumps(c *scenario.Scenario) bool {
	return slices.ContainsFunc(c.Events, func(e scenario.Event) bool {
		set, is := e.Op.(*scenario.Clock)
		return is && set.Server == 0
	})
}
