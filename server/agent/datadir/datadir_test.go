package datadir

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"
	"go.etcd.io/bbolt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d := result.Of(Open(path, Options{})).OK(t)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// command is an entry that registers a node.
func command(t *testing.T, index, term uint64) *raft.Log {
	t.Helper()
	data := result.Of(shims.Encode(&shims.NodeRegister{Node: &cluster.Node{ID: cluster.NodeID(fmt.Sprint("node-", index)), Name: strings.Repeat("x", 100), Status: cluster.NodeReady}})).OK(t)
	return &raft.Log{Index: index, Term: term, Type: raft.LogCommand, Data: data}
}

// configuration is the first entry of a cluster.
func configuration(servers ...raft.Server) *raft.Log {
	return &raft.Log{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(raft.Configuration{Servers: servers})}
}

// member creates the data directory of server s2, a member with 40 entries in term 3.
func member(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	d := result.Of(Open(path, Options{Name: "s2"})).OK(t)
	must.NoError(t, d.KeepPromise("s1"))
	must.NoError(t, d.KeepCluster("of s1"))
	must.NoError(t, d.Stable().SetUint64([]byte(keyTerm), 3))
	must.NoError(t, d.Stable().SetUint64([]byte(keyVote), 3))
	must.NoError(t, d.Log().StoreLog(configuration(raft.Server{ID: "s1", Address: "127.0.0.1:1"}, raft.Server{ID: "s2", Address: "127.0.0.1:2"})))
	for index := range uint64(39) {
		must.NoError(t, d.Log().StoreLog(command(t, index+2, 3)))
	}
	must.NoError(t, d.Close())
	return path
}

// compact writes a snapshot at one index and deletes the entries up to another index.
func compact(t *testing.T, path string, at, to uint64) (dir string) {
	t.Helper()
	d := open(t, path)
	_, transport := raft.NewInmemTransport("")
	sink := result.Of(d.Snapshots().Create(1, at, 3, raft.Configuration{Servers: []raft.Server{{ID: "s2", Address: "127.0.0.1:2"}}}, 1, transport)).OK(t)
	must.NoError(t, statestore.Persist(sink, statestore.New().Snapshot()))
	must.NoError(t, sink.Close())
	must.NoError(t, d.Log().DeleteRange(1, to))
	must.NoError(t, d.Close())
	return filepath.Join(path, raftDir, snapshotsDir, sink.ID())
}

