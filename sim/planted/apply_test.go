package planted_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/planted"
)

func bug(t *testing.T, hunks string) *planted.Bug {
	t.Helper()
	b, err := planted.Parse("x", "T.\n\nW.\n\nbreaks G1\n\n"+hunks)
	must.NoError(t, err)
	return b
}

// reading is a repository of one file.
func reading(text string) planted.Source {
	return func(file string) (string, error) {
		if file != "a.go" {
			return "", errors.New("no such file")
		}
		return text, nil
	}
}

func TestApply_PutsTheNewInPlaceOfTheOld(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ hunks, before, after string }{
		{"@@ a.go\n-b\n+B\n", "a\nb\nc\n", "a\nB\nc\n"},
		{"@@ a.go\n-a\n+A\n", "a\nb\n", "A\nb\n"},
		{"@@ a.go\n-b\n", "a\nb\nc\n", "a\nc\n"},
		{"@@ a.go\n a\n+x\n b\n", "a\nb\n", "a\nx\nb\n"},
		{"@@ a.go\n a\n\n-b\n+B\n", "a\n\nb\nb\n", "a\n\nB\nb\n"},
		{"@@ a.go\n-b\n+B\n\n@@ a.go\n-c\n+C\n B\n", "c\nb\n", "C\nB\n"}, // the second sees the first
	} {
		changed, err := bug(t, c.hunks).Apply(reading(c.before))
		must.NoError(t, err, must.Sprint(c.hunks))
		must.Eq(t, map[string]string{"a.go": c.after}, changed)
	}
}

func TestApply_RefusesWhatIsNotThereOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ hunks, before, want string }{
		{"@@ a.go\n-b\n", "a\n", "x.bug:7: a.go: the old text is there 0 times, not once"},
		{"@@ a.go\n-b\n", "b\na\nb\n", "x.bug:7: a.go: the old text is there 2 times, not once"},
		{"@@ a.go\n-b\n b\n", "b\nb\nb\n", "the old text is there 2 times, not once"}, // they overlap
		{"@@ a.go\n-b\n", "ab\n", "there 0 times"},                                    // no part of a line
		{"@@ a.go\n-b\n", "bc\n", "there 0 times"},
		{"@@ a.go\n-a\n+A\n\n@@ a.go\n-a\n", "a\n", "x.bug:11: a.go: the old text is there 0 times"},
		{"@@ b.go\n-b\n", "b\n", "x.bug:7: no such file"},
	} {
		_, err := bug(t, c.hunks).Apply(reading(c.before))
		must.ErrorContains(t, err, c.want, must.Sprint(c.hunks))
	}
}

func TestPlant_WritesAnOverlay(t *testing.T) {
	t.Parallel()
	root, dir := t.TempDir(), t.TempDir()
	must.NoError(t, os.MkdirAll(filepath.Join(root, "p"), 0o700))
	original := filepath.Join(root, "p", "a.go")
	must.NoError(t, os.WriteFile(original, []byte("a\n"), 0o600))

	overlay, err := bug(t, "@@ p/a.go\n-a\n+b\n").Plant(root, dir)
	must.NoError(t, err)

	text, err := os.ReadFile(overlay)
	must.NoError(t, err)
	var list struct{ Replace map[string]string }
	must.NoError(t, json.Unmarshal(text, &list))
	must.MapLen(t, 1, list.Replace)
	copied, err := os.ReadFile(list.Replace[original])
	must.NoError(t, err)
	must.Eq(t, "b\n", string(copied))
	untouched, err := os.ReadFile(original)
	must.NoError(t, err)
	must.Eq(t, "a\n", string(untouched))
}
