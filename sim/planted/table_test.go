package planted_test

import (
	"os"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/planted"
)

// rows are measured, half measured and not at all.
func rows() planted.Table {
	return planted.Table{
		{Bug: "a", Breaks: []planted.Guarantee{"G1"}, Test: "drainer.TestX", TestedAt: "abc", Invariant: "G1 budget", Found: 5, Starts: 5, Seeds: 12, Ops: 4, HuntedAt: "def"},
		{Bug: "b", Breaks: []planted.Guarantee{"G4", "G6"}, Test: planted.Survives, Invariant: planted.Hides, Starts: 3, Seeds: 10_000},
		{Bug: "c", Breaks: []planted.Guarantee{"G2"}},
	}
}

func TestTable_ReadsWhatItWrites(t *testing.T) {
	t.Parallel()
	document, err := planted.WriteTable("# Before\n\n<!-- planted -->\nold\n<!-- /planted -->\n\nAfter.\n", rows())
	must.NoError(t, err)
	must.StrHasPrefix(t, "# Before\n\n<!-- planted -->\n| bug |", document)
	must.StrHasSuffix(t, "<!-- /planted -->\n\nAfter.\n", document)
	again, err := planted.ReadTable(document)
	must.NoError(t, err)
	must.Eq(t, rows(), again)
}

func TestReadTable_NamesTheLine(t *testing.T) {
	t.Parallel()
	_, err := planted.ReadTable("no table")
	must.ErrorContains(t, err, "no table stands between")
	_, err = planted.WriteTable("no table", rows())
	must.ErrorContains(t, err, "no table stands between")
	_, err = planted.ReadTable("<!-- planted -->\n| a | b |\n<!-- /planted -->\n")
	must.ErrorContains(t, err, "another head")
	document, err := planted.WriteTable("top\n<!-- planted -->\n<!-- /planted -->\n", rows())
	must.NoError(t, err)
	for _, c := range []struct{ row, want string }{
		{"| `a` | G1 |\n", "line 5: 2 cells, not 9"},
		{"| `a` | G1 | x | c | y | all | 1 | 2 | d |\n", `line 5: "all" is not found of starts`},
		{"| `a` | G1 | x | c | y | 1 of 2 | one | 2 | d |\n", `line 5: strconv.Atoi: parsing "one"`},
	} {
		head, tail := document[:len("top\n<!-- planted -->\n")+len(headOf(document))], "<!-- /planted -->\n"
		_, err := planted.ReadTable(head + c.row + tail)
		must.ErrorContains(t, err, c.want)
	}
}

// headOf are the two lines below the mark.
func headOf(document string) string {
	text := document[len("top\n<!-- planted -->\n"):]
	lines := 0
	for i, r := range text {
		if r == '\n' {
			if lines++; lines == 2 {
				return text[:i+1]
			}
		}
	}
	return text
}

func TestTable_MatchKeepsWhatWasMeasured(t *testing.T) {
	t.Parallel()
	bugs := []*planted.Bug{{Name: "d", Breaks: []planted.Guarantee{"G8"}}, {Name: "a", Breaks: []planted.Guarantee{"G1", "G2"}}}
	matched := rows().Match(bugs)
	must.Len(t, 2, matched)
	must.Eq(t, planted.Row{Bug: "d", Breaks: []planted.Guarantee{"G8"}}, *matched.Row("d"))
	must.Eq(t, "drainer.TestX", matched.Row("a").Test)
	must.Eq(t, []planted.Guarantee{"G1", "G2"}, matched.Row("a").Breaks)
	must.Nil(t, matched.Row("b"))
}

func FuzzReadTable(f *testing.F) {
	document, err := planted.WriteTable("<!-- planted -->\n<!-- /planted -->\n", rows())
	must.NoError(f, err)
	f.Add(document)
	f.Fuzz(func(t *testing.T, document string) {
		table, err := planted.ReadTable(document)
		if err != nil {
			return
		}
		written, err := planted.WriteTable(document, table)
		must.NoError(t, err)
		again, err := planted.ReadTable(written)
		must.NoError(t, err)
		must.Eq(t, table, again)
	})
}

// What was measured is of the bugs that there are.
func TestFound_IsOfTheseBugs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("FOUND.md")
	must.NoError(t, err)
	table, err := planted.ReadTable(string(text))
	must.NoError(t, err)
	must.Eq(t, table.Match(allBugs(t)), table)
}