// Open refuses a directory with a lost or damaged part. The error names the file and the remedy. A
// second call returns the same error: the first one changes nothing.
func TestOpen_refuses(t *testing.T) {
	t.Parallel()
	log := filepath.Join(raftDir, logFile)
	older := func(t *testing.T, path string, change func(d *Dir)) {
		before := result.Of(os.ReadFile(filepath.Join(path, log))).OK(t)
		d := open(t, path)
		change(d)
		must.NoError(t, d.Close())
		must.NoError(t, os.WriteFile(filepath.Join(path, log), before, 0o600))
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, path string)
		want   []string
	}{
		"a missing log": {func(t *testing.T, path string) {
			must.NoError(t, os.Remove(filepath.Join(path, log)))
		}, []string{"server s2 was a member of a cluster and had reached term 3, index 40", "log.db is missing or empty", "server recover -discard"}},
		"an emptied log": {func(t *testing.T, path string) {
			must.NoError(t, os.Truncate(filepath.Join(path, log), 0))
		}, []string{"log.db is missing or empty", "server recover -discard"}},
		"a missing raft directory": {func(t *testing.T, path string) {
			must.NoError(t, os.RemoveAll(filepath.Join(path, raftDir)))
		}, []string{"log.db is missing or empty", "server recover -discard"}},
		"a missing log and record": {func(t *testing.T, path string) {
			must.NoError(t, os.Remove(filepath.Join(path, log)))
			must.NoError(t, os.Remove(filepath.Join(path, recordFile)))
		}, []string{"log.db is missing or empty", "server recover -discard"}},
		"the log of a new server": {func(t *testing.T, path string) {
			other := filepath.Join(t.TempDir(), "other")
			must.NoError(t, open(t, other).Close())
			text := result.Of(os.ReadFile(filepath.Join(other, log))).OK(t)
			must.NoError(t, os.WriteFile(filepath.Join(path, log), text, 0o600))
		}, []string{"log.db has no entry, term or vote", "server recover -discard"}},
		"a log that was cut": {func(t *testing.T, path string) {
			must.NoError(t, os.Truncate(filepath.Join(path, log), 5*4096))
		}, []string{"log.db is damaged: it was cut to 20480 bytes", "server recover -discard"}},
		"a log of a few bytes": {func(t *testing.T, path string) {
			must.NoError(t, os.Truncate(filepath.Join(path, log), 100))
		}, []string{"log.db is damaged", "server recover -discard"}},
		"another file in place of the log": {func(t *testing.T, path string) {
			must.NoError(t, os.WriteFile(filepath.Join(path, log), []byte(strings.Repeat("no log\n", 10000)), 0o600))
		}, []string{"log.db is damaged: invalid database", "server recover -discard"}},
		"a log without its last entry": {func(t *testing.T, path string) {
			older(t, path, func(d *Dir) { must.NoError(t, d.Log().StoreLog(command(t, 41, 3))) })
		}, []string{"older copy or was cut: it ends at index 40, and the server had reached index 41", "server recover -discard"}},
		"a log from before a vote": {func(t *testing.T, path string) {
			older(t, path, func(d *Dir) {
				must.NoError(t, d.Stable().SetUint64([]byte(keyTerm), 4))
				must.NoError(t, d.Stable().SetUint64([]byte(keyVote), 4))
			})
		}, []string{"it ends at term 3, and the server had reached term 4"}},
		"a changed byte in an entry": {func(t *testing.T, path string) {
			change(t, filepath.Join(path, log), "xxxxxxxxxx", 'y')
		}, []string{"log.db is damaged: raft entry", "does not match its checksum", "server recover -discard"}},
		"a missing name": {func(t *testing.T, path string) {
			must.NoError(t, os.Remove(filepath.Join(path, nameFile)))
		}, []string{"name is missing", `write "s2" into it`}},
		"an empty name": {func(t *testing.T, path string) {
			must.NoError(t, os.Truncate(filepath.Join(path, nameFile), 0))
		}, []string{"name is empty", `write "s2" into it`}},
		"a missing name and record": {func(t *testing.T, path string) {
			must.NoError(t, os.Remove(filepath.Join(path, nameFile)))
			must.NoError(t, os.Remove(filepath.Join(path, recordFile)))
		}, []string{"name is missing", "server members"}},
		"the name of another server": {func(t *testing.T, path string) {
			must.NoError(t, os.WriteFile(filepath.Join(path, nameFile), []byte("s1\n"), 0o600))
		}, []string{`has "s1"`, `is the record of server "s2"`}},
		"a missing cluster": {func(t *testing.T, path string) {
			must.NoError(t, os.Remove(filepath.Join(path, clusterFile)))
		}, []string{"cluster is missing", `write "of s1" into it`}},
		"an empty cluster": {func(t *testing.T, path string) {
			must.NoError(t, os.Truncate(filepath.Join(path, clusterFile), 0))
		}, []string{"cluster is empty", "on the other servers"}},
		"another cluster": {func(t *testing.T, path string) {
			must.NoError(t, os.WriteFile(filepath.Join(path, clusterFile), []byte("of s9\n"), 0o600))
		}, []string{`has "of s9"`, `of cluster "of s1"`}},
		"a damaged record": {func(t *testing.T, path string) {
			must.NoError(t, os.WriteFile(filepath.Join(path, recordFile), []byte("nodedrain member 1\nterm  0000x"), 0o600))
		}, []string{"member is damaged", "delete the file"}},
		"a missing snapshot": {func(t *testing.T, path string) {
			must.NoError(t, os.RemoveAll(compact(t, path, 30, 20)))
		}, []string{"the snapshot in", "is missing", "lacks entry 1", "server recover -discard"}},
		"a missing snapshot after an older one": {func(t *testing.T, path string) {
			compact(t, path, 10, 5)
			must.NoError(t, os.RemoveAll(compact(t, path, 30, 20)))
		}, []string{"a newer snapshot than", "lacks entry 11"}},
		"a missing snapshot and an empty log": {func(t *testing.T, path string) {
			must.NoError(t, os.RemoveAll(compact(t, path, 40, 40)))
		}, []string{"it ends at index 0, and the server had reached index 40"}},
		"a damaged snapshot": {func(t *testing.T, path string) {
			change(t, filepath.Join(compact(t, path, 30, 20), "state.bin"), "nodedrain", 'N')
		}, []string{"the newest snapshot is damaged", "CRC mismatch", "lacks entry 1", "server recover -discard"}[1:]},
		"a damaged meta.json of a snapshot": {func(t *testing.T, path string) {
			must.NoError(t, os.WriteFile(filepath.Join(compact(t, path, 30, 20), "meta.json"), []byte("{"), 0o600))
		}, []string{"newest snapshot is damaged", "lacks entry 1"}},
		"the description of another snapshot": {func(t *testing.T, path string) {
			change(t, filepath.Join(compact(t, path, 30, 20), "meta.json"), `3-30-`, '4')
		}, []string{"newest snapshot is damaged", `its meta.json is of snapshot "4-30-`, "lacks entry 1"}},
		"a changed index of a snapshot": {func(t *testing.T, path string) {
			change(t, filepath.Join(compact(t, path, 30, 20), "meta.json"), `30,"Term"`, '2')
		}, []string{"newest snapshot is damaged", "its meta.json has term 3, index 20", "lacks entry 1"}},
		"an unknown version of a snapshot": {func(t *testing.T, path string) {
			change(t, filepath.Join(compact(t, path, 30, 20), "meta.json"), `1,"ID"`, '5')
		}, []string{"newest snapshot is damaged", "its meta.json has version 5"}},
		"a snapshot without servers": {func(t *testing.T, path string) {
			change(t, filepath.Join(compact(t, path, 30, 20), "meta.json"), `Servers"`, 'X')
		}, []string{"newest snapshot is damaged", "its meta.json names no servers"}},
		"a snapshot with servers of a later index": {func(t *testing.T, path string) {
			change(t, filepath.Join(compact(t, path, 5, 3), "meta.json"), `1,"Size"`, '9')
		}, []string{"newest snapshot is damaged", "its meta.json has servers of index 9, after its own index 5"}},
		"a damaged snapshot that is not needed": {func(t *testing.T, path string) {
			compact(t, path, 10, 5)
			change(t, filepath.Join(compact(t, path, 30, 8), "state.bin"), "nodedrain", 'N')
		}, []string{"so nothing is lost: delete the directory"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := member(t)
			c.damage(t, path)
			for range 2 {
				_, err := Open(path, Options{})
				must.ErrorIs(t, err, ErrUnsafe)
				for _, want := range append(c.want, path) {
					must.StrContains(t, err.Error(), want)
				}
				must.StrNotContains(t, err.Error(), "\n")
			}
		})
	}
}

