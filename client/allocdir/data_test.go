package allocdir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
)

// write writes a file, and the folders above it.
func write(t *testing.T, path, content string) {
	t.Helper()
	must.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must.NoError(t, err)
	return string(text)
}

// Data that arrives is invisible, and is placed over the folders of the allocation with their modes. Each step can be
// repeated.
func TestData_incoming(t *testing.T) {
	f, tasks := open(t), []allocdir.Task{{Name: "web"}, {Name: "alloc"}, {Name: "a/b"}}
	folders := allocdir.DataFolders(tasks)
	must.Eq(t, []string{"alloc/data", "web/local", "%61lloc/local", allocdir.TaskFolder("a/b") + "/local"}, folders)
	must.NoError(t, f.Build("r", tasks))
	before := tree(t, f.Alloc("r"))

	into, err := f.MakeIncoming(t.Context(), "r")
	must.NoError(t, err)
	write(t, filepath.Join(into.Name(), "junk"), "of an earlier copy")
	must.NoError(t, into.Close())
	into, err = f.MakeIncoming(t.Context(), "r")
	must.NoError(t, err)
	for _, folder := range folders {
		write(t, filepath.Join(into.Name(), folder, "deep/file"), folder)
	}
	must.NoError(t, into.Close())

	names, err := f.Tasks("r")
	must.NoError(t, err)
	must.Len(t, 3, names)
	entries, err := f.ReadDir("r", "/", 100)
	must.NoError(t, err)
	for _, e := range entries {
		must.NotEq(t, ".incoming", e.Name)
	}
	must.NoError(t, os.Symlink("../../.incoming/alloc/data/deep/file", filepath.Join(f.Alloc("r"), "web/local/link")))
	for _, path := range []string{".incoming", ".incoming/alloc/data/deep/file", "web/local/link"} {
		_, err := f.OpenFile("r", path)
		must.Error(t, err, must.Sprint(path))
	}
	_, err = f.Stat("r", "web/local/link")
	must.ErrorIs(t, err, allocdir.ErrRefused)
	must.NoError(t, os.Remove(filepath.Join(f.Alloc("r"), "web/local/link")))

	must.NoError(t, f.PlaceIncoming(t.Context(), "r", folders[:2])) // the client dies in between
	must.NoError(t, f.Build("r", tasks))
	must.NoError(t, f.PlaceIncoming(t.Context(), "r", folders))
	must.NoError(t, f.PlaceIncoming(t.Context(), "r", folders))
	for _, folder := range folders[:2] {
		must.Eq(t, folder, content(t, filepath.Join(f.Alloc("r"), folder, "deep/file")))
		must.NoError(t, os.RemoveAll(filepath.Join(f.Alloc("r"), folder, "deep")))
	}
	must.Eq(t, before, tree(t, f.Alloc("r")), must.Sprint("the rest of the incoming data is gone"))
}

// The client dies between two moves.
func TestData_placeContinues(t *testing.T) {
	f, tasks := open(t), []allocdir.Task{{Name: "web"}}
	folders := allocdir.DataFolders(tasks)
	must.NoError(t, f.Build("r", tasks))
	into, err := f.MakeIncoming(t.Context(), "r")
	must.NoError(t, err)
	for _, folder := range folders {
		write(t, filepath.Join(into.Name(), folder, "file"), folder)
	}
	must.NoError(t, into.Close())
	must.NoError(t, os.Remove(filepath.Join(f.Alloc("r"), "alloc/data")))
	must.NoError(t, os.Rename(filepath.Join(f.Alloc("r"), ".incoming/alloc/data"), filepath.Join(f.Alloc("r"), "alloc/data")))
	must.NoError(t, f.Build("r", tasks))
	must.NoError(t, f.PlaceIncoming(t.Context(), "r", folders))
	for _, folder := range folders {
		must.Eq(t, folder, content(t, filepath.Join(f.Alloc("r"), folder, "file")))
	}
}

// Folders that are not empty are not replaced: a task may have used them.
func TestData_placeReplacesNothing(t *testing.T) {
	f, tasks := open(t), []allocdir.Task{{Name: "web"}}
	must.NoError(t, f.Build("r", tasks))
	into, err := f.MakeIncoming(t.Context(), "r")
	must.NoError(t, err)
	write(t, filepath.Join(into.Name(), "alloc/data/file"), "new")
	must.NoError(t, into.Close())
	write(t, filepath.Join(f.Alloc("r"), "alloc/data/file"), "old")
	must.Error(t, f.PlaceIncoming(t.Context(), "r", allocdir.DataFolders(tasks)))
	must.Eq(t, "old", content(t, filepath.Join(f.Alloc("r"), "alloc/data/file")))
	must.NoError(t, f.RemoveIncoming(t.Context(), "r"))
	must.NoError(t, f.RemoveIncoming(t.Context(), "r"))
	must.NoError(t, f.RemoveIncoming(t.Context(), "unknown"))
}

