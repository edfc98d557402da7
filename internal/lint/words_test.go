package lint_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/lint"
)

func TestProject_words(t *testing.T) {
	t.Parallel()
	files, err := lint.ReadFiles(os.DirFS(root()))
	must.NoError(t, err)
	report(t, lint.CheckWords(files))
	found, err := lint.CheckDocuments(os.DirFS(root()))
	must.NoError(t, err)
	report(t, found)
}

// plain makes a text of a row. The dots of rows keep the check from finding these tables.
func plain(row string) string { return strings.ReplaceAll(row, "·", "") }

// unclear are texts with the unclear words in them, or with none.
var unclear = map[string]string{
	"the FSM answers who·ever asks":        "who·ever",
	"for whom·ever it is":                  "whom·ever",
	"No·body leads.":                       "No·body",
	"stops some·body else's work":          "some·body",
	"without any·body":                     "any·body",
	"starts a·new":                         "a·new",
	"The node is to· be drained":           "is to· be",
	"they are to· be, and it was to· be":   "are to· be; was to· be",
	"what were  to· be":                    "were to· be",
	"the feed was told· of it":             "told· of",
	"was heard· of":                        "heard· of",
	"A mark at the deadline, what·ever it": "what·ever",
	"What·ever ends.":                      "What·ever",
	"It ends (what·ever":                   "what·ever",
	"what·ever ends":                       "what·ever",

	"in whatever order":                      "",
	"the request has no body; news":          "",
	"what it is to become, to be told often": "",
	"anewly nobodys":                         "",
}

func TestCheckWords(t *testing.T) {
	t.Parallel()
	for row, want := range unclear {
		t.Run(plain(row), func(t *testing.T) {
			t.Parallel()
			for _, text := range []string{"// " + plain(row), "const x = \"" + plain(row) + "\"", "const x = `" + plain(row) + "`", "/* " + plain(row) + " */"} {
				wantWords(t, want, lint.CheckWords(files(t, map[string]string{"a/p.go": text})))
			}
			found, err := lint.CheckDocuments(fstest.MapFS{"a/d.md": {Data: []byte(plain(row))}})
			must.NoError(t, err)
			wantWords(t, want, found)
		})
	}
}

// wantWords compares findings with the words of a row.
func wantWords(t *testing.T, want string, found []lint.Finding) {
	t.Helper()
	var all []string
	for words := range strings.SplitSeq(plain(want), "; ") {
		if words != "" {
			all = append(all, `"`+words+`" is not plain: name who or what it is`)
		}
	}
	wantOne(t, strings.Join(all, "; "), found)
}

// A finding names the line of the words, also of words that a line ends between.
func TestCheckWords_position(t *testing.T) {
	t.Parallel()
	text := plain("// One.\n// Two is\n// to· be three.\nconst x = `\n\nno·body`\n")
	var at []string
	for _, f := range lint.CheckWords(files(t, map[string]string{"a/p.go": text})) {
		at = append(at, f.String())
	}
	must.Eq(t, []string{
		plain(`a/p.go:3: "is to· be" is not plain: name who or what it is`),
		plain(`a/p.go:7: "no·body" is not plain: name who or what it is`),
	}, at)
}

func TestCheckDocuments_longLines(t *testing.T) {
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