// change replaces the first byte of each occurrence of a text in a file.
func change(t *testing.T, file, at string, into byte) {
	t.Helper()
	text := result.Of(os.ReadFile(file)).OK(t)
	must.StrContains(t, string(text), at)
	must.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), at, string(into)+at[1:])), 0o600))
}

// Damage of a page of the log does not cause a panic. If Open accepts the log, it has every entry.
func TestOpen_damagedPages(t *testing.T) {
	t.Parallel()
	good := member(t)
	whole := result.Of(os.ReadFile(filepath.Join(good, raftDir, logFile))).OK(t)
	refused := 0
	for page := range len(whole) / 4096 {
		if page >= 30 {
			break
		}
		path := filepath.Join(t.TempDir(), "data")
		must.NoError(t, os.CopyFS(path, os.DirFS(good)))
		damaged := append([]byte(nil), whole...)
		for i := range 64 {
			damaged[page*4096+i] ^= 0xff
		}
		must.NoError(t, os.WriteFile(filepath.Join(path, raftDir, logFile), damaged, 0o600))
		d, err := Open(path, Options{})
		if err != nil {
			must.ErrorIs(t, err, ErrUnsafe)
			must.StrContains(t, err.Error(), logFile)
			refused++
			continue
		}
		for index := range uint64(40) {
			must.NoError(t, d.log.GetLog(index+1, new(raft.Log)), must.Sprint(page))
		}
		must.NoError(t, d.Close())
	}
	must.Positive(t, refused)
}

