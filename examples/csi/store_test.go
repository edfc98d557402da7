package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/shoenig/test/must"
)

// A root that other users can change is refused. The root is closed to other users, because every
// user may write to the folders of volumes.
func TestOpenStore_root(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	root := filepath.Join(base, "root")
	_, err := openStore(root)
	must.NoError(t, err)
	must.NoError(t, os.Chmod(root, 0o755))
	_, err = openStore(root)
	must.NoError(t, err)
	info, err := os.Stat(root)
	must.NoError(t, err)
	must.Eq(t, 0o700, info.Mode().Perm())
	must.NoError(t, os.Chmod(root, 0o777))
	_, err = openStore(root)
	must.ErrorContains(t, err, "other users may write to "+root)
	must.NoError(t, os.Chmod(root, 0o700))
	must.NoError(t, os.Chmod(base, 0o777))
	_, err = openStore(root)
	must.ErrorContains(t, err, "other users may write to "+base)
	must.NoError(t, os.Chmod(base, 0o755))
	if os.Geteuid() == 0 {
		must.NoError(t, os.Chown(root, 12345, 0))
		_, err = openStore(root)
		must.ErrorContains(t, err, root+" belongs to another user (12345)")
	}
}

// Bug: on a root of the older layout, -create removed the content of the volume.
func TestOpenStore_olderLayout(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for _, folder := range []string{"volumes/web/data", "volumes/web/nodes", "nodes/a/volumes", "unfinished"} {
		must.NoError(t, os.MkdirAll(m.path("root/"+folder), 0o700))
	}
	kept := m.path("root/volumes/web/data/kept")
	must.NoError(t, os.WriteFile(kept, nil, 0o600))
	must.NoError(t, os.Chmod(m.path("root"), 0o755))
	cmd, out := m.command("-type", controllerOnly, "-create", "web", "-strict", m.path("log"))
	must.Error(t, cmd.Run())
	must.StrContains(t, out.String(), "has the layout of an older csi")
	must.FileExists(t, kept)
	entries, err := os.ReadDir(m.path("root"))
	must.NoError(t, err)
	must.Len(t, 3, entries)
	info, err := os.Stat(m.path("root"))
	must.NoError(t, err)
	must.Eq(t, 0o755, info.Mode().Perm())
	must.FileNotExists(t, m.path("log"))
}

// A creation never removes files. It replaces the empty folder of a creation that did not end.
func TestState_createExistingFolder(t *testing.T) {
	t.Parallel()
	s, err := openStore(filepath.Join(t.TempDir(), "root"))
	must.NoError(t, err)
	create := func() error { return s.locked(func(s *state) error { return s.create("web", volume{}) }) }
	must.NoError(t, os.MkdirAll(s.data("web"), 0o700))
	kept := filepath.Join(s.data("web"), "kept")
	must.NoError(t, os.WriteFile(kept, nil, 0o600))
	must.ErrorContains(t, create(), s.data("web")+" exists, and "+s.file()+" does not name it")
	must.FileExists(t, kept)
	must.NoError(t, os.Remove(kept))
	must.NoError(t, create())
}

// A deletion that did not end leaves nothing of the volume where a new volume would have it. The
// repetition of the call removes the rest.
func TestState_removeAgain(t *testing.T) {
	t.Parallel()
	s, err := openStore(filepath.Join(t.TempDir(), "root"))
	must.NoError(t, err)
	must.NoError(t, s.locked(func(s *state) error { return s.create("web", volume{}) }))
	half := s.data("web") + deleted
	remove := func() error { return s.locked(func(s *state) error { return s.remove("web") }) }
	must.NoError(t, os.WriteFile(filepath.Join(s.data("web"), "file"), nil, 0o600))
	must.NoError(t, os.Rename(s.data("web"), half)) // the program died here
	must.NoError(t, remove())
	must.DirNotExists(t, half)
	must.NoError(t, os.MkdirAll(half, 0o700)) // or here, after the state was saved
	must.NoError(t, s.locked(func(s *state) error { return s.create("web", volume{}) }))
	must.NoError(t, remove())
	must.NoError(t, os.MkdirAll(half, 0o700))
	must.NoError(t, remove())
	must.DirNotExists(t, half)
}
