package tasklog_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog"
)

// files returns the contents of a log's files, oldest first, as "number: content".
func files(t testing.TB, dir, name string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must.NoError(t, err)
	var found []int
	for _, entry := range entries {
		if n, err := strconv.Atoi(strings.TrimPrefix(entry.Name(), name+".")); err == nil {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	var all []string
	for _, n := range found {
		content, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%s.%d", name, n)))
		must.NoError(t, err)
		all = append(all, fmt.Sprintf("%d: %s", n, content))
	}
	return all
}

// content returns the whole log.
func content(t testing.TB, dir, name string) string {
	t.Helper()
	var all strings.Builder
	for _, file := range files(t, dir, name) {
		_, text, _ := strings.Cut(file, ": ")
		all.WriteString(text)
	}
	return all.String()
}

func openRoot(t testing.TB, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func TestWriter_Rotates(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 99)
	for name, c := range map[string]struct {
		writes   []string
		expected []string
	}{
		"a file ends at the last line end that fits": {
			writes:   []string{strings.Repeat("a", 29) + "\n", strings.Repeat("b", 29) + "\n", "c\n"},
			expected: []string{"0: " + strings.Repeat("a", 29) + "\n" + strings.Repeat("b", 29) + "\n", "1: c\n"},
		},
		"one write with many lines": {
			writes:   []string{strings.Repeat("0123456789abcde\n", 6)},
			expected: []string{"0: " + strings.Repeat("0123456789abcde\n", 4), "1: " + strings.Repeat("0123456789abcde\n", 2)},
		},
		"a line moves to the next file as a whole": {
			writes:   []string{strings.Repeat("a", 49) + "\n", strings.Repeat("b", 39) + "\n"},
			expected: []string{"0: " + strings.Repeat("a", 49) + "\n", "1: " + strings.Repeat("b", 39) + "\n"},
		},
		"a line that is longer than a file is cut": {
			writes:   []string{long + "\n"},
			expected: []string{"0: " + long[:64], "1: " + long[64:] + "\n"},
		},
		"an unfinished line is written at once": {
			writes:   []string{"a", "b", "c"},
			expected: []string{"0: abc"},
		},
		"three files are kept": {
			writes:   []string{strings.Repeat(strings.Repeat("a", 63)+"\n", 4), "last\n"},
			expected: []string{"2: " + strings.Repeat("a", 63) + "\n", "3: " + strings.Repeat("a", 63) + "\n", "4: last\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			w, err := tasklog.Open(openRoot(t, dir), "web.stdout", tasklog.Limits{MaxFiles: 3, MaxFileSize: 64})
			must.NoError(t, err)
			for _, text := range c.writes {
				n, err := w.Append([]byte(text))
				must.NoError(t, err)
				must.Eq(t, len(text), n)
			}
			must.NoError(t, w.Close())
			must.Eq(t, c.expected, files(t, dir, "web.stdout"))
		})
	}
}

// For all texts in all parts, with restarts in between: the log ends with the text, no file is
// larger than the limit, and no more files than the limit exist.
func TestWriter_KeepsTheEndOfTheStream(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "log")
		must.NoError(t, err)
		limits := tasklog.Limits{MaxFiles: rapid.IntRange(1, 5).Draw(rt, "files"), MaxFileSize: rapid.Int64Range(64, 400).Draw(rt, "size")}
		root, err := os.OpenRoot(dir)
		must.NoError(t, err)
		defer root.Close()
		var all bytes.Buffer
		w, err := tasklog.Open(root, "a", limits)
		must.NoError(t, err)
		lines := true // all lines are short and arrive as a whole
		for range rapid.IntRange(1, 30).Draw(rt, "writes") {
			part := rapid.StringMatching(`([a-z]{0,40}\n?){0,6}`).Draw(rt, "part")
			lines = lines && (part == "" || strings.HasSuffix(part, "\n"))
			all.WriteString(part)
			n, err := w.Append([]byte(part))
			must.NoError(t, err)
			must.Eq(t, len(part), n)
			if rapid.Bool().Draw(rt, "restart") {
				must.NoError(t, w.Close())
				w, err = tasklog.Open(root, "a", limits)
				must.NoError(t, err)
			}
		}
		must.NoError(t, w.Close())
		kept := files(t, dir, "a")
		must.LessEq(t, limits.MaxFiles, len(kept))
		text := content(t, dir, "a")
		must.True(t, strings.HasSuffix(all.String(), text))
		if strings.HasPrefix(kept[0], "0: ") {
			must.Eq(t, all.String(), text)
		}
		for i, file := range kept {
			_, body, _ := strings.Cut(file, ": ")
			must.LessEq(t, int(limits.MaxFileSize), len(body))
			if short := limits.MaxFileSize > 300; short && lines && i < len(kept)-1 {
				must.True(t, strings.HasSuffix(body, "\n"), must.Sprintf("file %d ends inside a line: %q", i, body))
			}
		}
	})
}

// A log continues in its newest file, and has only its own files.
func TestOpen_ContinuesInTheNewestFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"web.stdout.9": "nine\n", "web.stdout.10": "ten, unfinis", "web.stderr.11": "", "web.stdout.12.gz": "", "web.stdout.013": "", "web.stdout.x": "",
	} {
		must.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	w, err := tasklog.Open(openRoot(t, dir), "web.stdout", tasklog.Limits{})
	must.NoError(t, err)
	must.False(t, w.LineStart())
	_, err = w.Append([]byte("hed\n"))
	must.NoError(t, err)
	must.NoError(t, w.Close())
	got, err := os.ReadFile(filepath.Join(dir, "web.stdout.10"))
	must.NoError(t, err)
	must.Eq(t, "ten, unfinished\n", string(got))
}

// A task that can write to the folder of its logs cannot direct them to another file.
func TestOpen_RefusesOtherThanItsOwnFiles(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(dir, victim string) error{
		"a symbolic link": func(dir, victim string) error { return os.Symlink(victim, filepath.Join(dir, "web.stdout.3")) },
		"a link inside the folder": func(dir, _ string) error {
			return os.Symlink("other", filepath.Join(dir, "web.stdout.3"))
		},
		"a hard link": func(dir, victim string) error { return os.Link(victim, filepath.Join(dir, "web.stdout.3")) },
		"a folder":    func(dir, _ string) error { return os.Mkdir(filepath.Join(dir, "web.stdout.3"), 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			dir, victim := filepath.Join(base, "logs"), filepath.Join(base, "victim")
			must.NoError(t, os.Mkdir(dir, 0o700))
			must.NoError(t, os.WriteFile(victim, []byte("mine"), 0o600))
			must.NoError(t, os.WriteFile(filepath.Join(dir, "other"), []byte("mine"), 0o600))
			must.NoError(t, plant(dir, victim))
			_, err := tasklog.Open(openRoot(t, dir), "web.stdout", tasklog.Limits{})
			must.ErrorContains(t, err, "web.stdout")
			for _, path := range []string{victim, filepath.Join(dir, "other")} {
				got, err := os.ReadFile(path)
				must.NoError(t, err)
				must.Eq(t, "mine", string(got))
			}
		})
	}
}

func TestOpen_RefusesLimits(t *testing.T) {
	t.Parallel()
	for _, limits := range []tasklog.Limits{{MaxFiles: -1}, {MaxFileSize: 63}, {MaxFileSize: -1}} {
		_, err := tasklog.Open(openRoot(t, t.TempDir()), "web.stdout", limits)
		must.ErrorContains(t, err, "at least one file of 64 bytes")
	}
}
