package agent

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// logStore is the interface of the compared log stores.
type logStore interface {
	raft.LogStore
	raft.StableStore
	Close() error
}

// BenchmarkLogStores measures the entries of 1 KiB that raft on one server commits in a second, with
// one proposal in flight and with [shims.DefaultMaxInFlight]. Each entry is synced to the disk before
// its answer. The store in memory shows what the disk costs; see
// docs/decisions/0009-log-on-disk-is-bolt.md.
func BenchmarkLogStores(b *testing.B) {
	open := map[string]func(dir string) (logStore, error){
		"bolt": func(dir string) (logStore, error) {
			return raftboltdb.New(raftboltdb.Options{Path: filepath.Join(dir, "log.db"), MsgpackUseNewTimeFormat: true})
		},
		"memory": func(string) (logStore, error) { return memoryLog{raft.NewInmemStore()}, nil },
	}
	for _, name := range []string{"memory", "bolt"} {
		for _, inFlight := range []int{1, shims.DefaultMaxInFlight} {
			b.Run(fmt.Sprintf("%s/%d", name, inFlight), func(b *testing.B) {
				store, err := open[name](b.TempDir())
				must.NoError(b, err)
				r := soloRaft(b, store)
				commit(b, r, inFlight)
				must.NoError(b, r.Shutdown().Error())
				must.NoError(b, store.Close())
			})
		}
	}
}

type memoryLog struct{ *raft.InmemStore }

func (memoryLog) Close() error { return nil }

// soloRaft starts raft on one server and waits until it leads.
func soloRaft(b *testing.B, store logStore) *raft.Raft {
	b.Helper()
	config := raft.DefaultConfig()
	config.LocalID, config.BatchApplyCh, config.Logger = "s1", true, hclog.NewNullLogger()
	config.HeartbeatTimeout, config.ElectionTimeout, config.LeaderLeaseTimeout = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	config.SnapshotThreshold, config.TrailingLogs = 1<<40, 1<<40
	address, transport := raft.NewInmemTransport("")
	snapshots := raft.NewInmemSnapshotStore()
	voters := raft.Configuration{Servers: []raft.Server{{ID: "s1", Address: address}}}
	must.NoError(b, raft.BootstrapCluster(config, store, store, snapshots, transport, voters))
	r, err := raft.NewRaft(config, new(raft.MockFSM), store, store, snapshots, transport)
	must.NoError(b, err)
	must.True(b, <-r.LeaderCh())
	return r
}

// commit commits b.N entries with so many proposers.
func commit(b *testing.B, r *raft.Raft, proposers int) {
	b.Helper()
	data := make([]byte, 1024)
	todo := make(chan struct{})
	var wg sync.WaitGroup
	for range proposers {
		wg.Go(func() {
			for range todo {
				if err := r.Apply(data, 0).Error(); err != nil {
					b.Error(err)
				}
			}
		})
	}
	b.ResetTimer()
	for range b.N { // b.Loop would not count the entries in flight at the end
		todo <- struct{}{}
	}
	close(todo)
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}
