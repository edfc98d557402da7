package server_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

type stores struct {
	log       *raft.InmemStore
	snapshots raft.SnapshotStore
}

// open starts the only server of a cluster on the stores.
func (d stores) open() (*server.Server, error) {
	address, transport := raft.NewInmemTransport("home")
	return server.New(server.Config{
		ID: "s1", Transport: transport, Voters: []raft.Server{{ID: "s1", Address: address}},
		Log: d.log, Stable: d.log, Snapshots: d.snapshots,
	})
}

// raiseBeyond is an entry that raises the cluster version above the versions of this build.
func raiseBeyond(t *testing.T) []byte {
	entry := result.Of(shims.Encode(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})).OK(t)
	entry[len(entry)-1]++ // the version is a small number, which msgpack writes as one byte
	return entry
}

// A server that meets an entry of a newer build stops with an error, and changes nothing on its
// disk. After a restart it stops with the same error.
func TestServer_failsAtAnEntryOfANewerBuild(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := stores{raft.NewInmemStore(), raft.NewInmemSnapshotStore()}
		s := result.Of(disk.open()).OK(t)
		for !s.Leads() {
			time.Sleep(time.Second)
		}
		result.Of(s.Requests().RegisterNode(t.Context(), &cluster.Node{ID: "n1"})).OK(t)
		must.NoError(t, s.Err())

		future := s.Raft().Apply(raiseBeyond(t), time.Second)
		<-s.Failed()
		must.NoError(t, future.Error(), must.Sprint("raft has committed it"))
		must.ErrorIs(t, s.Err(), cluster.ErrVersion)
		must.ErrorContains(t, s.Err(), fmt.Sprintf("upgrade this server to a build that understands cluster version %d or later", cluster.MaxVersion+1))
		synctest.Wait()
		must.Eq(t, raft.Shutdown, s.Raft().State())
		_, err := s.Requests().RegisterNode(t.Context(), &cluster.Node{ID: "n2"})
		must.ErrorIs(t, err, shims.ErrClosed)
		must.ErrorIs(t, s.Consistent(t.Context()), shims.ErrRejected)
		must.NoError(t, s.Shutdown())
		must.NotNil(t, s.Store().Snapshot().Node("n1"))

		last := result.Of(disk.log.LastIndex()).OK(t)
		s = result.Of(disk.open()).OK(t)
		<-s.Failed() // once it leads, the entry is committed
		must.ErrorIs(t, s.Err(), cluster.ErrVersion)
		must.NotNil(t, s.Store().Snapshot().Node("n1"))
		must.NoError(t, s.Shutdown())
		var entry raft.Log
		for index := uint64(1); index <= last; index++ {
			must.NoError(t, disk.log.GetLog(index, &entry), must.Sprint("the log is whole"))
		}
	})
}

// A read that waits for an entry which a stopped state machine never shows ends.
func TestServer_consistentReadsEndWhenItFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := result.Of(stores{raft.NewInmemStore(), raft.NewInmemSnapshotStore()}.open()).OK(t)
		for !s.Leads() {
			time.Sleep(time.Second)
		}
		must.NoError(t, s.Consistent(t.Context()))
		s.Raft().Apply(raiseBeyond(t), time.Second)
		var err error
		for err == nil { // the reads before it is committed are answered
			err = s.Consistent(t.Context())
		}
		must.ErrorIs(t, err, shims.ErrRejected)
		must.NoError(t, s.Shutdown())
	})
}

// A server does not start on a snapshot of a newer build, also if it has an older one: its
// log may not reach back to that.
func TestServer_refusesASnapshotOfANewerBuild(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := stores{raft.NewInmemStore(), &snapshotList{InmemSnapshotStore: raft.NewInmemSnapshotStore()}}
		s := result.Of(disk.open()).OK(t)
		for !s.Leads() {
			time.Sleep(time.Second)
		}
		result.Of(s.Requests().RegisterNode(t.Context(), &cluster.Node{ID: "n1"})).OK(t)
		must.NoError(t, s.Raft().Snapshot().Error())
		must.NoError(t, s.Shutdown())

		disk.snapshots.(*snapshotList).newest = func(state []byte) { state[len("nodedrain state\n")] = byte(cluster.MaxVersion) + 1 }
		_, err := disk.open()
		must.ErrorIs(t, err, cluster.ErrVersion)
		must.ErrorContains(t, err, fmt.Sprintf("upgrade this server to a build that understands cluster version %d or later", cluster.MaxVersion+1))

		disk.snapshots.(*snapshotList).newest = nil // a newer build reads it
		s = result.Of(disk.open()).OK(t)
		await(t, s, "the node", func(state *statestore.Snapshot) bool { return state.Node("n1") != nil })
		must.NoError(t, s.Shutdown())
	})
}

// snapshotList holds one snapshot, and an edited copy of it that is newer.
type snapshotList struct {
	*raft.InmemSnapshotStore
	// newest edits the newer one; nil is none.
	newest func([]byte)
}

func (l *snapshotList) List() ([]*raft.SnapshotMeta, error) {
	list, err := l.InmemSnapshotStore.List()
	if err != nil || l.newest == nil {
		return list, err
	}
	newer := *list[0]
	newer.ID = "newer"
	return []*raft.SnapshotMeta{&newer, list[0]}, nil
}

func (l *snapshotList) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	if id != "newer" {
		return l.InmemSnapshotStore.Open(id)
	}
	list, err := l.InmemSnapshotStore.List()
	if err != nil {
		return nil, nil, err
	}
	meta, source, err := l.InmemSnapshotStore.Open(list[0].ID)
	if err != nil {
		return nil, nil, err
	}
	state, err := io.ReadAll(source)
	if err != nil {
		return nil, nil, err
	}
	l.newest(state)
	return meta, io.NopCloser(bytes.NewReader(state)), nil
}
