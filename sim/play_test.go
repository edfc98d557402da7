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

var rewrite = flag.Bool("rewrite", false, "write down what the scenarios come to as what is expected of them")

// Every scenario that is kept goes as it says, to the letter.
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
			must.SliceNotEmpty(t, s.Prose, must.Sprint("it must begin with why it exists"))
			result, err := sim.Play(s, sim.Options{Tell: true})
			must.NoError(t, err)
			must.SliceEmpty(t, result.Violations)
			must.True(t, result.Calm, must.Sprint("a fault is on to the end: no drain had to end within its bound"))
			must.SliceEmpty(t, result.Vain, must.Sprint("take it out, or say maybe before it if it is meant"))
			if *rewrite {
				must.NoError(t, os.WriteFile(file, scenario.Rewrite(text, result.Story, result.End), 0o644))
				return
			}
			must.Eq(t, s.Story, result.Story, must.Sprint("\n"+result.Story+"\n"))
			must.Eq(t, s.End, result.End, must.Sprint("\n"+result.End+"\n"))
		})
	}
}

// A run is calm from the time that it names, or as soon as no fault is on; and not as
// long as one is.
func TestPlay_calm(t *testing.T) {
	t.Parallel()
	for text, calm := range map[string]bool{
		"":                                             true,
		"at 1m elect believes=10s":                     true,
		"at 1s pause for=20s":                          true,
		"at 1m fault apply/reject":                     false, // it waits for a write
		"at 1s fault apply/reject":                     true,
		"at 1m before marks elect":                     false,
		"at 1s fault view/stale delay=3s for=9s":       true,
		"at 1m fault node/crash on=n2 delay=3m":        true,
		"at 1m fault node/crash on=n2 delay=8h":        false,
		"at 1m fault apply/reject\nrun calm=2m for=1h": true,
	} {
		s, _, err := scenario.Parse("calm.drain", strings.NewReader("node n1..n3\njob web count=2\nalloc web[0..1] on=n1..n2\nat 5s drain n1 deadline=10m\n"+text+"\n"))
		must.NoError(t, err)
		result, err := sim.Play(s, sim.Options{})
		must.NoError(t, err)
		must.SliceEmpty(t, result.Violations)
		must.Eq(t, calm, result.Calm, must.Sprint(text))
	}
}

// A time in which nothing happens is judged at its end, also where it is the drainer's own
// alarm that ends it.
func TestPlay_judgesSilence(t *testing.T) {
	t.Parallel()
	s, _, err := scenario.Parse("still.drain", strings.NewReader(
		"node n1,n2\njob web max-parallel=0\nalloc web on=n1\nat 5s drain n1 deadline=10m\n"))
	must.NoError(t, err)
	result, err := sim.Play(s, sim.Options{})
	must.NoError(t, err)
	must.SliceEmpty(t, result.Violations)
	must.Positive(t, result.Counters.Stills)
}

// Equal scenarios go alike to the last step, however many processors there are. Not
// parallel: it sets their number.
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
	must.Len(t, 20, slices.Compact(one), must.Sprint("other seeds go otherwise"))
}
