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
