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

// Each knob of the drainer changes a run: the world and the term forward it, and a component uses it.
// The story of the run changes, or only its steps and entries. A knob without a row fails.
func TestKnobs_changeTheRun(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		value, file, both string
		// onlySteps: the story does not show the change.
		onlySteps bool
	}{
		"max-ids":      {"2", "case-17-cancel-none-stopped", "", false},
		"max-bytes":    {"4096", "case-19-a-hundred-nodes-at-one-deadline", "", false},
		"in-flight":    {"1", "case-17-cancel-none-stopped", "max-ids=2", false},
		"queries":      {"0.2", "case-05-peer-unhealthy-moves", "", false},
		"min-interval": {"5s", "case-05-peer-unhealthy-moves", "", false},
		"coalesce":     {"none", "case-16-deadline-coalesced", "", false},
		"retry":        {"3s", "case-21-late-before-completion", "", false},
		"retry-max":    {"60ms", "case-31-rejected-then-unknown-applied", "", true},
		"health-grace": {"1m", "case-03-no-verdict", "", false},
		"stop-margin":  {"1m", "case-22-paced-never-stops", "", false},
		"below-budget": {"proceed", "case-05-peer-unhealthy-deadline", "", false},
		"plugins":      {"after-stop", "case-07-plugin-at-the-deadline", "", false},
		"completion":   {"marked", "case-05-peer-unhealthy-moves", "", false},
	}
	must.MapLen(t, len((&drainer.NodeDrainerConfig{}).Knobs()), rows)
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("scenarios", row.file+".drain")
			text, err := os.ReadFile(file)
			must.NoError(t, err)
			play := func(knobs string) *sim.Result {
				s, _, err := scenario.Parse(file, bytes.NewReader(append([]byte("drainer "+knobs+row.both+"\n"), text...)))
				must.NoError(t, err)
				result, err := sim.Play(s, sim.Options{Story: true})
				must.NoError(t, err)
				return result
			}
			byDefault, changed := play(""), play(name+"="+row.value+" ")
			must.NotEq(t, byDefault.Hash, changed.Hash)
			must.EqOp(t, row.onlySteps, byDefault.Story == changed.Story)
		})
	}
}
