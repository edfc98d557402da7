package server

import (
	"fmt"
	"os"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
)

// Each knob that an operator may change has a flag, which reaches the configuration, and a row in
// the manual.
func TestKnobs_flagsAndManual(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../../docs/operators.md")
	must.NoError(t, err)
	values := map[string]string{
		"max-ids": "20", "queries": "7.5", "min-interval": "1s", "coalesce": "none", "below-budget": "proceed", "plugins": "after-stop", "completion": "replaced",
	}
	knobs := operatorKnobs(&drainer.NodeDrainerConfig{})
	must.MapLen(t, len(knobs), values)
	for _, k := range knobs {
		row := fmt.Sprintf("| `-%s%s` | %s | %s | `%s` |\n", knobPrefix, k.Name, k.Text, k.Value.Bounds(), k.Value.Default())
		must.StrContains(t, string(manual), row)
		f := newFlags()
		must.NoError(t, (&cli.Command{Options: f.options()}).FlagSet("").Parse([]string{"-" + knobPrefix + k.Name, values[k.Name]}))
		for _, set := range operatorKnobs(&f.drainer) {
			must.EqOp(t, set.Name != k.Name, set.Value.IsZero())
		}
	}
}
