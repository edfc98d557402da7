package allocdir_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/shoenig/test/must"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/internal/tmpfs"
)

func open(t testing.TB) *allocdir.Folders {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "alloc"))
}

func openAt(t testing.TB, path string) *allocdir.Folders {
	t.Helper()
	f, err := allocdir.Open(path)
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, f.Close()) })
	return f
}

// tree returns the folders below a path, with mode, user and group.
func tree(t testing.TB, top string) []string {
	t.Helper()
	var all []string
	must.NoError(t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		stat, _ := info.Sys().(*syscall.Stat_t)
		name, _ := filepath.Rel(top, path)
		all = append(all, fmt.Sprintf("%s %v %d:%d", name, info.Mode(), stat.Uid, stat.Gid))
		return nil
	}))
	slices.Sort(all)
	return all
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may give folders to other users")
	}
	for _, id := range []string{"1", "65534"} {
		if u, err := user.LookupId(id); err != nil || u.Gid != id {
			t.Skipf("this machine has no user and group %s", id)
		}
	}
}

func TestBuild_OneUser(t *testing.T) {
	t.Parallel()
	f := open(t)
	who := fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid())
	expected := []string{
		". drwx------", "alloc drwx------", "alloc/data drwx------", "alloc/logs drwx------", "alloc/tmp drwx------",
		"web drwx------", "web/local drwx------", "web/private drwx------", "web/secrets drwx------", "web/tmp dtrwxrwxrwx",
	}
	for i := range expected {
		expected[i] += " " + who
	}
	for range 2 {
		must.NoError(t, f.Build("4f1b", []allocdir.Task{{Name: "web"}}))
		must.Eq(t, expected, tree(t, f.Alloc("4f1b")))
	}
	must.Eq(t, filepath.Join(f.Alloc("4f1b"), "web"), f.Task("4f1b", "web"))
	must.Eq(t, filepath.Join(f.Alloc("4f1b"), "alloc/logs"), f.Logs("4f1b"))
}

// A task with a user of its own owns its folders and those that the tasks share.
func TestBuild_UserOfTheTask(t *testing.T) {
	t.Parallel()
	needRoot(t)
	f := open(t)
	must.NoError(t, f.Build("a", []allocdir.Task{{Name: "web", User: "1"}}))
	got := strings.Join(tree(t, f.Alloc("a")), "\n")
	for _, expected := range []string{
		". drwx--x--x 0:0", "alloc/data drwx------ 1:1", "alloc/logs drwx------ 0:0", "web drwxr-x--- 0:1",
		"web/local drwx------ 1:1", "web/secrets drwx------ 1:1", "web/private drwx------ 0:0", "web/tmp dtrwxrwxrwx 1:1",
	} {
		must.StrContains(t, got, expected)
	}
}

// Tasks of different users share data and tmp, and not each other's folders.
func TestBuild_DifferentUsers(t *testing.T) {
	t.Parallel()
	needRoot(t)
	base, err := os.MkdirTemp("", "allocdir") // other users may pass through it
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, os.RemoveAll(base)) })
	must.NoError(t, os.Chmod(base, 0o711))
	f := openAt(t, filepath.Join(base, "alloc"))
	must.NoError(t, f.Build("a", []allocdir.Task{{Name: "web", User: "65534"}, {Name: "log", User: "1"}, {Name: "root"}}))
	as := func(uid uint32, command string, args ...string) error {
		cmd := exec.Command(command, args...)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		return cmd.Run()
	}
	top := f.Alloc("a")
	must.NoError(t, as(65534, "touch", top+"/web/secrets/x", top+"/web/local/x", top+"/web/tmp/x", top+"/alloc/data/x"))
	must.NoError(t, as(1, "touch", top+"/log/secrets/x", top+"/alloc/data/y"))
	for _, path := range []string{top + "/web/secrets/x", top + "/web/local", top + "/web/tmp", top + "/alloc/logs", top + "/root/local", top} {
		must.Error(t, as(1, "ls", path), must.Sprint(path))
	}
	for _, path := range []string{top + "/web/x", top + "/web/private/x", top + "/alloc/logs/x"} {
		must.Error(t, as(65534, "touch", path), must.Sprint(path))
	}
}

