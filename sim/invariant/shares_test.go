package invariant_test

import (
	"go/types"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/lint"
)

const module = "github.com/seed-f9cf0b39/nodedrain/"

// A judge that shares code with the drainer shares its mistakes. The judge may use types,
// constants and fields of other packages, and only functions that decide nothing.
func TestPackage_sharesNoCode(t *testing.T) {
	t.Parallel()
	allowed := map[string]bool{
		"String": true, "Compare": true, "Ignorable": true, "Type": true,
		// Reads of the state by id, and of whole tables.
		"Index": true, "Node": true, "Nodes": true, "Job": true, "Jobs": true, "Alloc": true, "Allocs": true, "Eval": true, "Evals": true,
		"Drains": true, "DrainRecord": true, "Dump": true, "RowDump": true, "Volume": true, "Claims": true, "WorkView": true, "ClusterVersion": true, "Draining": true,
		// Indexes that give the ids of rows which an entry may have written. Audits find missing
		// ids.
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
		case "sim/invariant", "witness", "witness/applied", "witness/opinion":
		default:
			used++
			must.True(t, allowed[f.Name()], must.Sprintf("%s uses %s", m.Fset.Position(name.Pos()), f.FullName()))
		}
	}
	must.Positive(t, used)
}
