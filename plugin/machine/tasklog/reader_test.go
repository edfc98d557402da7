package tasklog_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog"
)

// rest reads what there is at present, and the changes on the way.
func rest(t testing.TB, r *tasklog.Reader) (text string, events []error) {
	t.Helper()
	piece := make([]byte, 16)
	for {
		n, err := r.Next(piece)
		text += string(piece[:n])
		switch {
		case errors.Is(err, io.EOF):
			return text, events
		case errors.Is(err, tasklog.ErrRemoved), errors.Is(err, tasklog.ErrTruncated):
			events = append(events, err)
		default:
			must.NoError(t, err)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root := openRoot(t, dir)
	_, err := tasklog.List(root, "web.stdout")
	must.ErrorIs(t, err, tasklog.ErrNoLog)
	for name, size := range map[string]int{"web.stdout.8": 10, "web.stdout.9": 0, "web.stdout.10": 5, "web.stdout.1x": 3, "web.stdout.07": 3, "web.stdout.-1": 3, "db.stdout.7": 3, "web.stderr.8": 3} {
		must.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat("x", size)), 0o600))
	}
	must.NoError(t, os.Symlink("web.stdout.8", filepath.Join(dir, "web.stdout.7")))
	must.NoError(t, os.Symlink("web.stdout.8", filepath.Join(dir, "web.stdout.9223372036854775807")))
	files, err := tasklog.List(root, "web.stdout")
	must.NoError(t, err)
	for offset, expected := range map[int64]tasklog.Position{0: {8, 0}, 9: {8, 9}, 10: {10, 0}, 12: {10, 2}, 15: {10, 5}, 99: {10, 5}} {
		must.Eq(t, expected, files.FromStart(offset), must.Sprint(offset))
	}
	for offset, expected := range map[int64]tasklog.Position{0: {10, 5}, 5: {10, 0}, 6: {8, 9}, 15: {8, 0}, 99: {8, 0}} {
		must.Eq(t, expected, files.FromEnd(offset), must.Sprint(offset))
	}
	must.Eq(t, tasklog.Position{10, 5}, files.End())
	must.True(t, tasklog.Position{8, 9}.Before(tasklog.Position{9, 0}))
	must.False(t, tasklog.Position{9, 1}.Before(tasklog.Position{9, 1}))
}

// A reader that keeps up gets every byte, over every rotation.
func TestReader_rotation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		must.NoError(t, err)
		root := openRoot(t, dir)
		w, err := tasklog.Open(root, "web.stdout", tasklog.Limits{MaxFiles: 2, MaxFileSize: 64})
		must.NoError(t, err)
		r := tasklog.NewReader(root, "web.stdout", tasklog.Position{})
		wrote, got := "", ""
		for range rapid.IntRange(1, 30).Draw(rt, "lines") {
			line := strings.Repeat("x", rapid.IntRange(0, 60).Draw(rt, "length")) + "\n"
			_, err := w.Append([]byte(line))
			must.NoError(t, err)
			wrote += line
			if rapid.Bool().Draw(rt, "reads") || len(wrote)-len(got) > 32 {
				text, events := rest(t, r)
				got += text
				must.SliceEmpty(t, events)
			}
		}
		text, events := rest(t, r)
		must.SliceEmpty(t, events)
		must.Eq(t, wrote, got+text)
		r.Close()
		must.NoError(t, w.Close())
	})
}

// A reader that is slow reads the file that it has open to the end, goes on with the oldest one that is
// left, and states it.
func TestReader_slow(t *testing.T) {
	t.Parallel()
	root := openRoot(t, t.TempDir())
	w, err := tasklog.Open(root, "web.stdout", tasklog.Limits{MaxFiles: 2, MaxFileSize: 64})
	must.NoError(t, err)
	put := func(n int) {
		_, err := fmt.Fprintf(appender{w}, "%062d\n", n)
		must.NoError(t, err)
	}
	r := tasklog.NewReader(root, "web.stdout", tasklog.Position{})
	put(0)
	_, err = r.Next(make([]byte, 1))
	must.NoError(t, err)
	for n := 1; n < 6; n++ {
		put(n)
	}
	text, events := rest(t, r)
	must.Eq(t, []error{tasklog.ErrRemoved}, events)
	must.Eq(t, fmt.Sprintf("%061d\n%062d\n%062d\n", 0, 4, 5), text)
	must.Eq(t, "web.stdout.5", r.FileName())
	must.Eq(t, tasklog.Position{File: 5, Offset: 63}, r.Position())

	// Nothing is lost when the next files are there.
	put(6)
	put(7)
	text, events = rest(t, r)
	must.SliceEmpty(t, events)
	must.Eq(t, fmt.Sprintf("%062d\n%062d\n", 6, 7), text)
	must.NoError(t, w.Close())
}

type appender struct{ *tasklog.Writer }

func (a appender) Write(p []byte) (int, error) { return a.Append(p) }

func TestReader_odd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root := openRoot(t, dir)
	path := filepath.Join(dir, "web.stdout.0")
	must.NoError(t, os.WriteFile(path, []byte("0123456789"), 0o600))
	r := tasklog.NewReader(root, "web.stdout", tasklog.Position{Offset: 4})
	text, _ := rest(t, r)
	must.Eq(t, "456789", text)
	must.NoError(t, os.WriteFile(path, []byte("abc"), 0o600))
	text, events := rest(t, r)
	must.Eq(t, []error{tasklog.ErrTruncated}, events)
	must.Eq(t, "abc", text)
	// The whole log goes.
	must.NoError(t, os.Remove(path))
	text, events = rest(t, r)
	must.SliceEmpty(t, events)
	must.Eq(t, "", text)
	// What others put there is not read.
	must.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "web.stdout.1")))
	_, err := r.Next(make([]byte, 9))
	must.ErrorContains(t, err, "not a regular file")
	r.Close()
}

// A reader at the end of the log gets every byte while the writer rotates: what is written to a file
// between the reader's look at its end and the next file is not left out.
func TestReader_besideTheWriter(t *testing.T) {
	t.Parallel()
	root := openRoot(t, t.TempDir())
	w, err := tasklog.Open(root, "web.stdout", tasklog.Limits{MaxFiles: 1 << 20, MaxFileSize: 64})
	must.NoError(t, err)
	const lines = 5000
	var expected strings.Builder
	for n := range lines {
		fmt.Fprintf(&expected, "line %010d\n", n)
	}
	failed := make(chan error, 1)
	go func() {
		for n := range lines {
			if _, err := fmt.Fprintf(appender{w}, "line %010d\n", n); err != nil {
				failed <- err
				return
			}
		}
		failed <- w.Close()
	}()
	r := tasklog.NewReader(root, "web.stdout", tasklog.Position{})
	defer r.Close()
	got := 0
	for piece := make([]byte, 100); got < expected.Len(); {
		n, err := r.Next(piece)
		if !errors.Is(err, io.EOF) {
			must.NoError(t, err)
		}
		must.Eq(t, expected.String()[got:got+n], string(piece[:n]), must.Sprintf("after %d bytes", got))
		got += n
	}
	must.NoError(t, <-failed)
}
