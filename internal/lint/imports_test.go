package lint_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/lint"
)

func TestCheckImports(t *testing.T) {
	t.Parallel()
	const fixtures = module + "/internal/lint/testdata/src/imports"
	const inner, middle, outer = fixtures + "/inner", fixtures + "/middle", fixtures + "/outer"
	because := func(path string) map[string]string { return map[string]string{path: "because"} }
	found, err := lint.CheckImports(".", []lint.ImportRule{{Package: middle, OnlyStandard: "because"}, {Package: outer, OnlyStandard: "because"}})
	must.NoError(t, err)
	must.SliceEmpty(t, found, must.Sprint("a package with the same restriction"))
	for name, test := range map[string]struct {
		rule lint.ImportRule
		want string // one finding, or empty
	}{
		"through another":      {lint.ImportRule{Package: inner, Never: because(outer)}, inner + " → " + middle + " → " + outer + ": because"},
		"reverse":              {lint.ImportRule{Package: outer, Never: because(inner)}, ""},
		"directly":             {lint.ImportRule{Package: inner, Directly: because("math/rand")}, inner + " → math/rand: because"},
		"not directly":         {lint.ImportRule{Package: middle, Directly: because("math/rand")}, ""},
		"not standard":         {lint.ImportRule{Package: middle, OnlyStandard: "because"}, middle + " → " + outer + ": because"},
		"the standard library": {lint.ImportRule{Package: outer, OnlyStandard: "because"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := lint.CheckImports(".", []lint.ImportRule{test.rule})
			must.NoError(t, err)
			wantOne(t, test.want, found)
		})
	}
}

func TestCheckImports_NoSuchPackage(t *testing.T) {
	t.Parallel()
	for _, rule := range []lint.ImportRule{
		{Package: module + "/misspelt"},
		{Package: module + "/cluster", Never: map[string]string{"net/htpp": "because"}},
		{Package: module + "/cluster", Directly: map[string]string{"github.com/hashicorp/no-memdb": "because"}},
	} {
		_, err := lint.CheckImports(".", []lint.ImportRule{rule})
		must.ErrorContains(t, err, "which is no package")
	}
}
