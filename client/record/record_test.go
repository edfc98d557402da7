package record_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/shoenig/test/must"
	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/client/record"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
)

func openDisk(t testing.TB, dir string) *record.Disk {
	t.Helper()
	d, err := record.OpenDisk(dir)
	must.NoError(t, err)
	return d
}

// all returns the records of a store, and the keys of damaged ones.
func all(t testing.TB, s record.Store) (records map[string]string, damaged []string) {
	t.Helper()
	found, broken, err := s.All()
	must.NoError(t, err)
	records = map[string]string{}
	for _, r := range found {
		records[r.Key] = string(r.Content)
	}
	for _, d := range broken {
		damaged = append(damaged, d.Key)
	}
	return records, damaged
}

// A disk keeps the last content of each record, also for the next client.
func TestStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := openDisk(t, dir)
	must.Error(t, store.Put("", nil))
	must.NoError(t, store.Delete("never written"))
	long := strings.Repeat("/", 256)
	for _, key := range []string{"task/a/b", "task/a", "..", "a\nb", long} {
		must.NoError(t, store.Put(key, []byte("old")))
		must.NoError(t, store.Put(key, []byte("new\n"+key)))
	}
	must.NoError(t, store.Put("gone", nil))
	must.NoError(t, store.Delete("gone"))
	must.NoError(t, store.Delete("gone"))
	got, damaged := all(t, store)
	must.Eq(t, map[string]string{
		"task/a/b": "new\ntask/a/b", "task/a": "new\ntask/a", "..": "new\n..", "a\nb": "new\na\nb", long: "new\n" + long,
	}, got)
	must.SliceEmpty(t, damaged)
	// The next life of the disk has the same records.
	got, _ = all(t, openDisk(t, dir))
	must.MapLen(t, 5, got)
	info, err := os.Stat(filepath.Join(dir, "task%2Fa~record"))
	must.NoError(t, err)
	must.Eq(t, 0o600, info.Mode())
}

// A record that is deleted while another goroutine reads all of them is not an error. Destroy of
// package client/node failed when the last record of a node was deleted at such a moment.
func TestDisk_readWhileDeleted(t *testing.T) {
	t.Parallel()
	d := openDisk(t, t.TempDir())
	for i := range 60 {
		must.NoError(t, d.Put(fmt.Sprint(i), nil))
	}
	deleted := make(chan error, 1)
	go func() {
		var errs []error
		for i := range 60 {
			errs = append(errs, d.Delete(fmt.Sprint(i)))
		}
		deleted <- errors.Join(errs...)
	}()
	for left := 60; left > 0; {
		found, _ := all(t, d)
		left = len(found)
	}
	must.NoError(t, <-deleted)
}

// A record that is cut at any byte, or changed at any byte, is set aside. Its key is known, the other
// records are not affected, and it is reported again until it is discarded. (NP-B1)
func TestDisk_EveryDamage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "records")
	const key = "task/4f1b5b3e/web"
	path := filepath.Join(dir, pathname.Encode(key)+"~record")
	must.NoError(t, openDisk(t, dir).Put(key, []byte(`{"pid":4711}`)))
	must.NoError(t, openDisk(t, dir).Put("other", nil))
	whole, err := os.ReadFile(path)
	must.NoError(t, err)

	damage := map[string][]byte{"one byte too many": append(whole[:len(whole):len(whole)], 0)}
	for i := range whole {
		damage[fmt.Sprintf("cut at byte %d", i)] = whole[:i]
		for _, bit := range []byte{1, 2, 4, 8, 16, 32, 64, 128} {
			changed := append([]byte{}, whole...)
			changed[i] ^= bit
			damage[fmt.Sprintf("byte %d changed by %d", i, bit)] = changed
		}
	}
	for name, content := range damage {
		must.NoError(t, os.WriteFile(path, content, 0o600))
		var d record.Damaged
		for range 2 {
			found, broken, err := openDisk(t, dir).All()
			must.NoError(t, err, must.Sprint(name))
			must.Eq(t, []record.Record{{Key: "other", Content: []byte{}}}, found, must.Sprint(name))
			must.Len(t, 1, broken, must.Sprint(name))
			d = broken[0]
			must.Eq(t, key, d.Key)
			must.True(t, d.Is(key))
			must.ErrorContains(t, d.Err, key)
			must.ErrorContains(t, d.Err, d.Path)
			kept, err := os.ReadFile(d.Path)
			must.NoError(t, err)
			must.Eq(t, content, kept)
		}
		must.NoError(t, openDisk(t, dir).Discard(d))
	}
	t.Logf("%d damages", len(damage))
	must.NoError(t, openDisk(t, dir).Put(key, []byte("again")))
	got, damaged := all(t, openDisk(t, dir))
	must.Eq(t, map[string]string{key: "again", "other": ""}, got)
	must.SliceEmpty(t, damaged)
}

