package server_test

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server"
)

// A snapshot that is being written, and one that was cancelled, stay invisible. The race detector
// found that raft sent a snapshot while it was written.
func TestMemorySnapshots(t *testing.T) {
	t.Parallel()
	var m server.MemorySnapshots
	ids := func() (ids []string) {
		list := result.Of(m.List()).OK(t)
		for _, meta := range list {
			ids = append(ids, meta.ID)
		}
		return ids
	}
	begin := func(index uint64) raft.SnapshotSink {
		_, transport := raft.NewInmemTransport("s1")
		sink := result.Of(m.Create(1, index, 1, raft.Configuration{}, 1, transport)).OK(t)
		result.Of(sink.Write([]byte("state"))).OK(t)
		return sink
	}
	must.SliceEmpty(t, ids())
	first := begin(1)
	must.SliceEmpty(t, ids())
	must.NoError(t, first.Close())
	must.Eq(t, []string{first.ID()}, ids())
	cancelled := begin(2)
	must.NoError(t, cancelled.Cancel())
	must.Eq(t, []string{first.ID()}, ids())
	second := begin(3)
	must.NoError(t, second.Close())
	must.Eq(t, []string{second.ID()}, ids())
	meta, content, err := m.Open(second.ID())
	must.NoError(t, err)
	must.Eq(t, 5, meta.Size)
	must.NoError(t, content.Close())
	_, _, err = m.Open(first.ID())
	must.Error(t, err)
}
