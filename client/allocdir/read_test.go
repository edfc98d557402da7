package allocdir_test

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
)

// secret is what no caller may read.
const secret = "not for callers"

// tasksOf are tasks whose folders have other names than they have.
func tasksOf() []allocdir.Task {
	var tasks []allocdir.Task
	for _, name := range []string{"web", "alloc", "c/d", "..", "Ünï", "100%", "a=b", strings.Repeat("x", 250)} {
		tasks = append(tasks, allocdir.Task{Name: name})
	}
	return tasks
}

// filled is a folder of allocations with secrets in all places where callers must not read.
func filled(t testing.TB) *allocdir.Folders {
	t.Helper()
	f := open(t)
	must.NoError(t, f.Build("a", tasksOf()))
	must.NoError(t, f.Build("b", []allocdir.Task{{Name: "web"}}))
	put := func(content string, path ...string) {
		must.NoError(t, os.WriteFile(filepath.Join(path...), []byte(content), 0o600))
	}
	for _, task := range tasksOf() {
		put(task.Name, f.Task("a", task.Name), "local", "mine")
		put(secret, f.Task("a", task.Name), "secrets", "token")
		put(secret, f.Task("a", task.Name), "private", "token")
	}
	put("line\n", f.Logs("a"), "web.stdout.0")
	put(secret, f.Logs("a"), ".web.keeper")
	put(secret, f.Alloc("b"), "alloc", "data", "other")
	put(secret, filepath.Dir(f.Alloc("b")), "outside")
	return f
}

