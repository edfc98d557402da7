package invariant_test

import (
	"go/types"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/lint"
)

const module = "github.com/seed-f9cf0b39/nodedrain/"

// A judge that shares code with what it judges shares its mistakes: of the packages
// below only types, constants and fields may be used, and those functions that name
// or print and judge nothing.
func TestPackage_sharesNothing(t *testing.T) {
	t.Parallel()
	allowed := map[string]bool{
		"String": true, "Compare": true, "Ignorable": true, "Type": true,
		// Reads of the state by id, and whole tables: no index that decides anything.
		"Index": true, "Node": true, "Nodes": true, "Job": true, "Jobs": true, "Alloc": true, "Allocs": true, "Eval": true, "Evals": true,
		"Drains": true, "DrainRecord": true, "Dump": true,
		// Names of rows that an entry may write, of the state before it. What they leave
		// out is found when everything is counted.
		"DrainsByNode": true, "LiveAllocsByNode": true, "AllocsByJob": true, "EvalsByJob": true,
	}
	m, err := lint.Load(".", ".")
	must.NoError(t, err)
	must.SliceLen(t, 1, m.Packages)
	used := 0
	for name, object := range m.Packages[0].TypesInfo.Uses {
		f, is := object.(*types.Func)
		if !is || f.Pkg() == nil || !strings.HasPrefix(f.Pkg().Path(), module) {
			continue
		}
		switch strings.TrimPrefix(f.Pkg().Path(), module) {
		case "sim/invariant", "witness/opinion":
		default:
			used++
			must.True(t, allowed[f.Name()], must.Sprintf("%s uses %s", m.Fset.Position(name.Pos()), f.FullName()))
		}
	}
	must.Positive(t, used)
}
