package lint_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/lint"
)

func TestReadFields(t *testing.T) {
	t.Parallel()
	m := load(t, "fields")
	path := m.Packages[0].PkgPath
	read, err := lint.ReadFields(m, path, []string{"Row"}, []lint.Root{{Package: path, Name: "Decide"}})
	must.NoError(t, err)
	must.Eq(t, []string{
		"Compared.A", "Compared.B", "Inner.ReadByMethod", "Pointed.ReadByInterface",
		"Row.Compared", "Row.ID", "Row.Inner", "Row.Pointed", "Row.Spec", "Spec.Promoted",
	}, read)

	_, err = lint.ReadFields(m, path, []string{"None"}, nil)
	must.ErrorContains(t, err, "has no type None")
	_, err = lint.ReadFields(m, path, nil, []lint.Root{{Package: path, Name: "None"}})
	must.ErrorContains(t, err, "does not exist")
}