func TestBuild_Refused(t *testing.T) {
	t.Parallel()
	f := open(t)
	must.ErrorContains(t, f.Build("a", []allocdir.Task{{Name: "web", User: "no-such-user"}}), "task web: user: unknown user no-such-user")
	must.NoError(t, f.Build("b", nil))
	must.NoError(t, os.Symlink("/etc", filepath.Join(f.Alloc("b"), "web")))
	must.ErrorContains(t, f.Build("b", []allocdir.Task{{Name: "web"}}), "is not a folder")
	must.NoError(t, os.Symlink("/etc", f.Alloc("c")))
	must.Error(t, f.Build("c", nil))
	_, err := allocdir.Open("alloc")
	must.ErrorContains(t, err, "absolute path")
}

// Ids with slashes, dots and 256 bytes have folders of their own.
func TestTaskFolder(t *testing.T) {
	t.Parallel()
	f := open(t)
	names := []string{"web", "alloc", "%61lloc", "a/b", "a%2Fb", ".", "..", "../../etc", strings.Repeat("x", 256), strings.Repeat("x", 255), ""}
	var tasks []allocdir.Task
	for _, name := range names {
		tasks = append(tasks, allocdir.Task{Name: name})
	}
	must.NoError(t, f.Build("../job/1", tasks))
	entries, err := os.ReadDir(f.Alloc("../job/1"))
	must.NoError(t, err)
	must.Len(t, len(names)+1, entries)
	known := map[string]string{"alloc": "the folder of all"}
	rapid.Check(t, func(rt *rapid.T) {
		id := rapid.OneOf(rapid.SampledFrom(names), rapid.StringMatching(`%?6?1?a?lloc`)).Draw(rt, "id")
		name := allocdir.TaskFolder(id)
		other, taken := known[name]
		must.True(rt, !taken || other == id, must.Sprintf("%q and %q", id, other))
		known[name] = id
	})
}

// Removal deletes links and not what they lead to, folders without rights, and odd names.
func TestRemove(t *testing.T) {
	t.Parallel()
	f := open(t)
	must.NoError(t, f.Build("a", []allocdir.Task{{Name: "web"}}))
	must.NoError(t, f.Build("b", nil))
	outside := filepath.Join(t.TempDir(), "outside")
	must.NoError(t, os.MkdirAll(filepath.Join(outside, "kept"), 0o700))
	local := filepath.Join(f.Task("a", "web"), "local")
	must.NoError(t, os.Symlink(outside, filepath.Join(local, "link")))
	must.NoError(t, os.Symlink(f.Alloc("b"), filepath.Join(local, "sibling")))
	must.NoError(t, os.MkdirAll(filepath.Join(local, "x/y"), 0o700))
	must.NoError(t, os.WriteFile(filepath.Join(local, "x/y/file"), nil, 0o400))
	must.NoError(t, syscall.Mkfifo(filepath.Join(local, "fifo"), 0o600))
	must.NoError(t, os.Chmod(filepath.Join(local, "x"), 0))

	must.NoError(t, f.Remove(t.Context(), "a"))
	must.NoError(t, f.Remove(t.Context(), "a"))
	must.NoError(t, f.Remove(t.Context(), "unknown"))
	ids, err := f.List()
	must.NoError(t, err)
	must.Eq(t, []string{"b"}, ids)
	_, err = os.Stat(filepath.Join(outside, "kept"))
	must.NoError(t, err)
	_, err = os.Stat(f.Logs("b"))
	must.NoError(t, err)
}

// A tree that is deeper than a process may have files open, and a folder of many files.
func TestRemove_DeepAndWide(t *testing.T) {
	t.Parallel()
	f := open(t)
	must.NoError(t, f.Build("a", []allocdir.Task{{Name: "web"}}))
	dir, err := os.OpenRoot(f.Task("a", "web"))
	must.NoError(t, err)
	for range 3000 {
		must.NoError(t, dir.Mkdir("d", 0o700))
		next, err := dir.OpenRoot("d")
		must.NoError(t, err)
		must.NoError(t, dir.Close())
		dir = next
	}
	for i := range 1000 {
		must.NoError(t, dir.WriteFile(fmt.Sprint(i), nil, 0o600))
	}
	must.NoError(t, dir.Close())
	must.NoError(t, f.Remove(t.Context(), "a"))
	ids, err := f.List()
	must.NoError(t, err)
	must.SliceEmpty(t, ids)
}

