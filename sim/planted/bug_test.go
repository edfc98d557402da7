//race:skip it runs go commands
package planted_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/planted"
)

func TestParse(t *testing.T) {
	t.Parallel()
	b, err := planted.Parse("sum", "Title.\n\nA reason\nof two lines.\n\nAnd more.\n\nbreaks G1 G12\n\n"+
		"@@ cluster sum\n a()\n-b()\n\n+c()\n\n@@ drainer/rules budget.admit\n-x\n+y\n")
	must.NoError(t, err)
	must.Eq(t, &planted.Bug{
		Name: "sum", Title: "Title.", Why: "A reason\nof two lines.\n\nAnd more.", Breaks: []planted.Guarantee{"G1", "G12"},
		Edits: []planted.Edit{
			{Line: 10, Folder: "cluster", Func: "sum", Old: "a()\nb()\n", New: "a()\nc()\n"},
			{Line: 16, Folder: "drainer/rules", Func: "budget.admit", Old: "x\n", New: "y\n"},
		},
	}, b)
}

func TestParse_NamesTheLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                            "x.bug:1: the title is one line",
		"\nTitle.":                    "x.bug:1: the title is one line",
		"T.\n\nbreaks G1\n":           "x.bug:1: a reason, a blank line",
		"T.\n\nW.\n\nbreaks G13\n":    `x.bug:1: "G13" is no guarantee`,
		"T.\n\nW.\n\nbreaks G1 G1\n":  `x.bug:1: "G1" is no guarantee, or is listed twice`,
		"T.\n\nW.\n\nbreaks \n":       "x.bug:1: no guarantee follows",
		"T.\n\nW.\n\nbreaks G1\n":     `x.bug:1: no line begins with "@@ "`,
		head + "@@ drainer\n-a\n":     `x.bug:7: "drainer": an edit begins with`,
		head + "@@ ../x f\n-a\n":      `x.bug:7: "../x f": an edit begins with`,
		head + "@@ a/b.go f\n-a\n":    `x.bug:7: "a/b.go f": an edit begins with`,
		head + "@@ sim/world f\n-a\n": "x.bug:7: sim/world is not part of the product",
		head + "@@ p f\nx\n":          `x.bug:7: "x": a line of an edit begins with`,
		head + "@@ p f\n a\n":         "x.bug:7: the edit has no old code, or changes nothing",
		head + "@@ p f\n+a\n":         "x.bug:7: the edit has no old code, or changes nothing",
	} {
		_, err := planted.Parse("x", text)
		must.ErrorContains(t, err, want, must.Sprintf("%q", text))
	}
}

const head = "T.\n\nW.\n\nbreaks G1\n\n"
