package planted_test

import (
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/planted"
)

// example is a bug of two hunks in one file.
const example = `The sum is one too many.

Somebody counted from one.

It takes a sum.

breaks G1 G10

@@ cluster/sum.go
 func sum(a, b int) int {
-	return a + b
+	return a + b + 1

 }

@@ cluster/sum.go
-// One.
+// Two.
`

func TestParse_ReadsWhatStandsThere(t *testing.T) {
	t.Parallel()
	b, err := planted.Parse("sum", example)
	must.NoError(t, err)
	must.Eq(t, "sum", b.Name)
	must.Eq(t, "The sum is one too many.", b.Title)
	must.Eq(t, []string{"Somebody counted from one.", "", "It takes a sum."}, b.Why)
	must.Eq(t, []planted.Guarantee{"G1", "G10"}, b.Breaks)
	must.Len(t, 2, b.Hunks)
	h := b.Hunks[0]
	must.Eq(t, 9, h.Line)
	must.Eq(t, "cluster/sum.go", h.File)
	must.Eq(t, "func sum(a, b int) int {\n\treturn a + b\n\n}\n", h.Old())
	must.Eq(t, "func sum(a, b int) int {\n\treturn a + b + 1\n\n}\n", h.New())
	must.Eq(t, example, b.String())
}

// Whoever writes a bug is told where it is wrong.
func TestParse_NamesTheLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", "x.bug:1: the first line is the title"},
		{"\nTitle.", "x.bug:1: the first line is the title"},
		{"T.\n\nbreaks G1", "x.bug:3: nothing says why"},
		{"T.\n\nW.\n\nbreaks G12", `x.bug:5: "G12" is no guarantee`},
		{"T.\n\nW.\n\nbreaks G1 G1", "x.bug:5: G1 stands here twice"},
		{"T.\n\nW.\n\nbreaks G1\nbreaks G2", "x.bug:6: \"breaks\" stands here twice"},
		{"T.\n\nW.\n\nbreaks", `x.bug:5: "" is no guarantee`},
		{"T.\n\nW.\n\nbreaks G1\n", "x.bug:5: the bug changes nothing: it has no hunk"},
		{"T.\n\nW.\n\nbreaks G1\n\nmore", "x.bug:7: after \"breaks\" comes a hunk"},
		{"T.\n\nW.\n\n@@ a.go", "x.bug:5: what the bug breaks comes before its first hunk"},
		{"T.\n\nW.\n\nbreaks G1\n@@ ../a.go", "x.bug:6: \"../a.go\" is no Go file of the repository"},
		{"T.\n\nW.\n\nbreaks G1\n@@ a.md", "x.bug:6: \"a.md\" is no Go file"},
		{"T.\n\nW.\n\nbreaks G1\n@@ sim/a.go", "x.bug:6: sim/a.go is no part of the product"},
		{"T.\n\nW.\n\nbreaks G1\n@@ a/a_test.go", "x.bug:6: a/a_test.go is no part of the product"},
		{"T.\n\nW.\n\nbreaks G1\n@@ a.go\nx", "x.bug:7: a line of a hunk begins with"},
		{"T.\n\nW.\n\nbreaks G1\n@@ a.go\n a", "x.bug:7: the hunk of line 6 changes nothing"},
		{"T.\n\nW.\n\nbreaks G1\n@@ a.go\n+a", "x.bug:7: the hunk of line 6 says nothing of what is in a.go"},
		{"T.\n\nW.\n\nbreaks G1\n@@ a.go\n@@ b.go", "x.bug:7: the hunk of line 6 says nothing"},
	} {
		_, err := planted.Parse("x", c.text)
		must.ErrorContains(t, err, c.want, must.Sprintf("%q", c.text))
	}
}

// What is read is written so that it reads as the same.
func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Add("T.\r\n\r\nW.\r\n\r\nbreaks G1\r\n@@ a.go\r\n-a\r\n")
	f.Add(".\n\r\r\nbreaks G1\r\n@@ a.go\r\n-a\r\r\n") // it was written as a line of nothing
	f.Fuzz(func(t *testing.T, text string) {
		b, err := planted.Parse("fuzz", text)
		if err != nil {
			must.StrHasPrefix(t, "fuzz.bug:", err.Error())
			return
		}
		again, err := planted.Parse("fuzz", b.String())
		must.NoError(t, err)
		for i := range b.Hunks {
			again.Hunks[i].Line = b.Hunks[i].Line
		}
		must.Eq(t, b, again)
		must.False(t, strings.HasSuffix(b.String(), "\n\n"))
	})
}
