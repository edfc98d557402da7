package sim

import (
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

// The command prints the comparison, and fails if plans are wrong.
func TestSimPlans(t *testing.T) {
	t.Parallel()
	code, out, _ := command(t.Context(), "sim plans -worlds 1 -seed 1000 -each")
	must.Zero(t, code, must.Sprint(out))
	must.StrContains(t, out, "seed 1000: ")
	must.StrContains(t, out, "observed times, 10 s or more")

	code, out, _ = command(t.Context(), "sim plans -cluster testdata/openb -drains 3 -each")
	must.Zero(t, code, must.Sprint(out))
	must.EqOp(t, 3, strings.Count(out, "seed 1: 20 nodes"))
	must.StrContains(t, out, "11 to 20 nodes")

	code, out, _ = command(t.Context(), "sim plans -worlds 1 -seed 1000 -slower 3")
	must.One(t, code, must.Sprint(out))
	must.StrContains(t, out, "FAIL  0.0 % of the unseen plays end within the range, at least 90 % must")
}

func TestSimPlans_refuses(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{
		"-worlds 0":                            "-worlds is 0 and must be above 0",
		"-cluster testdata/openb -drains 0":    "-drains is 0 and must be above 0",
		"-cluster testdata/nowhere":            "no such file or directory",
		"-cluster testdata/openb -worlds 3":    "use -worlds or -cluster, not both",
		"-drains 3":                            "-drains needs -cluster",
		"-seed 0":                              "-seed is 0 and must be above 0",
		"-slower 0":                            "-slower is 0 and must be above 0, and at most 100",
		"-worlds 2 -seed 18446744073709551615": "there are no seeds after 18446744073709551615",
		"5":                                    `unexpected argument "5"`,
	} {
		code, _, errs := command(t.Context(), "sim plans "+arguments)
		must.One(t, code)
		must.StrContains(t, errs, want)
	}
}