// Raft reads the entries that it wrote, also those with extensions and those without a checksum.
func TestLog_checksums(t *testing.T) {
	t.Parallel()
	d := open(t, filepath.Join(t.TempDir(), "data"))
	plain := &raft.Log{Index: 1, Term: 1, Type: raft.LogNoop}
	extended := &raft.Log{Index: 2, Term: 1, Type: raft.LogNoop, Data: []byte("data"), Extensions: []byte("extension")}
	must.NoError(t, d.log.StoreLogs([]*raft.Log{plain, extended}))
	must.Nil(t, plain.Extensions)
	must.NoError(t, d.log.BoltStore.StoreLog(&raft.Log{Index: 3, Term: 1, Data: []byte("of an older build")}))
	var read raft.Log
	must.NoError(t, d.log.GetLog(1, &read))
	must.Nil(t, read.Extensions)
	must.NoError(t, d.log.GetLog(2, &read))
	must.Eq(t, "extension", string(read.Extensions))
	must.Eq(t, "data", string(read.Data))
	must.NoError(t, d.log.GetLog(3, &read))
	changed := withChecksum(extended)
	changed.Data = []byte("dbta")
	must.NoError(t, d.log.BoltStore.StoreLog(changed))
	must.ErrorIs(t, d.log.GetLog(2, &read), ErrUnsafe)
}

// Open accepts a follower that has deleted its last entries, a directory of a build without the
// record, a directory that such a build has used in a later term, and a server that is not a member
// yet.
func TestOpen_accepts(t *testing.T) {
	t.Parallel()
	path := member(t)
	d := open(t, path)
	must.NoError(t, d.Log().DeleteRange(35, 40))
	must.NoError(t, d.Close())
	d = open(t, path)
	must.Eq(t, 34, d.recorder.next.Index)
	must.NoError(t, d.Close())

	must.NoError(t, os.Remove(filepath.Join(path, recordFile)))
	d = open(t, path)
	kept := result.Of(readRecord(filepath.Join(path, recordFile))).OK(t)
	must.Eq(t, record{position{Term: 3, Vote: 3, Index: 34}, "s2", "of s1"}, *kept)
	must.NoError(t, d.log.BoltStore.SetUint64([]byte(keyTerm), 4))
	must.NoError(t, d.log.BoltStore.DeleteRange(30, 34))
	must.NoError(t, d.Close())
	d = open(t, path)
	must.Eq(t, position{Term: 4, Vote: 3, Index: 29}, d.recorder.next.position)
	must.NoError(t, d.Close())

	fresh := filepath.Join(t.TempDir(), "fresh")
	d = open(t, fresh)
	must.NoError(t, d.KeepPromise("s1"))
	must.NoError(t, d.KeepCluster("of s1"))
	must.NoError(t, d.Stable().SetUint64([]byte(keyTerm), 0)) // as raft does at its start
	must.NoError(t, d.Close())
	_, err := os.Stat(filepath.Join(fresh, recordFile))
	must.ErrorIs(t, err, os.ErrNotExist)
	must.NoError(t, open(t, fresh).Close())
}

