package sim

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/clitest"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// buggy is a simulator in which scenarios with a drain with a deadline fail G1, as after a bug.
func buggy(s *scenario.Scenario, o sim.Options) (*sim.Result, error) {
	r, err := sim.Play(s, o)
	if err != nil {
		return nil, err
	}
	for _, e := range s.Events {
		if d, is := e.Op.(*scenario.Drain); is && d.Deadline > 0 {
			r.Violations = append(r.Violations, invariant.Violation{
				Guarantee: "G1", Check: "below limit", At: world.Epoch.Add(5 * time.Second), Index: 17, Node: d.Nodes[0],
				Text: "3 of 5 are healthy, and it has to be 4",
			})
			break
		}
	}
	return r, nil
}

// files writes files into a folder of the test and returns the folder.
func files(t *testing.T, texts map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range texts {
		must.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

// withoutHashes removes the hashes, which any change of the product changes.
func withoutHashes(text string) string {
	return regexp.MustCompile("hash [0-9a-f]{16}").ReplaceAllString(text, "hash HASH")
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	must.NoError(t, err)
	return string(text)
}

// A wrong command line gives an error that names the mistake, and nothing is played.
func TestSim_mistakes(t *testing.T) {
	t.Parallel()
	clitest.Run(command).Refuses(t, [][2]string{
		{"sim run", `no scenario file is named; see "nodedrain sim run -h"`},
		{"sim run -colour a.drain", `flag provided but not defined: -colour; "nodedrain sim run -h" lists the options`},
		{"sim run a.drain -colour", `flag provided but not defined: -colour`},
		{"sim run a.drain -cluster x", "a.drain: a scenario file excludes -cluster and -size"},
		{"sim run a.drain b.drain -svg x", "-svg needs a single scenario"},
		{"sim run a.drain -width -3", "-width is -3 and must be above 0"},
		{"sim run a.drain -seed 3", "-seed needs -size or -cluster"},
		{"sim run a.drain -nodes n1", "-nodes needs -cluster DIR"},
		{"sim run -cluster testdata/none", "testdata/none/nodes.csv"},
		{"sim run -cluster testdata/none -size small", "-cluster and -size are mutually exclusive"},
		{"sim run -cluster testdata/none -rewrite", "-rewrite and -cluster are mutually exclusive"},
		{"sim run --cluster=x --nodes=a --drains=2", "-nodes and -drains are mutually exclusive"},
		{"sim run -cluster testdata/openb -nodes m-00,m-99", `the cluster has no node "m-99"`},
		{"sim run -cluster testdata/openb -nodes m-00,m-00", "-nodes names m-00 twice"},
		{"sim run -cluster testdata/openb -drains 15", "cannot drain 15 of 20 nodes at once"},
		{"sim run -cluster testdata/openb -drains 0", "-drains is 0 and must be above 0"},
		{"sim run -cluster testdata/openb -deadline -1s", "-deadline is -1s and must not be below 0"},
		{"sim run -size tiny", `-size: "tiny" is not a size: the sizes are small, medium and large`},
		{"sim run -size small -seed 0", "-seed is 0 and must be above 0"},
		{"sim swarm -seeds 0", "-seeds is 0 and must be above 0"},
		{"sim swarm -seeds many", `invalid value "many" for flag -seeds`},
		{"sim swarm -seed 0", "-seed is 0 and must be above 0"},
		{"sim swarm -size huge", `"huge" is not a size`},
		{"sim swarm -workers -2", "-workers is -2 and must be above 0"},
		{"sim swarm -fresh -seed 1", "-fresh and -seed are mutually exclusive"},
		{"sim swarm now", `unexpected argument "now"; "nodedrain sim swarm -h" lists the options`},
		{"sim shrink", "neither a scenario file nor a seed is named"},
		{"sim shrink testdata/none.drain", "testdata/none.drain"},
		{"sim shrink a.drain b.drain", "b.drain: one scenario at a time"},
		{"sim shrink a.drain -seed 3", "a.drain: a scenario file excludes -seed"},
		{"sim shrink a.drain -size small", "-size needs -seed"},
		{"sim shrink -seed 3 -size huge", `"huge" is not a size`},
		{"sim shrink -seed 3 -plays 0", "-plays is 0 and must be above 0"},
	})
}

// command runs a command line.
func command(ctx context.Context, line string) (code int, out, errs string) {
	return playedBy(sim.Play)(ctx, line)
}

// playedBy returns a Run of commands with a simulator.
func playedBy(play player) clitest.Run {
	return clitest.Program(commands(play))
}
