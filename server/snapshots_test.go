package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server"
)

func indexes(t *testing.T, store raft.SnapshotStore) (indexes []uint64) {
	t.Helper()
	list := result.Of(store.List()).OK(t)
	for _, meta := range list {
		indexes = append(indexes, meta.Index)
	}
	return indexes
}

// registerNodes registers nodes with long attributes, so that the state is written in many parts.
func registerNodes(t *testing.T, s *server.Server, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		result.Of(s.Requests().RegisterNode(t.Context(), &cluster.Node{
			ID: cluster.NodeID(fmt.Sprint("n", i)), Attributes: map[string]string{"text": strings.Repeat("x", 4096)},
		})).OK(t)
	}
}

// A snapshot is taken once for each state, and a restart begins with it.
func TestSnapshots_Take(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := stores{raft.NewInmemStore(), new(server.MemorySnapshots)}
		s := result.Of(disk.open()).OK(t)
		for !s.Leads() {
			time.Sleep(time.Second)
		}
		registerNodes(t, s, 0, 3)
		must.NoError(t, s.Snapshots().Take(t.Context()))
		index := s.Store().Snapshot().Index()
		must.Eq(t, []uint64{index}, indexes(t, disk.snapshots))
		must.ErrorIs(t, s.Snapshots().Take(t.Context()), server.ErrNothingNew)
		registerNodes(t, s, 3, 4)
		must.NoError(t, s.Snapshots().Take(t.Context()))
		must.Eq(t, []uint64{s.Store().Snapshot().Index()}, indexes(t, disk.snapshots))
		must.NoError(t, s.Shutdown())

		s = result.Of(disk.open()).OK(t)
		must.NotNil(t, s.Store().Snapshot().Node("n3"), must.Sprint("the state before any entry is replayed"))
		must.ErrorIs(t, s.Snapshots().Take(t.Context()), server.ErrNothingNew)
		must.NoError(t, s.Shutdown())
	})
}

// slowSnapshots takes a second for each part of a snapshot.
type slowSnapshots struct{ raft.SnapshotStore }

func (s slowSnapshots) Create(version raft.SnapshotVersion, index, term uint64, c raft.Configuration, configIndex uint64, t raft.Transport) (raft.SnapshotSink, error) {
	sink, err := s.SnapshotStore.Create(version, index, term, c, configIndex, t)
	return slowSink{sink}, err
}

type slowSink struct{ raft.SnapshotSink }

func (s slowSink) Write(b []byte) (int, error) {
	time.Sleep(time.Second)
	return s.SnapshotSink.Write(b)
}

// The caller bounds the time of a snapshot. A shutdown does not wait for the rest of it, and the
// snapshot is not kept.
func TestSnapshots_shutdownStopsOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := stores{raft.NewInmemStore(), slowSnapshots{new(server.MemorySnapshots)}}
		s := result.Of(disk.open()).OK(t)
		for !s.Leads() {
			time.Sleep(time.Second)
		}
		registerNodes(t, s, 0, 100)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		must.ErrorIs(t, s.Snapshots().Take(ctx), context.DeadlineExceeded)
		registerNodes(t, s, 100, 101) // the server works meanwhile
		began := time.Now()
		must.NoError(t, s.Shutdown())
		must.Less(t, 3*time.Second, time.Since(began))
		must.SliceEmpty(t, indexes(t, disk.snapshots))
	})
}
