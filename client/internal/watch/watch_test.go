package watch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/shoenig/test/must"
)

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, root.Close()) })
	return root
}

func named(name string) func(string) bool { return func(other string) bool { return name == other } }

// Users of one folder and of several share one instance. Each gets the changes of its files only.
func TestWatcher(t *testing.T) {
	t.Parallel()
	one, two := t.TempDir(), t.TempDir()
	var w Watcher
	watch := func(dir, name string) *User {
		u, err := w.Watch(openRoot(t, dir), named(name))
		must.NoError(t, err)
		return u
	}
	a, b, c := watch(one, "a"), watch(one, "b"), watch(two, "a")
	put := func(dir, name string) {
		must.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	put(one, "other")
	put(one, "a")
	<-a.Changed
	put(two, "a")
	<-c.Changed
	select {
	case <-b.Changed:
		t.Fatal("b got a change of another file")
	default:
	}
	a.Close()
	put(one, "b")
	<-b.Changed
	must.NoError(t, os.Rename(filepath.Join(one, "b"), filepath.Join(one, "c")))
	<-b.Changed
	b.Close()
	c.Close()
	must.Nil(t, w.file, must.Sprint("without users there is no instance"))

	again := watch(one, "a")
	put(one, "a")
	<-again.Changed
	again.Close()
	again.Close()
	must.Nil(t, w.file)
}

// The end of a folder wakes its users.
func TestWatcher_folderGone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "x")
	must.NoError(t, os.Mkdir(dir, 0o700))
	var w Watcher
	root, err := os.OpenRoot(dir)
	must.NoError(t, err)
	u, err := w.Watch(root, named("a"))
	must.NoError(t, err)
	must.NoError(t, os.Remove(dir))
	must.NoError(t, root.Close())
	<-u.Changed
	u.Close()
	must.Nil(t, w.file)
}

func TestWatcher_overflow(t *testing.T) {
	t.Parallel()
	var w Watcher
	u, err := w.Watch(openRoot(t, t.TempDir()), named("a"))
	must.NoError(t, err)
	must.Eq(t, []*User{u}, w.concerned(w.file, event{watch: -1, mask: 0x4000}))
	must.SliceEmpty(t, w.concerned(nil, event{watch: -1, mask: 0x4000}))
	w.fail(w.file, os.ErrInvalid)
	<-u.Changed
	u.Close()
	must.Nil(t, w.file)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00a\x00\x00\x00rest"))
	f.Add([]byte("\x01\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, p []byte) {
		for _, e := range parse(p) {
			must.LessEq(t, len(p), len(e.name))
		}
	})
}
