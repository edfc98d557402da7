// Package tmpfs gives folders in memory to tests: small ones that become full, and large ones for measurements.
package tmpfs

import (
	"os"
	"testing"

	"github.com/shoenig/test/must"
	"golang.org/x/sys/unix"
)

// Mount mounts a file system in memory on a folder until the end of the test. The options are those of
// mount(8). The test is skipped if it has no right to mount.
func Mount(t testing.TB, folder, options string) {
	t.Helper()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, options); err != nil {
		t.Skipf("SKIPPED: the test needs the right to mount: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
}

// Folder opens a new folder without a limit of its own. It is in memory where the machine has such a folder.
func Folder(t testing.TB) *os.Root {
	t.Helper()
	path, err := os.MkdirTemp("/dev/shm", "tmpfs-test-")
	if err != nil {
		path = t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	r, err := os.OpenRoot(path)
	must.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
	return r
}
