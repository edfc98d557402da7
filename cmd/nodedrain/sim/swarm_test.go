package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/clitest"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// A swarm without failures prints its speed. Its JSON has the hash of each seed, equal to the hash
// of the seed's scenario played alone.
func TestSimSwarm(t *testing.T) {
	t.Parallel()
	code, out, _ := playedBy(flawless)(t.Context(), "sim swarm --seeds 12 -seed 5 -workers 3")
	must.Zero(t, code, must.Sprint(out))
	must.StrContains(t, out, "ok    12 small seeds from 5 on, 0 failed, ") // a slow machine prints progress first
	must.StrContains(t, out, "seeds per minute")

	code, out, errs := playedBy(flawless)(t.Context(), "sim swarm -seeds=12 --seed=5 -json")
	must.Zero(t, code)
	must.Eq(t, "", errs)
	var report swarmReport
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.DisallowUnknownFields()
	must.NoError(t, decoder.Decode(&report))
	must.True(t, report.OK)
	must.Eq(t, swarmReportVersion, report.Version)
	must.SliceLen(t, 12, report.Hashes)
	must.SliceEmpty(t, report.Failures)
	must.SliceNotEmpty(t, report.Events)
	for i, h := range report.Hashes {
		must.Eq(t, uint64(5+i), h.Seed)
	}
	_, out, _ = command(t.Context(), "sim run -q -size small -seed 7")
	must.StrContains(t, out, "hash "+report.Hashes[2].Hash)
}

// flawless is a simulator whose judges find nothing.
func flawless(s *scenario.Scenario, o sim.Options) (*sim.Result, error) {
	r, err := sim.Play(s, o)
	if err == nil {
		r.Violations = nil
	}
	return r, err
}

// reportIn parses the output of a swarm with -json.
func reportIn(t *testing.T, out string) (report swarmReport) {
	t.Helper()
	must.NoError(t, json.Unmarshal([]byte(out), &report))
	return report
}

// A fresh swarm takes its first seed from the clock and prints the command that plays the same
// seeds. A later swarm has other seeds.
func TestSimSwarm_fresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		swarmed := func(args string) (string, swarmReport) {
			code, out, errs := playedBy(flawless)(t.Context(), "sim swarm "+args)
			must.Zero(t, code, must.Sprint(errs))
			if strings.Contains(args, "-json") {
				return "", reportIn(t, out)
			}
			return out, swarmReport{}
		}
		time.Sleep(time.Minute)
		first := uint64(time.Now().UnixMicro())
		out, _ := swarmed("-fresh -seeds 2")
		again := fmt.Sprintf("sim swarm -size small -seed %d -seeds 2", first)
		must.StrHasPrefix(t, "fresh seeds; to replay them: nodedrain "+again+"\n", out)
		must.StrContains(t, out, fmt.Sprintf("\nok    2 small seeds from %d on, 0 failed, ", first))

		_, fresh := swarmed("-fresh -seeds 2 -json")
		_, repeated := swarmed(fmt.Sprintf("-seed %d -seeds 2 -json", first))
		must.Eq(t, first, fresh.First)
		must.Eq(t, fresh.Hashes, repeated.Hashes)

		time.Sleep(time.Second)
		_, later := swarmed("-fresh -seeds 2 -json")
		must.Eq(t, first+1_000_000, later.First)
	})
}

// The swarm prints the replay command of each failing seed, and keeps the seed as a scenario that
// fails too.
//
//race:skip the swarm's tests run worlds in parallel
func TestSimSwarm_fails(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "kept")
	code, out, errs := playedBy(buggy)(t.Context(), "sim swarm -seeds 2 -seed 2 -keep "+dir)
	must.One(t, code)
	must.Eq(t, "the swarm failed\n", errs)
	kept, err := filepath.Glob(filepath.Join(dir, "small-*.drain"))
	must.NoError(t, err)
	must.SliceNotEmpty(t, kept)
	for _, file := range kept {
		seed := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "small-"), ".drain")
		must.StrContains(t, out, "\n      replay: nodedrain sim run -size small -seed "+seed+"\n"+
			"      shrink: nodedrain sim shrink -size small -seed "+seed+"\n"+
			"      kept, frozen: nodedrain sim run "+file+"\n")
		code, again, _ := playedBy(buggy)(t.Context(), "sim run -q "+file)
		must.One(t, code)
		must.StrContains(t, again, "G1 below limit at index 17, node ")
	}

	code, out, _ = playedBy(buggy)(t.Context(), "sim swarm -seeds 2 -seed 2 -json")
	must.One(t, code)
	report := reportIn(t, out)
	must.False(t, report.OK)
	must.Eq(t, len(kept), report.Failed)
	must.Eq(t, "5s", report.Failures[0].Violations[0].At)
	must.Eq(t, "below limit", report.Failures[0].Violations[0].Check)
	must.Eq(t, "", report.Failures[0].File)
}

// An interrupted swarm fails. It does not count the seed in play, which may be cut short.
func TestSimSwarm_interrupted(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"", "-json"} {
		ctx, interrupt := context.WithCancel(t.Context())
		play := func(of *scenario.Scenario, o sim.Options) (*sim.Result, error) {
			if of.Seed == 2 {
				interrupt()
			}
			return flawless(of, o)
		}
		code, out, errs := playedBy(play)(ctx, "sim swarm -seeds 9223372036854775807 -workers 1 "+format)
		must.One(t, code)
		must.Eq(t, "interrupted after 1 of 9223372036854775807 seeds: context canceled\n", errs)
		if format == "" {
			must.StrContains(t, out, "STOP  interrupted after 1 of 9223372036854775807 small seeds from 1 on, 0 failed, ")
			continue
		}
		report := reportIn(t, out)
		must.False(t, report.OK)
		must.True(t, report.Interrupted)
		must.One(t, report.Seeds)
	}
}

