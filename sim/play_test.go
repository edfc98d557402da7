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
			if *rewrite {
				must.NoError(t, os.WriteFile(file, scenario.Rewrite(text, result.Story, result.End), 0o644))
				return
			}
			must.SliceEmpty(t, result.Violations)
			must.Eq(t, s.Story, result.Story, must.Sprint("\n"+result.Story+"\n"))
			must.Eq(t, s.End, result.End, must.Sprint("\n"+result.End+"\n"))
		})
	}
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
