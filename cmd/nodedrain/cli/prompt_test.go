package cli

import (
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

// Only the exact answer "y" confirms.
func TestConfirmed(t *testing.T) {
	t.Parallel()
	const (
		cancelled = "sure? Canceling drain toggle\n"
		almost    = "sure? For confirmation, an exact ‘y’ is required.\n"
		nothing   = "No confirmation detected. For confirmation, an exact 'y' is required.\n"
	)
	for answer, want := range map[string]struct {
		code      int
		out, errs string
	}{
		"y\n":     {-1, "sure? ", ""},
		"Y\n":     {1, "sure? ", nothing},
		"y":       {-1, "sure? ", ""},
		"\n":      {0, cancelled, ""},
		"":        {0, cancelled, ""},
		"n\n":     {0, cancelled, ""},
		"never\n": {0, cancelled, ""},
		"yes\n":   {0, almost, ""},
		"yo\n":    {0, almost, ""},
		"ok\n":    {1, "sure? ", nothing},
	} {
		var out, errs strings.Builder
		c := Base{Stdio: Stdio{In: strings.NewReader(answer), Out: &out, Errs: &errs}}
		code := -1
		if err := c.Confirm("sure?", "Canceling drain toggle"); err != nil {
			code = (&entry{c, "", &Command{Run: func(*Call) error { return err }}}).Run(nil)
		}
		must.Eq(t, want.code, code, must.Sprintf("%q", answer))
		must.Eq(t, want.out, out.String(), must.Sprintf("%q", answer))
		must.Eq(t, want.errs, errs.String(), must.Sprintf("%q", answer))
	}
}