// A swarm prints its failures even if it cannot keep them.
//
//race:skip the swarm's tests run worlds in parallel
func TestSimSwarm_notKept(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "kept")
	play := func(of *scenario.Scenario, o sim.Options) (*sim.Result, error) {
		must.NoError(t, os.RemoveAll(dir))
		return buggy(of, o)
	}
	code, out, errs := playedBy(play)(t.Context(), "sim swarm -seeds 2 -seed 2 -keep "+dir)
	must.One(t, code)
	must.StrContains(t, out, "FAIL  seed ")
	must.StrContains(t, out, "FAIL  2 small seeds from 2 on, ")
	must.StrContains(t, errs, "keeping seed ")
	must.StrHasSuffix(t, "the swarm failed\n", errs)
}

// An interrupt ends a run and the shrinking of a scenario.
func TestSim_interrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	play := func(of *scenario.Scenario, o sim.Options) (*sim.Result, error) {
		o.Watch = func(w *world.World) { w.At(world.Epoch.Add(6*time.Second), func() error { interrupt(); return nil }) }
		return buggy(of, o)
	}
	code, out, errs := playedBy(play)(ctx, "sim run testdata/limited.drain")
	must.One(t, code)
	must.Eq(t, "interrupted before all scenarios were played\n", errs)
	must.Eq(t, "", out)
	code, _, errs = playedBy(play)(ctx, "sim shrink testdata/limited.drain")
	must.One(t, code)
	must.Eq(t, "shrinking limited: the first play was stopped: context canceled\n", errs)
}

// A failing scenario shrinks to a minimum, which can be played and fails too.
//
//race:skip the swarm's tests run worlds in parallel
func TestSimShrink(t *testing.T) {
	t.Parallel()
	const file = "testdata/limited.drain"
	code, out, errs := playedBy(buggy)(t.Context(), "sim shrink "+file)
	must.Zero(t, code)
	clitest.Golden(t, "sim_shrink.drain", out)
	must.StrHasPrefix(t, "G1 below limit: 3 of 5 are healthy, and it has to be 4\n2 events, 3 nodes, 1 jobs and 2 allocations before, "+
		"1 events, 1 nodes, 0 jobs and 0 allocations now; ", errs)

	small := filepath.Join(t.TempDir(), "small.drain")
	code, out, errs = playedBy(buggy)(t.Context(), "sim shrink -freeze -o "+small+" "+file)
	must.Zero(t, code)
	must.Eq(t, "", out)
	must.StrHasSuffix(t, "replay: nodedrain sim run "+small+"\n", errs)
	code, _, _ = playedBy(buggy)(t.Context(), "sim run -q "+small)
	must.One(t, code)

	code, out, errs = command(t.Context(), "sim shrink "+file)
	must.One(t, code)
	must.Eq(t, "", out)
	must.Eq(t, "shrinking limited: the scenario does not fail\n", errs)
}

// A long swarm prints its progress every ten seconds.
func TestSwarmLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out, errs bytes.Buffer
		call := &cli.Call{Base: cli.Base{Stdio: cli.Stdio{Out: &out, Errs: &errs, Getenv: func(string) string { return "" }}}}
		c := swarmCommand{simulation: simulation{call: call}, seeds: 100}
		swarming(c.progress())
		must.Eq(t, "    10s  40 of 100 seeds, 1 failed, 240 seeds per minute, 2.00 busy hours per second\n"+
			"    20s  80 of 100 seeds, 2 failed, 240 seeds per minute, 2.00 busy hours per second\n", out.String())
		must.Eq(t, "", errs.String())
		out.Reset()
		c.json = true
		swarming(c.progress())
		must.Eq(t, "", out.String())
		must.RegexMatch(t, regexp.MustCompile(`^Still waiting for seeds: (39|40) of 100 seeds, 1 failed, .*s per second \(10s\)\n`+
			`Still waiting for seeds: (79|80) of 100 seeds, 2 failed, .*s per second \(20s\)\n$`), errs.String())
	})
}

// The bar of a swarm shows the same figures all the time and removes itself at the end, even if
// the swarm ends early.
func TestSwarmBar(t *testing.T) {
	t.Parallel()
	for _, of := range []int{100, 200} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			swarming(drawBar(&out, &pace{began: time.Now(), of: of}))
			drawn := regexp.MustCompile(`\[[=>-]+\] +40 of \d+, 1 failed, 240 a minute`).FindString(out.String())
			must.Eq(t, swarmBarWidth, strings.Index(drawn, "]")+1, must.Sprint(out.String()))
			must.Less(t, 80, len(drawn))
		})
	}
}

// swarming plays a hundred seeds in 25 seconds, of which some fail.
func swarming(played func(swarm.Run), end func()) {
	for i := range 100 {
		time.Sleep(250 * time.Millisecond)
		run := swarm.Run{Seed: uint64(i), Busy: 30 * time.Minute}
		if i%33 == 30 {
			run.Failure = &swarm.Failure{}
		}
		played(run)
	}
	end()
}
