package planted_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/planted"
)

const product = `package p

// f has a comment.
func f(a, b int) int {
	if a > 0 && b > 0 { // both
		g(a) // first
		g(b)
	}
	switch a {
	case 1:
		g(a, b)
		g(b)
	case 2:
		return b
	}
	g(a, xs...)
	return a
}

type t[K any] struct{}

func (x *t[K]) f() {
	g(1)
}
`

// apply applies an edit to the product, which is one file. It returns the body of the variant
// without the code around it.
func apply(t *testing.T, edits string) (body string, err error) {
	t.Helper()
	b, err := planted.Parse("x", head+edits)
	must.NoError(t, err)
	changed, err := planted.Apply(fstest.MapFS{"p/a.go": {Data: []byte(product)}, "p/a_test.go": {Data: []byte("broken")}}, []*planted.Bug{b})
	if err != nil {
		return "", err
	}
	must.Eq(t, "package p\n\nimport \"os\"\n\nvar plantedBug = os.Getenv(\"NODEDRAIN_PLANTED_BUG\")\n", changed["p/planted_bug.go"])
	text := changed["p/a.go"]
	begin, end := "\n//line x.bug:1\nif plantedBug == \"x\" ", "\n//line a.go:"
	from, to := strings.Index(text, begin), strings.Index(text, end)
	_, rest, _ := strings.Cut(text[to+len(end):], "\n")
	must.Eq(t, product, text[:from]+rest)
	return text[from+len(begin) : to], nil
}

func TestApply_ReplacesCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, edits, old, new string }{
		{"an expression", "@@ p f\n-a>0 && b > 0\n+a > 1\n", "a > 0 && b > 0", "(a > 1)"},
		{"an operand", "@@ p f\n-b > 0\n+g(b)\n", "b > 0", "g(b)"},
		{"statements around a comment", "@@ p f\n-g(a)\n g(b)\n", "g(a) // first\n\t\tg(b)", "g(b)"},
		{"a statement that is deleted", "@@ p f\n-g(a)\n", "g(a) //", " //"},
		{"a statement in front", "@@ p f\n+g(0)\n g(a, b)\n", "g(a, b)", "g(0)\ng(a, b)"},
		{"a case", "@@ p f\n-case 2:\n-\treturn b\n", "case 2:\n\t\treturn b", ""},
		{"dots", "@@ p f\n-g(a, xs...)\n+g(a)\n", "g(a, xs...)", "g(a)"},
		{"two edits in order", "@@ p f\n-b > 0\n+g(7)\n\n@@ p f\n-g(7)\n+g(8)\n", "b > 0", "g(8)"},
	} {
		body, err := apply(t, c.edits)
		must.NoError(t, err, must.Sprint(c.name))
		_, f, _ := strings.Cut(product, "func f(a, b int) int ")
		f, _, _ = strings.Cut(f, "\n\n")
		must.StrContains(t, f, c.old)
		must.Eq(t, strings.Replace(f, c.old, c.new, 1), body, must.Sprint(c.name))
	}
}

// A variant of a function without results must not go on with the product's code.
func TestApply_ReturnsFromAMethod(t *testing.T) {
	t.Parallel()
	body, err := apply(t, "@@ p t.f\n-g(1)\n+g(2)\n")
	must.NoError(t, err)
	must.Eq(t, "{\n\tg(2)\n\nreturn }", body)
}

// The error of a bug that no longer matches states what is gone and what to do.
func TestApply_RefusesWhatDoesNotMatch(t *testing.T) {
	t.Parallel()
	for edits, want := range map[string]string{
		"@@ q f\n-a\n+b\n":          "x.bug:7: q f: the package has no function f: name the function that has this code now",
		"@@ p u.f\n-g(1)\n+g(2)\n":  "x.bug:7: p u.f: the package has no function u.f (t.f has the old code): name the function",
		"@@ p f\n-a > 5\n+a\n":      "x.bug:7: p f: the function has the old code 0 times, not once: quote the code as it is now, or delete the bug",
		"@@ p f\n-g(a, b...)\n+a\n": "has the old code 0 times",
		"@@ p f\n-g(a, xs)\n+a\n":   "has the old code 0 times",
		"@@ p t.f\n-g(xs)\n+a\n":    "not once: the function does not use the identifier xs; quote the code",
		"@@ p f\n-g(b)\n":           "has the old code 2 times, not once",
	} {
		_, err := apply(t, edits)
		must.ErrorContains(t, err, want, must.Sprint(edits))
	}
}

func TestPlant_WritesAnOverlay(t *testing.T) {
	t.Parallel()
	root, dir := t.TempDir(), t.TempDir()
	must.NoError(t, os.Mkdir(filepath.Join(root, "p"), 0o700))
	original := filepath.Join(root, "p", "a.go")
	must.NoError(t, os.WriteFile(original, []byte(product), 0o600))
	b, err := planted.Parse("x", head+"@@ p f\n-return a\n+return b\n")
	must.NoError(t, err)

	overlay, err := planted.Plant(root, dir, []*planted.Bug{b})
	must.NoError(t, err)

	text, err := os.ReadFile(overlay)
	must.NoError(t, err)
	var list struct{ Replace map[string]string }
	must.NoError(t, json.Unmarshal(text, &list))
	must.MapLen(t, 2, list.Replace)
	copied, err := os.ReadFile(list.Replace[original])
	must.NoError(t, err)
	must.StrContains(t, string(copied), "xs...)\n\treturn b\n}")
	untouched, err := os.ReadFile(original)
	must.NoError(t, err)
	must.Eq(t, product, string(untouched))
}
