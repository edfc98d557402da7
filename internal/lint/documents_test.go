package lint_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/lint"
)

func TestProject_documents(t *testing.T) {
	t.Parallel()
	found, err := lint.CheckDocuments(os.DirFS(root()))
	must.NoError(t, err)
	report(t, found)
}

func TestCheckDocuments(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 101)
	for text, line := range map[string]int{
		"a " + long:                                    1,
		"short\n\n* " + long[2:] + " y":                3,
		"```\n" + long + "\n```\na " + long:            4,
		"see [the text](" + long + ")":                 1,
		strings.Repeat("é ", 51):                       1,
		"```\na " + long + "\n```":                     0,
		"| a | " + long + " |":                         0,
		"[the text](" + long + ")":                     0,
		"* [the text](" + long + ")":                   0,
		"https://example.org/" + long:                  0,
		strings.Repeat("é ", 50):                       0,
		"[one]: https://example.org/" + long:           0,
		"  " + strings.Repeat("word ", 19) + "\nlast ": 0,
	} {
		found, err := lint.CheckDocuments(fstest.MapFS{"d.md": {Data: []byte(text)}, "testdata/d.md": {Data: []byte("a " + long)}})
		must.NoError(t, err)
		if line == 0 {
			must.SliceEmpty(t, found, must.Sprint(text))
			continue
		}
		must.SliceLen(t, 1, found, must.Sprint(text))
		must.Eq(t, line, found[0].Pos.Line, must.Sprint(text))
	}
}
