package sim

import (
	"bytes"
	"errors"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/foretell"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// slow is a simulator whose plays take 25 seconds.
func slow(s *scenario.Scenario, o sim.Options) (*sim.Result, error) {
	r, err := sim.Play(s, o)
	time.Sleep(25 * time.Second)
	return r, err
}

// Bug: a play that takes long printed nothing until its end.
func TestSilence_run(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		code, out, errs := playedBy(slow)(t.Context(), "sim run -q -size small -seed 5")
		must.Zero(t, code, must.Sprint(out))
		must.RegexMatch(t, regexp.MustCompile(`(?m)^Still waiting for the end of small-5, now at [1-9]\w+ of virtual time \(10s\)`), errs)
		must.RegexMatch(t, regexp.MustCompile(`(?m)^Still waiting for the end of small-5, now at [1-9]\w+ of virtual time \(20s\)`), errs)
	})
}

// Bug: a swarm of slow seeds printed nothing until the first had ended.
func TestSilence_swarm(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"sim swarm -seeds 1 -workers 1", "sim swarm -seeds 1 -workers 1 -json"} {
		synctest.Test(t, func(t *testing.T) {
			_, _, errs := playedBy(slow)(t.Context(), line)
			must.RegexMatch(t, regexp.MustCompile(`(?m)^Still waiting for seeds: 0 of 1 seeds, 0 failed, 0 seeds per minute, 0.00 busy hours per second \(10s\)`), errs)
		})
	}
}

// Bug: shrinking printed nothing while a play took long.
func TestSilence_shrink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, _, errs := playedBy(slow)(t.Context(), "sim shrink -size small -seed 5")
		must.RegexMatch(t, regexp.MustCompile(`(?m)^Still waiting for play 1 of the scenario \(10s\)`), errs)
	})
}

// Bug: comparisons of plans printed nothing while one took long.
func TestSilence_plans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var errs bytes.Buffer
		c := &plansCommand{worlds: 3, simulation: simulation{call: &cli.Call{Base: cli.Base{Stdio: cli.Stdio{Errs: &errs}}}}}
		failed := errors.New("failed")
		report, err := c.compareAll(func(add func(*foretell.Comparison)) error {
			time.Sleep(15 * time.Second)
			add(&foretell.Comparison{})
			time.Sleep(15 * time.Second)
			return failed
		})
		must.Eq(t, failed, err)
		must.NotEq(t, foretell.Report{}, report)
		must.Eq(t, "Still waiting for plans, 0 of 3 compared (10s)\nStill waiting for plans, 1 of 3 compared (20s)\n", errs.String())
	})
}
