package lint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/lint"
)

func TestCheckFiles_fixtures(t *testing.T) {
	t.Parallel()
	tree, err := lint.ReadTree(folder(t, "files"))
	must.NoError(t, err)
	readWants(t, folder(t, "files")).check(t, lint.CheckFiles(tree))
}

// These would be found in the repository itself if they were files of it.
func TestCheckFiles_form(t *testing.T) {
	t.Parallel()
	const header = "// Package p is a fixture.\npackage p\n"
	lines := "\n" + strings.Repeat("const _ = 0\n", lint.MaxFileLines-3)
	for name, test := range map[string]struct {
		file, text string
		want       []string
	}{
		"formatted":      {"doc.go", header, nil},
		"not formatted":  {"doc.go", header + "\n\n\n", []string{"doc.go:1: gofmt would change this file"}},
		"long":           {"doc.go", header + lines, nil},
		"too long":       {"doc.go", header + lines + "const _ = 0\n", []string{"doc.go:501: the file has 501 lines, and may have 500: it holds more than one noun"}},
		"a long test":    {"p_test.go", header + lines + "const _ = 0\n", nil},
		"to be done":     {"doc.go", header + "\n// TO" + "DO: more\n", []string{"doc.go:4: TO" + "DO: finish it, or write an issue"}},
		"to be mended":   {"doc.go", header + "\n/* FIX" + "ME */\n", []string{"doc.go:4: FIX" + "ME: finish it, or write an issue"}},
		"to be seen":     {"doc.go", header + "\nvar x int // XX" + "X\n", []string{"doc.go:4: XX" + "X: finish it, or write an issue"}},
		"part of a word": {"doc.go", header + "\n// mktemp /tmp/XX" + "XXXX\n", nil},
		"in a string":    {"doc.go", header + "\nconst word = \"TO" + "DO\"\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			must.NoError(t, os.WriteFile(filepath.Join(dir, test.file), []byte(test.text), 0o644))
			tree, err := lint.ReadTree(dir)
			must.NoError(t, err)
			var got []string
			for _, f := range lint.CheckFiles(tree) {
				got = append(got, f.String())
			}
			must.Eq(t, test.want, got)
		})
	}
}

func TestReadTree_doesNotParse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.NoError(t, os.WriteFile(filepath.Join(dir, "bad.go"), []byte("pakcage p"), 0o644))
	_, err := lint.ReadTree(dir)
	must.ErrorContains(t, err, "bad.go:1:1: expected 'package'")
}

// What the go command leaves out is left out.
func TestReadTree_leavesOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"testdata/bad.go", ".hidden/bad.go", "_old/bad.go", "_bad.go", ".bad.go", "bad.txt"} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		must.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.NoError(t, os.WriteFile(file, []byte("no Go"), 0o644))
	}
	tree, err := lint.ReadTree(dir)
	must.NoError(t, err)
	must.SliceEmpty(t, lint.CheckFiles(tree))
}