// A file under the name of another record is damaged.
func TestDisk_WrongName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.NoError(t, openDisk(t, dir).Put("a", nil))
	must.NoError(t, os.Rename(filepath.Join(dir, "a~record"), filepath.Join(dir, "b~record")))
	_, damaged := all(t, openDisk(t, dir))
	must.Eq(t, []string{"b"}, damaged)
}

// The damaged record of a long key has no key, and its owner recognizes it.
func TestDamaged_LongKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tasks := record.NewTable[int](openDisk(t, dir), "task", 1)
	long := strings.Repeat("long ", 60)
	must.NoError(t, tasks.Put(long, 1))
	must.NoError(t, os.Truncate(filepath.Join(dir, pathname.Encode("task/"+long)+"~record"), 10))
	_, broken, err := openDisk(t, dir).All()
	must.NoError(t, err)
	must.Len(t, 1, broken)
	must.Eq(t, "", broken[0].Key)
	must.True(t, broken[0].Is("task/"+long))
	must.False(t, broken[0].Is("task/other"))
	id, owns := tasks.Owns(broken[0])
	must.True(t, owns)
	must.Eq(t, "", id)
	_, owns = record.NewTable[int](nil, "volume", 1).Owns(broken[0])
	must.False(t, owns)
}

// A record of a newer format stops the start. It stays as it is.
func TestDisk_NewerFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a~record")
	must.NoError(t, os.WriteFile(path, record.EncodeFormat(2, []byte("a form of a later version")), 0o600))
	_, _, err := openDisk(t, dir).All()
	must.ErrorIs(t, err, record.ErrNewer)
	must.ErrorContains(t, err, path)
	_, err = os.Stat(path)
	must.NoError(t, err)
}

// The content of a file. An older client's file must stay readable for ever.
func TestDisk_Golden(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const golden = "nodedrain-record 1 a51d6d1d3313526406a582e5b6be47efc20b4ca0a5d9c65a460cc6cdf3fdfee4\n\"task/a\"\n{\"version\":3,\"value\":\"x\"}"
	must.NoError(t, record.NewTable[string](openDisk(t, dir), "task", 3).Put("a", "x"))
	got, err := os.ReadFile(filepath.Join(dir, "task%2Fa~record"))
	must.NoError(t, err)
	must.Eq(t, golden, string(got))
}

// A change that fails at any of its operations leaves the old record or the new one, and the next
// attempt succeeds. Temporary files do not stay. (NP-B2)
func TestDisk_FailureAtEachOperation(t *testing.T) {
	t.Parallel()
	for _, change := range []string{"put", "delete"} {
		for at := 1; ; at++ {
			dir := t.TempDir()
			must.NoError(t, openDisk(t, dir).Put("a", []byte("old")))
			d, failing := record.FailingDisk(t, dir)
			failing.At = at
			apply := func() error { return d.Put("a", []byte("new")) }
			expected := map[string]string{"a": "new"}
			if change == "delete" {
				apply, expected = func() error { return d.Delete("a") }, map[string]string{}
			}
			err := apply()
			if err == nil {
				must.Greater(t, 2, at, must.Sprint("an operation failed without an error"))
				break
			}
			must.ErrorIs(t, err, syscall.ENOSPC)
			got, damaged := all(t, openDisk(t, dir))
			must.SliceEmpty(t, damaged)
			old := map[string]string{"a": "old"}
			if fmt.Sprint(got) != fmt.Sprint(old) {
				must.Eq(t, expected, got)
			}
			must.NoError(t, apply())
			got, _ = all(t, openDisk(t, dir))
			must.Eq(t, expected, got)
			entries, err := os.ReadDir(dir)
			must.NoError(t, err)
			must.Eq(t, len(expected), len(entries))
		}
	}
}

