package cli

import (
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

// Only the exact answer "y" confirms. A command that was not confirmed once exited with 0, so that a script
// without a terminal did not detect it.
func TestConfirmed(t *testing.T) {
	t.Parallel()
	const (
		cancelled = "sure? Canceling drain toggle\n"
		almost    = "sure? For confirmation, an exact ‘y’ is required.\n"
		nothing   = "sure? No confirmation detected. For confirmation, an exact 'y' is required.\n"
		refused   = "nothing was changed: the answer was not \"y\"; -yes skips the question\n"
	)
	for answer, want := range map[string]struct {
		code      int
		out, errs string
	}{
		"y\n":     {-1, "sure? ", ""},
		"y":       {-1, "sure? ", ""},
		"Y\n":     {1, nothing, refused},
		"\n":      {1, cancelled, refused},
		"":        {1, cancelled, "nothing was changed: the input ended before an answer; -yes skips the question\n"},
		"n\n":     {1, cancelled, refused},
		"never\n": {1, cancelled, refused},
		"yes\n":   {1, almost, refused},
		"yo\n":    {1, almost, refused},
		"ok\n":    {1, nothing, refused},
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
