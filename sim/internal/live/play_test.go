package live_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/collected"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/live"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// scenarios are the scenario files of the repository, by name.
func scenarios(t testing.TB) map[string]*scenario.Scenario {
	t.Helper()
	files, err := filepath.Glob("../../scenarios/*.drain")
	must.NoError(t, err)
	must.SliceNotEmpty(t, files)
	all := map[string]*scenario.Scenario{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must.NoError(t, err)
		s, _, err := scenario.Parse(filepath.Base(file), bytes.NewReader(text))
		must.NoError(t, err)
		all[strings.TrimSuffix(filepath.Base(file), ".drain")] = s
	}
	return all
}

// ending is the end of the deterministic run.
type ending struct {
	facts []string
	// lasts is the duration of the play of the same scenario. rests says that the
	// deterministic run ended because no event was left. Then lasts includes restTime, so that
	// the play can finish, too.
	lasts time.Duration
	rests bool
}

// restTime is the extra time of a play if the deterministic run ended because no event was left.
const restTime = time.Minute

func runSteps(t testing.TB, s *scenario.Scenario) ending {
	t.Helper()
	var w *world.World
	result, err := sim.Play(s, sim.Options{Watch: func(its *world.World) { w = its }})
	must.NoError(t, err)
	e := ending{invariant.Facts(w.Truth()), result.Lasted, result.Idle}
	if e.rests {
		e.lasts += restTime
	}
	return e
}

// play plays a scenario in a bubble. It fails the test if the final facts differ from those of
// the deterministic run, or if the witness or the judge finds anything.
func play(t *testing.T, s *scenario.Scenario, want ending) (result *live.Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var violations []invariant.Violation
		result, violations = judged(t, s, live.Options{For: want.lasts})
		must.Eq(t, want.facts, result.Facts)
		must.SliceEmpty(t, violations)
	})
	return result
}

// judged plays a scenario and passes every entry to the judges of drains and of the collection.
// Call it in a bubble.
func judged(t *testing.T, s *scenario.Scenario, o live.Options) (*live.Result, []invariant.Violation) {
	t.Helper()
	config, err := setting.Drainer(s.Drainer)
	must.NoError(t, err)
	judge := invariant.New(invariant.Options{
		Policy: config.Policy, MaxIDs: config.MaxIDsPerEntry, MaxBytes: config.MaxBytesPerEntry, MaxInFlight: config.MaxInFlight,
	})
	var collection collected.Judge
	o.OnApply = func(at time.Time, a shims.Applied) {
		judge.Applied(at, a)
		collection.Applied(at, a)
	}
	result, err := live.Play(s, o)
	must.NoError(t, err)
	must.SliceEmpty(t, result.Findings)
	judge.End(time.Now(), result.State)
	return result, append(judge.Violations(), collection.Violations()...)
}

// most is the largest number of allocations with which TestPlay starts a scenario. A play with
// ten thousand allocations takes as long as all other plays together.
const most = 1000

// whyEndDiffers returns the reason why a play of the scenario may not end as the deterministic
// run does, or why the tests do not play it. It is empty if there is no such reason.
func whyEndDiffers(s *scenario.Scenario) string {
	var none scenario.Range
	if c := s.Cluster; c.Commit != none || c.Establish != none || c.Wake != none || c.Schedule != none {
		return "a play ignores the delays of the cluster directive"
	}
	for _, e := range s.Events {
		if d, is := e.Op.(*scenario.Drain); is && len(d.Nodes) > 1 {
			return "a server drains one node after the other, and other events may come between two drains"
		}
	}
	if allocs(s) > most {
		return "it has too many allocations"
	}
	return ""
}

// The play of each scenario ends as the deterministic run does.
func TestPlay(t *testing.T) {
	t.Parallel()
	all := scenarios(t)
	for turn, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		if turn%shareOfScenarios != 0 || live.Unplayable(s) != nil || whyEndDiffers(s) != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, s, runSteps(t, s))
		})
	}
}

// A play collects ended work at the age of the scenario, and nothing without one.
func TestPlay_collects(t *testing.T) {
	t.Parallel()
	for _, age := range []time.Duration{0, 20 * time.Second} {
		t.Run(age.String(), func(t *testing.T) {
			t.Parallel()
			s := scenarios(t)["collect-ended-work"].Copy()
			s.Cluster.Collect = age
			s.Run.For = 2 * time.Hour // twice the default age
			s.Events = slices.DeleteFunc(s.Events, func(e scenario.Event) bool { return e.Before != "" })
			synctest.Test(t, func(t *testing.T) {
				result, violations := judged(t, s, live.Options{})
				must.SliceEmpty(t, violations)
				ended := 0
				for a := range result.State.Allocs() {
					if a.ClientTerminal() {
						ended++
					}
				}
				old := result.State.Job(cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "old"})
				must.Eq(t, age == 0, ended > 0)
				must.Eq(t, age == 0, old != nil) // it was stopped
			})
		})
	}
}

// Most scenarios of simulated clients can be played. Play refuses the others with the reason.
func TestUnplayable(t *testing.T) {
	t.Parallel()
	const share = 0.4
	all := scenarios(t)
	reasons := map[string]int{}
	unplayable, simulated := 0, 0
	for _, s := range all {
		why := live.Unplayable(s)
		is := s.Cluster.Clients != scenario.RealClients
		if is {
			simulated++
		}
		if why != nil {
			if is {
				unplayable++
			}
			_, err := live.Play(s, live.Options{})
			must.ErrorContains(t, err, why[0])
		}
		for _, reason := range why {
			reasons[reason]++
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		t.Logf("%3d  %s", reasons[reason], reason)
	}
	t.Logf("%d of %d cannot be played", unplayable, simulated)
	must.LessEq(t, share*float64(simulated), float64(unplayable))
}
