package tasklog_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog"
)

// A task writes between the read that finds the end of a file and the look at the next file. The reader gets all of
// it, also if the file is removed. Bug: a test with a writer beside the reader found a loss only by luck.
func TestReader_writesAtTheEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files  int
		writes []int // the lengths of lines
		more   bool  // there is more to read at once
	}{
		"nothing":                             {files: 9},
		"into the same file":                  {files: 9, writes: []int{10}},
		"to the end of the file":              {files: 9, writes: []int{44}},
		"into both files":                     {files: 9, writes: []int{44, 10}, more: true},
		"into the next file":                  {files: 9, writes: []int{60}, more: true},
		"into three files":                    {files: 9, writes: []int{44, 64, 5}, more: true},
		"into both files, and one is removed": {files: 1, writes: []int{44, 10}, more: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := openRoot(t, t.TempDir())
			w, err := tasklog.Open(root, "web.stdout", tasklog.Limits{MaxFiles: c.files, MaxFileSize: 64})
			must.NoError(t, err)
			write := func(line string) {
				_, err := w.Append([]byte(line))
				must.NoError(t, err)
			}
			r := tasklog.NewReader(root, "web.stdout", tasklog.Position{})
			write("the first line here\n") // 20 bytes
			text, events := rest(t, r)
			must.SliceEmpty(t, events)
			must.EqOp(t, "the first line here\n", text)
			expected := ""
			for i, length := range c.writes {
				line := strings.Repeat(fmt.Sprint(i), length-1) + "\n"
				write(line)
				expected += line
			}
			if c.more {
				must.NoError(t, r.AtEnd())
			} else {
				must.ErrorIs(t, r.AtEnd(), io.EOF)
			}
			text, events = rest(t, r)
			must.SliceEmpty(t, events)
			must.EqOp(t, expected, text)
			r.Close()
			must.NoError(t, w.Close())
		})
	}
}
