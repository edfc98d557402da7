package alloc

import (
	"io"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

func TestEscapeReader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typed, sent string
		left        bool
	}{
		{"", "", false},
		{"ls ~.\r", "ls ~.\r", false},
		{"~.", "", true},
		{"ls\r~.more", "ls\r", true},
		{"ls\n~.", "ls\n", true},
		{"~~.", "~.", false},
		{"~~\r~~\r~.", "~\r~\r", true},
		{"~a", "~a", false},
		{"~\r~.", "~\r", true},
		{"a\r~", "a\r~", false},
	} {
		for _, size := range []int{2, 3, 64} {
			left := false
			r := &escapeReader{from: strings.NewReader(c.typed), escape: '~', left: func() { left = true }}
			sent, err := io.ReadAll(&smallReads{r, size})
			must.NoError(t, err)
			must.Eq(t, c.sent, string(sent), must.Sprintf("%q by %d", c.typed, size))
			must.Eq(t, c.left, left, must.Sprintf("%q by %d", c.typed, size))
		}
	}
}

// smallReads reads at most some bytes at a time.
type smallReads struct {
	io.Reader
	most int
}

func (r *smallReads) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), r.most)]) }