// A lost list of free pages is damage too.
func TestOpen_damagedFreeList(t *testing.T) {
	t.Parallel()
	path := member(t)
	file := filepath.Join(path, raftDir, logFile)
	text := result.Of(os.ReadFile(file)).OK(t)
	db := result.Of(bbolt.Open(file, 0, nil)).OK(t)
	page := 0
	must.NoError(t, db.View(func(tx *bbolt.Tx) error {
		for i := range int(tx.Size()) / 4096 {
			if info, err := tx.Page(i); err == nil && info != nil && info.Type == "freelist" {
				page = i
			}
		}
		return nil
	}))
	must.NoError(t, db.Close())
	must.Positive(t, page)
	binary.LittleEndian.PutUint16(text[page*4096+10:], 0) // it lists no page
	must.NoError(t, os.WriteFile(file, text, 0o600))
	_, err := Open(path, Options{})
	must.ErrorIs(t, err, ErrUnsafe)
	must.StrContains(t, err.Error(), "unreachable unfreed")
}

// Discard moves the data. Then a new server with another name can use the directory.
func TestDiscard(t *testing.T) {
	t.Parallel()
	path := member(t)
	must.NoError(t, os.Remove(filepath.Join(path, raftDir, logFile)))
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	done := result.Of(Discard(path, now)).OK(t)
	must.Eq(t, Discarded{Name: "s2", Dir: filepath.Join(path, "discarded-20260102T030405Z")}, done)
	_, err := Discard(path, now)
	must.ErrorContains(t, err, "contains no data")
	_, err = Open(path, Options{Name: "s2"})
	must.ErrorContains(t, err, "choose another name")
	d := result.Of(Open(path, Options{Name: "s4"})).OK(t)
	must.Eq(t, "", d.Cluster()+d.Promised())
	_, err = Discard(path, now)
	must.ErrorContains(t, err, "in use by another process")
	must.NoError(t, d.Close())
	_, err = Discard(filepath.Join(path, "absent"), now)
	must.ErrorIs(t, err, os.ErrNotExist)
}

// MakeAlone gives a new cluster the whole state of the last server, also with an older copy of its
// log. While another server listens, it returns an error and does not change the record.
func TestMakeAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	listener := result.Of(net.Listen("tcp", "127.0.0.1:0")).OK(t)
	d := result.Of(Open(path, Options{Name: "s2"})).OK(t)
	must.NoError(t, d.KeepCluster("of s1"))
	must.NoError(t, d.Stable().SetUint64([]byte(keyTerm), 1))
	must.NoError(t, d.Log().StoreLog(configuration(
		raft.Server{ID: "s1", Address: raft.ServerAddress(listener.Addr().String())}, raft.Server{ID: "s2", Address: "127.0.0.1:2"})))
	must.NoError(t, d.Log().StoreLog(command(t, 2, 1)))
	must.NoError(t, d.Close())
	text := result.Of(os.ReadFile(filepath.Join(path, raftDir, logFile))).OK(t)
	d = open(t, path)
	must.NoError(t, d.Stable().SetUint64([]byte(keyTerm), 2))
	must.NoError(t, d.Log().StoreLog(command(t, 3, 2)))
	must.NoError(t, d.Close())
	must.NoError(t, os.WriteFile(filepath.Join(path, raftDir, logFile), text, 0o600))

	_, err := MakeAlone(t.Context(), path, hclog.NewNullLogger())
	must.ErrorContains(t, err, "server s1 still runs")
	_, err = Open(path, Options{})
	must.ErrorContains(t, err, "older copy")
	must.NoError(t, listener.Close())
	done := result.Of(MakeAlone(t.Context(), path, hclog.NewNullLogger())).OK(t)
	must.Eq(t, 2, done.Index)
	must.StrContains(t, done.Lost, "ends at term 1, and the server had reached term 2")
	must.SliceLen(t, 1, done.Gone)

	d = open(t, path)
	must.Eq(t, done.Cluster, d.Cluster())
	must.NotEq(t, "of s1", d.Cluster())
	term := result.Of(d.Stable().GetUint64([]byte(keyTerm))).OK(t)
	must.Eq(t, 2, term)
	snapshots := result.Of(d.Snapshots().List()).OK(t)
	must.Eq(t, []raft.Server{{ID: "s2", Address: "127.0.0.1:2"}}, snapshots[0].Configuration.Servers)
	_, state, err := d.Snapshots().Open(snapshots[0].ID)
	must.NoError(t, err)
	restored := result.Of(statestore.Restore(io.NopCloser(state))).OK(t)
	must.NotNil(t, restored.Snapshot().Node("node-2"))
	must.NoError(t, state.Close())
	must.NoError(t, d.Close())
	_, err = MakeAlone(t.Context(), path, hclog.NewNullLogger())
	must.ErrorContains(t, err, "already the only one of its cluster")
}