// A removal that was interrupted is still listed, and the next call ends it.
func TestRemove_Interrupted(t *testing.T) {
	t.Parallel()
	f := open(t)
	must.NoError(t, f.Build("a", []allocdir.Task{{Name: "web"}}))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the client ends")
	cancel(why)
	must.ErrorIs(t, f.Remove(ctx, "a"), why)
	_, err := os.Stat(f.Alloc("a"))
	must.ErrorIs(t, err, fs.ErrNotExist)
	ids, err := f.List()
	must.NoError(t, err)
	must.Eq(t, []string{"a"}, ids)
	// Meanwhile the same id may exist again.
	must.NoError(t, f.Build("a", []allocdir.Task{{Name: "web"}}))
	must.NoError(t, f.Remove(t.Context(), "a"))
	ids, err = f.List()
	must.NoError(t, err)
	must.SliceEmpty(t, ids)
}

// A full disk is freed: a removal needs no new file or folder. Bug: it made two for its own use, so a disk that ended
// allocations had filled stayed full.
func TestRemove_FullDisk(t *testing.T) {
	t.Parallel()
	small := t.TempDir()
	tmpfs.Mount(t, small, "size=1m,nr_inodes=40")
	f := openAt(t, filepath.Join(small, "alloc"))
	long := strings.Repeat("x/", 200)
	tasks := []allocdir.Task{{Name: "web"}}
	must.NoError(t, f.Build("a", tasks))
	must.NoError(t, f.Build(long, tasks))
	into, err := f.MakeIncoming(t.Context(), "a")
	must.NoError(t, err)
	write(t, filepath.Join(into.Name(), "alloc/data/file"), "part")
	must.NoError(t, into.Close())
	must.ErrorIs(t, os.WriteFile(filepath.Join(f.Task(long, "web"), "local/big"), make([]byte, 2<<20), 0o600), syscall.ENOSPC)
	fill := func() {
		t.Helper()
		var err error
		for i := 0; err == nil || errors.Is(err, fs.ErrExist); i++ {
			err = os.Mkdir(filepath.Join(f.Task(long, "web"), "local", fmt.Sprint(i)), 0o700)
		}
		must.ErrorIs(t, err, syscall.ENOSPC)
	}
	fill()
	must.NoError(t, f.RemoveIncoming(t.Context(), "a"))
	fill()
	must.NoError(t, f.Remove(t.Context(), long))
	must.NoError(t, f.Remove(t.Context(), "a"))
	ids, err := f.List()
	must.NoError(t, err)
	must.SliceEmpty(t, ids)
	must.NoError(t, f.Build("a", tasks))
}

// What is mounted on a folder of a task is not deleted.
func TestRemove_MountedTask(t *testing.T) {
	t.Parallel()
	f := open(t)
	for _, name := range []string{"web", ".0", ".1"} {
		must.NoError(t, f.Build("a", nil))
		mounted := filepath.Join(f.Alloc("a"), name)
		must.NoError(t, os.Mkdir(mounted, 0o700))
		tmpfs.Mount(t, mounted, "size=1m")
		write(t, filepath.Join(mounted, "precious"), "kept")
		must.ErrorIs(t, f.Remove(t.Context(), "a"), syscall.EBUSY)
		found := filepath.Join(filepath.Dir(f.Alloc("a")), ".trash/a", name)
		must.Eq(t, "kept", content(t, filepath.Join(found, "precious")))
		must.NoError(t, unix.Unmount(found, 0))
		must.NoError(t, f.Remove(t.Context(), "a"))
	}
}

// Ids that are too long for the name of a folder are known, also while their folders are removed.
func TestList_LongIDs(t *testing.T) {
	t.Parallel()
	f := open(t)
	long := strings.Repeat("x/", 200)
	must.NoError(t, f.Build(long, []allocdir.Task{{Name: "web"}, {Name: long}, {Name: "alloc"}}))
	must.NoError(t, f.Build("short", nil))
	tasks, err := f.Tasks(long)
	must.NoError(t, err)
	must.SliceContainsAll(t, []string{"alloc", "web", long}, tasks)
	listed := func(expected ...string) {
		t.Helper()
		ids, err := f.List()
		must.NoError(t, err)
		must.Eq(t, expected, ids)
	}
	listed("short", long)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	must.ErrorIs(t, f.Remove(cancelled, long), context.Canceled)
	listed("short", long)
	must.NoError(t, f.Remove(t.Context(), long))
	listed("short")
	trash, err := os.ReadDir(filepath.Join(filepath.Dir(f.Alloc("short")), ".trash"))
	must.NoError(t, err)
	must.SliceEmpty(t, trash)

	// A folder without its id, and one with that of another folder, are left alone.
	must.NoError(t, f.Build(long, nil))
	must.NoError(t, os.WriteFile(filepath.Join(f.Alloc(long), ".id"), []byte("short"), 0o600))
	listed("short")
	must.NoError(t, os.Remove(filepath.Join(f.Alloc(long), ".id")))
	listed("short")
}

