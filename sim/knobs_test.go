package sim_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Each knob of the drainer changes a run: a server, a world and a term forward it, and a component
// uses it. A knob without a row fails.
func TestKnobs_changeTheRun(t *testing.T) {
	t.Parallel()
	rows := map[string]struct{ value, file, both string }{
		"max-ids":      {"2", "case-17-cancel-none-stopped", ""},
		"max-bytes":    {"4096", "case-19-a-hundred-nodes-at-one-deadline", ""},
		"in-flight":    {"1", "case-19-a-hundred-nodes-at-one-deadline", "max-ids=2"},
		"queries":      {"0.2", "case-05-peer-unhealthy-moves", ""},
		"min-interval": {"5s", "case-05-peer-unhealthy-moves", ""},
		"coalesce":     {"none", "case-16-deadline-coalesced", ""},
		"retry":        {"3s", "case-21-late-before-completion", ""},
		"retry-max":    {"60ms", "case-31-rejected-then-unknown-applied", ""},
		"health-grace": {"1m", "case-03-no-verdict", ""},
		"stop-margin":  {"1m", "case-22-paced-never-stops", ""},
		"below-budget": {"proceed", "case-05-peer-unhealthy-deadline", ""},
		"plugins":      {"after-stop", "case-07-plugin-at-the-deadline", ""},
		"completion":   {"marked", "case-05-peer-unhealthy-moves", ""},
	}
	must.MapLen(t, len((&drainer.NodeDrainerConfig{}).Knobs()), rows)
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("scenarios", row.file+".drain")
			text, err := os.ReadFile(file)
			must.NoError(t, err)
			hash := func(knobs string) uint64 {
				s, _, err := scenario.Parse(file, bytes.NewReader(append([]byte("drainer "+knobs+row.both+"\n"), text...)))
				must.NoError(t, err)
				result, err := sim.Play(s, sim.Options{})
				must.NoError(t, err)
				return result.Hash
			}
			must.NotEq(t, hash(""), hash(name+"="+row.value+" "))
		})
	}
}
