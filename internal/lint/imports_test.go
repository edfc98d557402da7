package lint_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/lint"
)

func TestCheckImports_fixtures(t *testing.T) {
	t.Parallel()
	const fixtures = "github.com/seed-f9cf0b39/nodedrain/internal/lint/testdata/src/imports"
	because := func(paths ...string) map[string]string {
		m := map[string]string{}
		for _, path := range paths {
			m[path] = "because"
		}
		return m
	}
	for name, test := range map[string]struct {
		rule lint.ImportRule
		want []string
	}{
		"through others": {
			lint.ImportRule{Package: fixtures + "/inner", Never: because(fixtures + "/outer")},
			[]string{fixtures + "/inner → " + fixtures + "/middle → " + fixtures + "/outer: because"},
		},
		"the other way round": {
			lint.ImportRule{Package: fixtures + "/outer", Never: because(fixtures + "/inner")}, nil,
		},
		"directly": {
			lint.ImportRule{Package: fixtures + "/inner", Directly: because("math/rand")},
			[]string{fixtures + "/inner → math/rand: because"},
		},
		"not directly": {
			lint.ImportRule{Package: fixtures + "/middle", Directly: because("math/rand")}, nil,
		},
		"the standard library alone": {
			lint.ImportRule{Package: fixtures + "/middle", OnlyStandard: "because"},
			[]string{fixtures + "/middle → " + fixtures + "/outer: because"},
		},
		"nothing but the standard library": {
			lint.ImportRule{Package: fixtures + "/outer", OnlyStandard: "because"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := lint.CheckImports(".", []lint.ImportRule{test.rule})
			must.NoError(t, err)
			var got []string
			for _, f := range found {
				got = append(got, f.What)
			}
			must.Eq(t, test.want, got)
		})
	}
}

// A rule with a misspelt path could not be broken.
func TestCheckImports_noSuchPackage(t *testing.T) {
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