// What is mounted below the folder is not deleted: the error names the mount point, and the removal
// ends after the unmount.
func TestRemove_Mount(t *testing.T) {
	t.Parallel()
	f := open(t)
	must.NoError(t, f.Build("a", []allocdir.Task{{Name: "web"}}))
	volume := t.TempDir()
	must.NoError(t, os.WriteFile(filepath.Join(volume, "precious"), nil, 0o600))
	target := filepath.Join(f.Task("a", "web"), "local", "volume")
	must.NoError(t, os.Mkdir(target, 0o700))
	if err := unix.Mount(volume, target, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("this machine lets the test mount nothing: %v", err)
	}
	unmounted := false
	t.Cleanup(func() {
		if !unmounted {
			_ = unix.Unmount(target, unix.MNT_DETACH)
		}
	})
	err := f.Remove(t.Context(), "a")
	must.ErrorIs(t, err, syscall.EBUSY)
	must.ErrorContains(t, err, "/volume")
	_, err = os.Stat(filepath.Join(volume, "precious"))
	must.NoError(t, err)
	// The folders above the mount point have moved to the trash, with the mount.
	found, err := filepath.Glob(filepath.Join(filepath.Dir(f.Alloc("a")), ".trash/a/*/volume"))
	must.NoError(t, err)
	must.Len(t, 1, found)
	must.NoError(t, unix.Unmount(found[0], 0))
	unmounted = true
	must.NoError(t, f.Remove(t.Context(), "a"))
	_, err = os.Stat(filepath.Join(volume, "precious"))
	must.NoError(t, err)
}

// A volume is a link below the folder of a task. A link that the task has made leads nowhere else.
func TestLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folders, err := allocdir.Open(filepath.Join(dir, "allocs"))
	must.NoError(t, err)
	defer folders.Close()
	task := allocdir.Task{Name: "web"}
	must.NoError(t, folders.Build("a", []allocdir.Task{task}))
	for _, target := range []string{"/volumes/1", "/volumes/2", "/volumes/2"} {
		must.NoError(t, folders.Link("a", task, "local/deep/data", target))
		to, err := os.Readlink(filepath.Join(folders.Task("a", "web"), "local/deep/data"))
		must.NoError(t, err)
		must.EqOp(t, target, to)
	}
	must.Error(t, folders.Link("a", task, "local", "/volumes/1"), must.Sprint("it replaces no folder"))
	must.NoError(t, os.Symlink(dir, filepath.Join(folders.Task("a", "web"), "local/out")))
	must.Error(t, folders.Link("a", task, "local/out/data", "/volumes/1"))
	_, err = os.Lstat(filepath.Join(dir, "data"))
	must.ErrorIs(t, err, os.ErrNotExist)
}

// A folder above the tasks' files lets through the users of the tasks, and the other users of the
// machine only if the tasks have several groups.
func TestAdmit(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root may give a folder to another user")
	}
	bin, err := user.Lookup("bin")
	must.NoError(t, err)
	daemon, err := user.Lookup("daemon")
	must.NoError(t, err)
	for name, c := range map[string]struct {
		users []string
		mode  fs.FileMode
		group string
	}{
		"no task":                          {nil, 0o700, "0"},
		"tasks of the client's user":       {[]string{"", "root"}, 0o700, "0"},
		"a task of another user":           {[]string{"", "bin"}, 0o710, bin.Gid},
		"several tasks of one user":        {[]string{"bin", bin.Uid}, 0o710, bin.Gid},
		"tasks of several users":           {[]string{"bin", "daemon"}, 0o711, "0"},
		"several users, one of them twice": {[]string{"daemon", "bin", "daemon", ""}, 0o711, "0"},
	} {
		path := t.TempDir()
		for _, before := range []fs.FileMode{0o711, 0o700} {
			must.NoError(t, os.Chmod(path, before))
			must.NoError(t, allocdir.Admit(path, c.users))
			info, err := os.Stat(path)
			must.NoError(t, err)
			must.EqOp(t, c.mode, info.Mode().Perm(), must.Sprint(name))
			stat := info.Sys().(*syscall.Stat_t)
			must.EqOp(t, c.group, strconv.Itoa(int(stat.Gid)), must.Sprint(name))
			must.EqOp(t, 0, stat.Uid)
		}
	}
	must.NotEqOp(t, bin.Gid, daemon.Gid)
	must.ErrorContains(t, allocdir.Admit(t.TempDir(), []string{"no-such-user"}), "no-such-user")
}