func TestData_moveAndRemove(t *testing.T) {
	f, tasks := open(t), []allocdir.Task{{Name: "web"}, {Name: "new"}}
	must.NoError(t, f.Build("p", tasks[:1]))
	must.NoError(t, f.Build("r", tasks))
	write(t, filepath.Join(f.Alloc("p"), "alloc/data/a"), "1")
	write(t, filepath.Join(f.Alloc("p"), "web/local/b"), "2")
	for range 2 {
		must.NoError(t, f.MoveData("p", "r", allocdir.DataFolders(tasks)))
		must.Eq(t, "1", content(t, filepath.Join(f.Alloc("r"), "alloc/data/a")))
		must.Eq(t, "2", content(t, filepath.Join(f.Alloc("r"), "web/local/b")))
	}
	into, err := f.MakeIncoming(t.Context(), "r")
	must.NoError(t, err)
	write(t, filepath.Join(into.Name(), "alloc/data/file"), "new")
	must.NoError(t, into.Close())
	must.NoError(t, f.Remove(t.Context(), "r"))
	must.NoError(t, f.Remove(t.Context(), "p"))
	ids, err := f.List()
	must.NoError(t, err)
	must.SliceEmpty(t, ids)
}

// The data of tasks of several users moves. Bug: its shared folder lost the sticky bit, and each user could delete the
// files of the others.
func TestData_moveOfSeveralUsers(t *testing.T) {
	needRoot(t)
	f, tasks := open(t), []allocdir.Task{{Name: "web", User: "65534"}, {Name: "log", User: "1"}}
	must.NoError(t, f.Build("p", tasks))
	must.NoError(t, f.Build("r", tasks))
	must.NoError(t, f.MoveData("p", "r", allocdir.DataFolders(tasks)))
	must.SliceContains(t, tree(t, f.Alloc("r")), "alloc/data dtrwxrwxrwx 0:0")
}

// Only folders of data are opened, and no link to another folder.
func TestData_open(t *testing.T) {
	f := open(t)
	must.NoError(t, f.Build("p", []allocdir.Task{{Name: "web"}}))
	for _, folder := range []string{"alloc/data", "web/local"} {
		root, err := f.OpenData("p", folder)
		must.NoError(t, err)
		must.NoError(t, root.Close())
	}
	for _, folder := range []string{
		"", ".", "..", "/", "local", "/local", "./local", "../local", "alloc", "alloc/logs", "alloc/local", "web", "web/secrets", "web/private",
		"web/local/x", "web//local", "../p/web/local", "/web/local", ".incoming/local", "web/data",
	} {
		_, err := f.OpenData("p", folder)
		must.Error(t, err, must.Sprint(folder))
		must.False(t, errors.Is(err, fs.ErrNotExist), must.Sprint(folder, ": ", err))
	}
	_, err := f.OpenData("p", "gone/local")
	must.ErrorIs(t, err, fs.ErrNotExist)
	must.NoError(t, os.Remove(filepath.Join(f.Alloc("p"), "web/local")))
	must.NoError(t, os.Symlink("/etc", filepath.Join(f.Alloc("p"), "web/local")))
	_, err = f.OpenData("p", "web/local")
	must.ErrorIs(t, err, allocdir.ErrNoFolder)
}

// Owners are named by the users of tasks. Other names are the owner of the folder.
func TestData_owners(t *testing.T) {
	needRoot(t)
	owners, err := allocdir.OwnersOf([]allocdir.Task{{Name: "web", User: "bin"}, {Name: "db"}})
	must.NoError(t, err)
	uid, _ := owners.Of("web/local", "")
	must.NotEq(t, 0, uid)
	must.Eq(t, "bin", owners.Name(uint32(uid)))
	must.Eq(t, "", owners.Name(0))
	must.Eq(t, "", owners.Name(12345))
	for _, c := range []struct {
		folder, user string
		root         bool
	}{{"alloc/data", "", true}, {"alloc/data", "bin", false}, {"alloc/data", "daemon", true}, {"web/local", "root", false}, {"db/local", "", true}} {
		got, _ := owners.Of(c.folder, c.user)
		must.Eq(t, c.root, got == 0, must.Sprint(c))
	}
	_, err = allocdir.OwnersOf([]allocdir.Task{{Name: "web", User: "no-such-user"}})
	must.Error(t, err)
}
