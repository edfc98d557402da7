package sim_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

var rewrite = flag.Bool("rewrite", false, "write the results of the scenarios into their files")

// Every kept scenario has the story and the end that its file expects.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("scenarios/*.drain")
	must.NoError(t, err)
	must.SliceNotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".drain"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			must.NoError(t, err)
			s, _, err := scenario.Parse(filepath.Base(file), bytes.NewReader(text))
			must.NoError(t, err)
			must.SliceNotEmpty(t, s.Prose, must.Sprint("the file must start with its purpose"))
			result, err := sim.Play(s, sim.Options{Story: true})
			must.NoError(t, err)
			must.SliceEmpty(t, result.Violations)
			must.True(t, result.FaultsEnded, must.Sprint("a fault lasts until the end, so no drain has a bound"))
			must.SliceEmpty(t, result.NoEffect, must.Sprint("remove the event, or mark it with maybe"))
			if *rewrite {
				must.NoError(t, os.WriteFile(file, scenario.Rewrite(text, result.Story, result.End), 0o644))
				return
			}
			must.Eq(t, s.Story, result.Story, must.Sprint("\n"+result.Story+"\n"))
			must.Eq(t, s.End, result.End, must.Sprint("\n"+result.End+"\n"))
		})
	}
}

// The faults of a run have ended at the time that its scenario sets, or when none is active.
func TestPlay_faultsEnded(t *testing.T) {
	t.Parallel()
	for text, ended := range map[string]bool{
		"":                                             true,
		"at 1m elect believes=10s":                     true,
		"at 1s pause for=20s":                          true,
		"at 1m fault apply/reject":                     false, // the fault waits for a write
		"at 1s fault apply/reject":                     true,
		"at 1m before marks elect":                     false,
		"at 1s fault view/stale delay=3s for=9s":       true,
		"at 1m fault node/crash on=n2 delay=3m":        true,
		"at 1m fault node/crash on=n2 delay=8h":        false,
		"at 1m fault apply/reject\nrun calm=2m for=1h": true,
	} {
		s, _, err := scenario.Parse("ended.drain", strings.NewReader("node n1..n3\njob web count=2\nalloc web[0..1] on=n1..n2\nat 5s drain n1 deadline=10m\n"+text+"\n"))
		must.NoError(t, err)
		result, err := sim.Play(s, sim.Options{})
		must.NoError(t, err)
		must.SliceEmpty(t, result.Violations)
		must.Eq(t, ended, result.FaultsEnded, must.Sprint(text))
	}
}

// A long pause is judged at its end, even if the drainer's own timer ends it.
func TestPlay_judgesPauses(t *testing.T) {
	t.Parallel()
	s, _, err := scenario.Parse("still.drain", strings.NewReader(
		"node n1,n2\njob web max-parallel=0\nalloc web on=n1\nat 5s drain n1 deadline=10m\n"))
	must.NoError(t, err)
	result, err := sim.Play(s, sim.Options{})
	must.NoError(t, err)
	must.SliceEmpty(t, result.Violations)
	must.Positive(t, result.Stills)
}

// Equal scenarios give equal hashes with any number of processors. Not parallel: the test sets
// their number.
func TestPlay_sameHash(t *testing.T) {
	hashes := func(processors int) []uint64 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		var hashes []uint64
		for seed := range uint64(20) {
			result, err := sim.Play(swarm.Generate(seed+1, swarm.Small), sim.Options{})
			must.NoError(t, err)
			hashes = append(hashes, result.Hash)
		}
		return hashes
	}
	one := hashes(1)
	must.Eq(t, one, hashes(2))
	must.Eq(t, one, hashes(1))
	slices.Sort(one)
	must.Len(t, 20, slices.Compact(one), must.Sprint("two seeds have equal hashes"))
}

// A result lists the services that lack healthy allocations at the end: first those below their limit.
func TestPlay_unhealthy(t *testing.T) {
	t.Parallel()
	s, _, err := scenario.Parse("services.drain", strings.NewReader(`node n1..n3
node n4 cpu=100
job api count=1
job one count=2 max-parallel=1 cpu=60 classes=none
job sum type=batch count=2 cpu=1000000 classes=none
job web count=4 max-parallel=1
alloc one on=n4
alloc web[0..3] on=n1,n2
client web replacements unhealthy=1
run for=10m

at 5s drain n1,n2 deadline=1m
`))
	must.NoError(t, err)
	result, err := sim.Play(s, sim.Options{})
	must.NoError(t, err)
	must.SliceEmpty(t, result.Violations)
	must.Eq(t, []string{"web has 0 of 4 healthy, below its limit of 3", "one has 1 of 2 healthy"}, result.Unhealthy)
}
