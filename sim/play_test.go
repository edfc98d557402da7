package sim_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
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
			must.Eq(t, s.Story, result.Story, must.Sprint("\n"+result.Story+"\n"))
			must.Eq(t, s.End, result.End, must.Sprint("\n"+result.End+"\n"))
		})
	}
}
