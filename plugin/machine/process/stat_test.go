package process

import (
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

const statLine = "4711 (a) b (c) D 17 4711 4711 0 -1 4194560 1 0 0 0 7 8 0 0 20 0 1 0 987654 5 33 " +
	"18446744073709551615 1 2 3 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 4 5 6 7 8 9 1234 0\n"

func TestParseStat(t *testing.T) {
	t.Parallel()
	st, err := parseStat([]byte(statLine))
	must.NoError(t, err)
	must.Eq(t, stat{state: 'D', command: "a) b (c", parent: 17, session: 4711, ticks: 15, start: 987654, pages: 33, code: 2, from: 9, to: 1234}, st)
	must.StrContains(t, Description{PID: 1, State: st.state, Command: "dd"}.String(), "state D, waits for a device")
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	must.Eq(t, "a?[31mé", printable("a\x1b[31mé"))
	must.Eq(t, maxCommand, len(printable(strings.Repeat("x", 500))))
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte(statLine))
	f.Add([]byte("1 () R"))
	f.Add([]byte(")("))
	f.Fuzz(func(t *testing.T, line []byte) {
		st, err := parseStat(line)
		if err == nil && st.state == 0 {
			t.Fatalf("no state and no error of %q", line)
		}
	})
}