// A server that was killed while it restored a state does not start: the others may have another one.
// Discard and MakeAlone accept its data, and a restore that has ended leaves nothing.
func TestOpen_interruptedRestore(t *testing.T) {
	t.Parallel()
	interrupted := func() string {
		path := member(t)
		d := open(t, path)
		must.NoError(t, d.BeginRestore())
		must.NoError(t, d.EndRestore())
		must.NoError(t, d.EndRestore())
		must.NoError(t, d.Close())
		d = open(t, path)
		must.NoError(t, d.BeginRestore())
		must.NoError(t, d.Close())
		_, err := Open(path, Options{})
		must.ErrorIs(t, err, ErrUnsafe)
		must.ErrorContains(t, err, "was stopped while it restored a saved state")
		return path
	}
	path := interrupted()
	result.Of(Discard(path, time.Now())).OK(t)
	d := result.Of(Open(path, Options{Name: "s4"})).OK(t)
	must.NoError(t, d.Close())

	path = interrupted()
	result.Of(MakeAlone(t.Context(), path, hclog.NewNullLogger())).OK(t)
	must.NoError(t, open(t, path).Close())
}

// A server refuses a data directory that other users can change: they could replace the log. "server
// recover" refuses it too. Of an older directory the server removes the right to read it.
func TestOpen_otherUsers(t *testing.T) {
	t.Parallel()
	path := member(t)
	base := filepath.Dir(path)
	must.NoError(t, os.Chmod(path, 0o755))
	var log bytes.Buffer
	d := result.Of(Open(path, Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})).OK(t)
	must.NoError(t, d.Close())
	must.StrContains(t, log.String(), "[WARN]  other users had rights to the data directory: its mode is now 0700: path="+path+" mode=0755")
	info := result.Of(os.Stat(path)).OK(t)
	must.Eq(t, 0o700, info.Mode().Perm())

	for _, c := range []struct {
		change func() error
		root   bool
		want   string
	}{
		{func() error { return os.Chmod(path, 0o770) }, false, "other users may write to " + path},
		{func() error { return os.Chmod(filepath.Join(path, raftDir), 0o702) }, false, "other users may write to " + filepath.Join(path, raftDir)},
		{func() error { return os.Chmod(base, 0o777) }, false, "other users may write to " + base},
		{func() error { return os.Chown(path, 12345, 0) }, true, path + " belongs to another user (12345)"},
		{func() error { return os.Chown(base, 12345, 0) }, true, base + " belongs to another user (12345)"},
	} {
		if c.root && os.Geteuid() != 0 {
			continue // only root can give a folder away
		}
		must.NoError(t, c.change(), must.Sprint(c.want))
		_, err := Open(path, Options{})
		must.ErrorContains(t, err, c.want)
		_, err = MakeAlone(t.Context(), path, hclog.NewNullLogger())
		must.ErrorContains(t, err, c.want)
		if !strings.Contains(c.want, raftDir) {
			_, err = Discard(path, time.Now())
			must.ErrorContains(t, err, c.want)
		}
		for _, folder := range []string{base, path, filepath.Join(path, raftDir)} {
			must.NoError(t, errors.Join(os.Chown(folder, os.Geteuid(), os.Getegid()), os.Chmod(folder, 0o700)))
		}
	}
	open(t, path)
}