// Every change syncs the file before the rename, and the folder after it.
func TestDisk_OrderOfOperations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, operations := record.FailingDisk(t, dir)
	must.NoError(t, d.Put("a", nil))
	must.NoError(t, d.Delete("a"))
	must.Eq(t, []string{"write", "rename", "syncDir", "remove", "syncDir"}, operations.Done)
}

// killedAt makes this test binary a client that kills itself at an operation.
const killedAt = "NODEDRAIN_TEST_KILLED_AT"

// After a kill at each operation of each change, every acknowledged change is there.
func TestDisk_KilledAtEachOperation(t *testing.T) {
	t.Parallel()
	if os.Getenv(killedAt) != "" {
		writeAndDie(t)
		return
	}
	for at := 1; ; at++ {
		dir := t.TempDir()
		command := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
		command.Env = []string{fmt.Sprintf("%s=%d", killedAt, at), "DIR=" + dir}
		out, err := command.Output()
		acknowledged := strings.Count(string(out), "done\n")
		got, damaged := all(t, openDisk(t, dir))
		must.SliceEmpty(t, damaged)
		must.SliceContains(t, []string{state(acknowledged), state(acknowledged + 1)}, fmt.Sprint(got), must.Sprintf("killed at %d", at))
		if err == nil {
			must.Eq(t, 5, acknowledged)
			return
		}
	}
}

// state is what the records are after n changes of writeAndDie.
func state(n int) string {
	return []string{"map[]", "map[a:1]", "map[a:1 b:1]", "map[a:2 b:1]", "map[b:1]", "map[a:3 b:1]", "map[a:3 b:1]"}[n]
}

func writeAndDie(t *testing.T) {
	d, operations := record.FailingDisk(t, os.Getenv("DIR"))
	_, err := fmt.Sscan(os.Getenv(killedAt), &operations.KillAt)
	must.NoError(t, err)
	for _, change := range []func() error{
		func() error { return d.Put("a", []byte("1")) },
		func() error { return d.Put("b", []byte("1")) },
		func() error { return d.Put("a", []byte("2")) },
		func() error { return d.Delete("a") },
		func() error { return d.Put("a", []byte("3")) },
	} {
		must.NoError(t, change())
		fmt.Println("done")
	}
}

// withoutSync makes this test binary a client whose kernel fails each sync.
const withoutSync = "NODEDRAIN_TEST_WITHOUT_SYNC"

// A file that is not synced takes the place of no record: after a power failure it would be empty. No folder shows
// whether a file was synced, so the kernel fails each sync.
func TestDisk_unsyncedFile(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(withoutSync); dir != "" {
		d := openDisk(t, dir)
		must.NoError(t, d.Put("a", []byte("old")))
		failSyncs(t)
		must.ErrorIs(t, d.Put("a", []byte("new")), syscall.EIO)
		return
	}
	dir := t.TempDir()
	command := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	command.Env = []string{withoutSync + "=" + dir}
	out, err := command.CombinedOutput()
	must.NoError(t, err, must.Sprint(string(out)))
	if strings.Contains(string(out), "--- SKIP") {
		t.Skip("this kernel filters no calls")
	}
	got, damaged := all(t, openDisk(t, dir))
	must.SliceEmpty(t, damaged)
	must.Eq(t, map[string]string{"a": "old"}, got)
}

// failSyncs makes each later fsync of this process fail, by a filter of calls.
func failSyncs(t *testing.T) {
	t.Helper()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_FSYNC, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EIO)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread() // the filter is that of this thread, and then of all
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Skip("this kernel filters no calls:", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))); errno != 0 {
		t.Skip("this kernel filters no calls:", errno)
	}
}

type taskRecord struct {
	PID int
	Log []string
}

