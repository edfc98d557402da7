package lint_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/lint"
)

func TestCheckDeclarations_fixtures(t *testing.T) {
	t.Parallel()
	const fixtures = "github.com/seed-f9cf0b39/nodedrain/internal/lint/testdata/src/declarations"
	found := lint.CheckDeclarations(load(t, "declarations"), map[string]string{
		fixtures + "/anything.Excused": "a test",
		fixtures + "/state.excused":    "a test",
	})
	readWants(t, folder(t, "declarations")).check(t, found)
}

// An exception that excuses nothing would hide the next one of its name.
func TestCheckDeclarations_stale(t *testing.T) {
	t.Parallel()
	found := lint.CheckDeclarations(load(t, "loop/stale"), map[string]string{"there.is.None": "a test"})
	must.Len(t, 1, found)
	must.Eq(t, "the exception for there.is.None excuses nothing", found[0].What)
}
