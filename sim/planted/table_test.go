package planted_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/planted"
)

// complete returns bugs and a table that pass every check.
func complete() ([]*planted.Bug, planted.Table) {
	var bugs []*planted.Bug
	var table planted.Table
	for i, g := range planted.Guarantees() {
		for _, twin := range []string{"a", "b"} {
			b := &planted.Bug{Name: twin + strconv.Itoa(i), Breaks: []planted.Guarantee{g}}
			bugs = append(bugs, b)
			table = table.Set(planted.Row{Bug: b.Name, Breaks: b.Breaks, Found: "seed 1", Check: "G6 not retried"})
		}
	}
	return bugs, table
}

func TestTable_Check(t *testing.T) {
	t.Parallel()
	bugs, table := complete()
	must.NoError(t, table.Check(bugs))
	must.ErrorContains(t, table[1:].Check(bugs), "a0 has no row: run go run ./sim/planted/find a0")
	must.ErrorContains(t, table.Check(bugs[1:]), "1 bugs break G1 first, at least 2 must")
	for i := range 7 {
		table[i].Found = "test drainer.TestTerm_Quiet"
	}
	must.NoError(t, table.Check(bugs))
	table[slices.IndexFunc(table, func(r planted.Row) bool { return r.Breaks[0] == "N1" })].Found = "test client.TestCore_order"
	must.NoError(t, table.Check(bugs))
	table[len(table)-1].Found = "test drainer.TestTerm_Quiet"
	must.ErrorContains(t, table.Check(bugs), "8 bugs are found by a named test only, at most 7 may")
}

func TestTable_ReadsWhatItWrites(t *testing.T) {
	t.Parallel()
	_, table := complete()
	table[0].Breaks = []planted.Guarantee{"G1", "G2"}
	table[1].Found, table[1].Check = "test drainer.TestTerm_Quiet", ""
	read, err := planted.ReadTable(table.String())
	must.NoError(t, err)
	must.Eq(t, table, read)
	_, err = planted.ReadTable("no table")
	must.ErrorContains(t, err, "the document has no table")
	_, err = planted.ReadTable(table.String() + "| a | b |\n")
	must.ErrorContains(t, err, "a row of planted bugs has 4 cells, not 2")
}

func TestTable_KeepsOneRowForEachBug(t *testing.T) {
	t.Parallel()
	bugs, table := complete()
	must.Len(t, 2*len(planted.Guarantees()), table.Set(planted.Row{Bug: "a0", Found: "seed 2"}))
	bugs[0].Breaks = []planted.Guarantee{"G5"}
	matched := table.Match(bugs[:1])
	must.Eq(t, planted.Table{{Bug: "a0", Breaks: []planted.Guarantee{"G5"}, Found: "seed 1", Check: "G6 not retried"}}, matched)
}

// Every bug is found, and the table names only bugs, scenarios and tests that exist.
func TestFound_IsComplete(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("FOUND.md")
	must.NoError(t, err)
	table, err := planted.ReadTable(string(text))
	must.NoError(t, err)
	bugs := allBugs(t)
	must.NoError(t, table.Check(bugs))
	must.Eq(t, table.Match(bugs).String(), string(text), must.Sprint("run go run ./sim/planted/find"))
	for _, r := range table {
		switch kind, name, _ := strings.Cut(r.Found, " "); kind {
		case "seed":
			_, err := strconv.ParseUint(name, 10, 64)
			must.NoError(t, err, must.Sprint(r.Bug))
		case "scenario":
			must.FileExists(t, filepath.Join(root, "sim", "scenarios", name+".drain"))
		case "test":
			must.True(t, testExists(t, name), must.Sprintf("%s: no test %s", r.Bug, name))
		default:
			t.Errorf("%s is found by %q", r.Bug, r.Found)
		}
	}
}

// testExists reports whether a package of the product, or one that simulates a node, has the test,
// as in "drainer.TestX".
func testExists(t *testing.T, name string) bool {
	t.Helper()
	folder, test, _ := strings.Cut(name, ".")
	for _, pattern := range []string{folder, "drainer/" + folder, "client/" + folder, "sim/internal/" + folder} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern), "*_test.go"))
		must.NoError(t, err)
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			must.NoError(t, err)
			for _, d := range file.Decls {
				if f, is := d.(*ast.FuncDecl); is && f.Recv == nil && f.Name.Name == test {
					return true
				}
			}
		}
	}
	return false
}