// Tables of several kinds share a store. A newer version is refused, an older one is read.
func TestTable(t *testing.T) {
	t.Parallel()
	store := openDisk(t, t.TempDir())
	tasks := record.NewTable[taskRecord](store, "task", 2)
	must.NoError(t, tasks.Put("b", taskRecord{PID: 2}))
	must.NoError(t, record.NewTable[taskRecord](store, "task", 1).Put("a", taskRecord{PID: 1, Log: []string{"x"}}))
	must.NoError(t, record.NewTable[string](store, "volume", 1).Put("a", "v"))
	records, _, err := store.All()
	must.NoError(t, err)
	rows, err := tasks.Select(records)
	must.NoError(t, err)
	must.Eq(t, []record.Row[taskRecord]{
		{ID: "a", Version: 1, Value: taskRecord{PID: 1, Log: []string{"x"}}},
		{ID: "b", Version: 2, Value: taskRecord{PID: 2}},
	}, rows)
	_, err = record.NewTable[taskRecord](nil, "task", 1).Select(records)
	must.ErrorIs(t, err, record.ErrNewer)
	must.ErrorContains(t, err, "record task b has version 2, and this client reads version 1")
	_, err = record.NewTable[int](nil, "task", 2).Select(records)
	must.ErrorContains(t, err, "record task a")
	must.NoError(t, tasks.Delete("a"))
	must.NoError(t, tasks.Delete("b"))
	records, _, err = store.All()
	must.NoError(t, err)
	must.Len(t, 1, records)
}

// holdsLock makes this test binary a client that holds a data directory.
const holdsLock = "NODEDRAIN_TEST_HOLDS_LOCK"

// The second client with one data directory is refused with the pid of the first. The lock ends
// with the process.
func TestTakeLock(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(holdsLock); dir != "" {
		_, err := record.TakeLock(dir)
		must.NoError(t, err)
		fmt.Println("locked")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until this process is killed
		return
	}
	dir := filepath.Join(t.TempDir(), "client")
	first := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	first.Env = []string{holdsLock + "=" + dir}
	stdin, err := first.StdinPipe()
	must.NoError(t, err)
	defer stdin.Close()
	stdout, err := first.StdoutPipe()
	must.NoError(t, err)
	must.NoError(t, first.Start())
	_, err = stdout.Read(make([]byte, 7))
	must.NoError(t, err)

	_, err = record.TakeLock(dir)
	must.ErrorContains(t, err, fmt.Sprintf("%s is in use by the client with pid %d", dir, first.Process.Pid))
	must.NoError(t, first.Process.Kill())
	must.Error(t, first.Wait())
	lock, err := record.TakeLock(dir)
	must.NoError(t, err)
	info, err := os.Stat(dir)
	must.NoError(t, err)
	must.Eq(t, os.ModeDir|0o700, info.Mode())
	must.NoError(t, lock.Close())
}

// A start does not panic for any content of the folder, and states what it could not read.
func FuzzDisk_All(f *testing.F) {
	f.Add([]byte("nodedrain-record 1 00\n\"a\"\n"))
	f.Add(record.EncodeFormat(1, []byte("\"a\"\ncontent")))
	f.Add(record.EncodeFormat(1, []byte("\"a")))
	f.Add(record.EncodeFormat(0, []byte("\"a\"\n")))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		must.NoError(t, os.WriteFile(filepath.Join(dir, "a~record"), content, 0o600))
		records, damaged, err := openDisk(t, dir).All()
		if err != nil {
			must.True(t, errors.Is(err, record.ErrNewer))
			return
		}
		must.Eq(t, 1, len(records)+len(damaged))
	})
}

// Two clients with copies of one data directory are two holders of one node. The lock ends with its holder,
// and its file too.
func TestTakeNodeLock(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "nodes")
	first, err := record.TakeNodeLock(folder, "n/1", "/var/one")
	must.NoError(t, err)
	_, err = record.TakeNodeLock(folder, "n/1", "/var/two")
	must.ErrorIs(t, err, record.ErrInUse)
	must.EqError(t, err, fmt.Sprintf("lock the node: the node n/1 is in use by the client with pid %d and the data directory /var/one: "+
		"one of /var/one and /var/two is a copy of the other; stop one of the clients, and start it with an empty data directory", os.Getpid()))
	other, err := record.TakeNodeLock(folder, "n/2", "/var/two")
	must.NoError(t, err)
	must.NoError(t, errors.Join(first.Close(), other.Close()))
	left, err := os.ReadDir(folder)
	must.NoError(t, err)
	must.SliceEmpty(t, left)
	for range 2 { // the file of a client that was killed is there
		last, err := record.TakeNodeLock(folder, "n/1", "/var/two")
		must.NoError(t, err)
		must.NoError(t, last.Close())
		must.NoError(t, os.WriteFile(filepath.Join(folder, "n%2F1"), []byte("7\n/var/a-long-name-of-a-directory\n"), 0o600))
	}
	_, err = record.TakeNodeLock("/dev/null", "n", "/var/one")
	must.ErrorContains(t, err, "lock the node")
}
