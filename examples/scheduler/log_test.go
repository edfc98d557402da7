package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func nodeEntry(id cluster.NodeID) *entry {
	return &entry{At: noon, Node: &cluster.Node{ID: id, Status: cluster.NodeReady}}
}

// leading returns a server that leads. It has a goroutine until the test ends.
func leading(t *testing.T, path string) *server {
	t.Helper()
	s, err := newServer("s", path)
	must.NoError(t, err)
	t.Cleanup(s.close)
	must.NoError(t, s.follow(noon))
	must.NotNil(t, s.term)
	return s
}

// A writer may die at any byte of an entry. The next leader has the entries before it, and writes
// behind them.
func TestLog_tornEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	first := leading(t, path)
	for _, id := range []cluster.NodeID{"a", "b"} {
		_, _, err := first.apply(nodeEntry(id))
		must.NoError(t, err)
	}
	first.close()
	whole, err := os.ReadFile(path)
	must.NoError(t, err)
	one := len(torn) + bytes.IndexByte(whole[len(torn):], '\n') + 1
	for end := len(whole) - 1; end >= one; end -= 7 {
		path := filepath.Join(t.TempDir(), "log")
		must.NoError(t, os.WriteFile(path, whole[:end], 0o600))
		s := leading(t, path)
		must.Eq(t, 1, s.state.Load().index)
		index, _, err := s.apply(nodeEntry("c"))
		must.NoError(t, err)
		must.Eq(t, 2, index)
		must.Eq(t, rowsOf(t, s.state.Load()), rowsOf(t, leadingAfter(t, s, path)))
	}
}

// leadingAfter closes the leader and returns the state of the next one.
func leadingAfter(t *testing.T, leader *server, path string) *state {
	t.Helper()
	leader.close()
	return leading(t, path).state.Load()
}

// A damaged entry is no torn end: the server does not start without it.
func TestLog_damage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	must.NoError(t, os.WriteFile(path, []byte("{\"At\": nonsense}\n{}\n"), 0o600))
	s, err := newServer("s", path)
	must.NoError(t, err)
	t.Cleanup(s.close)
	must.ErrorContains(t, s.tick(noon), "at byte 0 is damaged")
}

// Only one server writes. When its log fails, it stops, and another server leads.
func TestLog_failure(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	first := leading(t, path)
	second, err := newServer("second", path)
	must.NoError(t, err)
	t.Cleanup(second.close)
	must.NoError(t, second.tick(noon))
	must.Nil(t, second.term)

	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	must.NoError(t, err)
	must.NoError(t, first.log.file.Close())
	first.log.file = full
	_, _, err = first.apply(nodeEntry("a"))
	must.ErrorContains(t, err, "no space left on device")
	must.ErrorContains(t, first.tick(noon), "no space left on device")
	_, _, err = first.apply(nodeEntry("b"))
	must.ErrorIs(t, err, os.ErrClosed)

	must.NoError(t, second.tick(noon))
	must.NotNil(t, second.term)
}