// read returns the content of a file.
func read(f *allocdir.Folders, alloc, path string) (string, error) {
	file, err := f.OpenFile(alloc, path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	return string(content), err
}

func TestReadDir(t *testing.T) {
	t.Parallel()
	f := filled(t)
	top, err := f.ReadDir("a", "/", 100)
	must.NoError(t, err)
	var names []string
	for _, e := range top {
		must.True(t, e.Info.IsDir())
		names = append(names, e.Name)
		if e.Name != "alloc" {
			task, err := read(f, "a", e.Name+"/local/mine")
			must.NoError(t, err, must.Sprintf("what is listed as %q can be read", e.Name))
			names[len(names)-1] += " of " + task
		}
	}
	must.SliceContainsSubset(t, names, []string{"alloc", "web of web", "%61lloc of alloc", "c%2Fd of c/d", "Ünï of Ünï", "100%25 of 100%", "a%3Db of a=b", "%2E. of .."})
	must.Len(t, len(tasksOf())+1, names)
	long, err := read(f, "a", strings.Repeat("x", 250)+"/local/mine")
	must.NoError(t, err, must.Sprint("a long name can be used in full"))
	must.Eq(t, strings.Repeat("x", 250), long)

	for path, expected := range map[string]string{"": "/", "web": "web", "web/local": "local", "/web//local/mine": "mine", "alloc/logs/": "logs", "web/../Ünï": "Ünï"} {
		e, err := f.Stat("a", path)
		must.NoError(t, err)
		must.Eq(t, expected, e.Name)
	}
}

func TestOpenFile(t *testing.T) {
	t.Parallel()
	f := filled(t)
	local := filepath.Join(f.Task("a", "web"), "local")
	link := func(target, name string) { must.NoError(t, os.Symlink(target, filepath.Join(local, name))) }
	link("mine", "same")
	link("../../alloc/./logs", "logs")
	link("../../alloc/../web/secrets/token", "to-secret")
	link("../secrets", "to-secrets")
	link("../../../b/alloc/data/other", "to-other")
	link("../../../outside", "to-outside")
	link("../../..", "to-all")
	link("/etc/passwd", "absolute")
	link("circle", "circle")
	link("logs/.web.keeper", "to-keeper")
	must.NoError(t, syscall.Mkfifo(filepath.Join(local, "fifo"), 0o600))
	for path, expected := range map[string]string{"web/local/same": "web", "web/local/logs/web.stdout.0": "line\n", "web/../web/local/mine": "web"} {
		got, err := read(f, "a", path)
		must.NoError(t, err)
		must.Eq(t, expected, got)
	}
	for path, expected := range map[string]error{
		"web/secrets/token": allocdir.ErrRefused, "web/private": allocdir.ErrRefused, "%61lloc/secrets/token": allocdir.ErrRefused,
		"web/local/to-secret": allocdir.ErrRefused, "web/local/to-secrets/token": allocdir.ErrRefused, "web/local/../secrets/token": allocdir.ErrRefused,
		"alloc/logs/.web.keeper": allocdir.ErrRefused, "web/local/to-keeper": allocdir.ErrRefused,
		"web/local/to-other": allocdir.ErrOutside, "web/local/to-outside": allocdir.ErrOutside, "web/local/to-all/outside": allocdir.ErrOutside,
		"web/local/absolute": allocdir.ErrOutside, "../b/alloc/data/other": allocdir.ErrOutside, "..": allocdir.ErrOutside,
		"web/local/circle": allocdir.ErrTooLong, strings.Repeat("x/", 3000): allocdir.ErrTooLong, "web/" + strings.Repeat("y", 256): allocdir.ErrTooLong, "a\x00": allocdir.ErrTooLong,
		"web/local/fifo": allocdir.ErrSpecial, "web/local": allocdir.ErrFolder, "": allocdir.ErrFolder,
		"web/local/mine/x": allocdir.ErrNoFolder, "web/local/none": fs.ErrNotExist, "none": fs.ErrNotExist,
	} {
		_, err := read(f, "a", path)
		must.ErrorIs(t, err, expected, must.Sprint(path))
	}
	for _, alloc := range []string{"none", "", "..", ".trash", "a/web", "../a"} {
		_, err := f.Stat(alloc, "/")
		must.ErrorIs(t, err, allocdir.ErrNoAlloc, must.Sprint(alloc))
	}
	special, err := f.Stat("a", "web/local/fifo")
	must.NoError(t, err, must.Sprint("special files are listed"))
	must.Eq(t, fs.ModeNamedPipe, special.Info.Mode().Type())
	_, err = f.ReadDir("a", "web/local/mine", 9)
	must.ErrorIs(t, err, allocdir.ErrNoFolder)
}

// A folder with more entries than a caller may get is an error, and takes no more memory than that.
func TestReadDir_tooMany(t *testing.T) {
	t.Parallel()
	f := filled(t)
	for i := range 1000 {
		must.NoError(t, os.WriteFile(filepath.Join(f.Alloc("a"), "alloc/data", fmt.Sprint(i)), nil, 0o600))
	}
	_, err := f.ReadDir("a", "alloc/data", 999)
	must.ErrorIs(t, err, allocdir.ErrTooMany)
	all, err := f.ReadDir("a", "alloc/data", 1000)
	must.NoError(t, err)
	must.Len(t, 1000, all)
}

// A task that exchanges a folder for a link all the time does not get a caller out of its allocation.
func TestOpenFile_race(t *testing.T) {
	t.Parallel()
	f := filled(t)
	local := filepath.Join(f.Task("a", "web"), "local")
	must.NoError(t, os.Mkdir(filepath.Join(local, "real"), 0o700))
	must.NoError(t, os.WriteFile(filepath.Join(local, "real", "token"), []byte("mine"), 0o600))
	must.NoError(t, os.Symlink("../secrets", filepath.Join(local, "link")))
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(filepath.Join(local, "real"), filepath.Join(local, "x"))
			_ = os.Rename(filepath.Join(local, "link"), filepath.Join(local, "real"))
			_ = os.Rename(filepath.Join(local, "real"), filepath.Join(local, "link"))
			_ = os.Rename(filepath.Join(local, "x"), filepath.Join(local, "real"))
		}
	}()
	reads := 0
	for range 3000 {
		content, err := read(f, "a", "web/local/real/token")
		must.StrNotContains(t, content, secret)
		if err == nil {
			reads++
		}
	}
	close(stop)
	<-ended
	must.Positive(t, reads)
}

// With no path does a caller read what is refused or outside.
func FuzzOpenFile(f *testing.F) {
	for _, seed := range []string{"web/local/mine", "../b/alloc/data/other", "web/local/link/token", "web/local/up/web/secrets/token", "%2E./secrets", "alloc/logs/.web.keeper", "\x00", "%", "web/./..//web/secrets/../secrets/token"} {
		f.Add("a", seed)
	}
	dirs := filled(f)
	local := filepath.Join(dirs.Task("a", "web"), "local")
	must.NoError(f, os.Symlink("../secrets", filepath.Join(local, "link")))
	must.NoError(f, os.Symlink("../..", filepath.Join(local, "up")))
	must.NoError(f, os.Symlink("../../..", filepath.Join(local, "out")))
	f.Fuzz(func(t *testing.T, alloc, path string) {
		if content, err := read(dirs, alloc, path); err == nil && alloc == "a" {
			must.NotEq(t, secret, content)
		}
		if entries, err := dirs.ReadDir("a", path, 100); err == nil {
			for _, e := range entries {
				must.NotEq(t, "token", e.Name)
				must.NotEq(t, "outside", e.Name)
			}
		}
		_, _ = dirs.Stat(alloc, path)
	})
}
