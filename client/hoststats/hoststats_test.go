package hoststats

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"
	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/mounts"
)

const meminfo = "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 400 kB\n"

func TestTake(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Take(t.Context(), Options{DataDir: dir})
	must.NoError(t, err)
	must.Positive(t, s.Memory.Total)
	must.Eq(t, s.Memory.Total, s.Memory.Used+s.Memory.Available)
	must.Positive(t, s.Uptime)
	must.Positive(t, s.Disk.Size)
	must.NotEq(t, "", s.Disk.Mountpoint)
	must.SliceNotEmpty(t, s.CPUs)
	for _, c := range s.CPUs {
		must.Between(t, 0, c.User+c.System+c.Idle, 101)
	}
}

// The kernel's files of another machine, which change in the window.
func TestTake_window(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put := func(name, content string) {
		must.NoError(t, os.MkdirAll(filepath.Join(root, "proc"), 0o700))
		must.NoError(t, os.WriteFile(filepath.Join(root, "proc", name), []byte(content), 0o600))
	}
	put("meminfo", meminfo)
	put("uptime", "93.50 1.0\n")
	put("stat", "cpu  9 9 9 9\ncpu0 100 0 100 100 0 0 0 0 0 0\ncpu1 5 0 5 5\n")
	synctest.Test(t, func(t *testing.T) {
		go func() {
			time.Sleep(Window / 2)
			put("stat", "cpu  9 9 9 9\ncpu0 110 10 105 160 0 4 1 10 0 0\ncpu1 5 0 5 5\ncpu2 1 1 1 1\nintr 1 2 3 4 5\n")
		}()
		s, err := Take(t.Context(), Options{Root: root, DataDir: root})
		must.NoError(t, err)
		must.Eq(t, []CPU{{"cpu0", 20, 10, 60}, {"cpu1", 0, 0, 0}}, s.CPUs)
		must.Eq(t, Memory{Total: 1000 << 10, Available: 400 << 10, Used: 600 << 10, Free: 100 << 10}, s.Memory)
		must.Eq(t, 93500*time.Millisecond, s.Uptime)
		must.Eq(t, "", s.Disk.Device)

		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the caller left")
		cancel(why)
		_, err = Take(ctx, Options{Root: root, DataDir: root})
		must.ErrorIs(t, err, why)
	})
	for _, wrong := range []struct{ file, content, expected string }{
		{"stat", "nothing\n", "names none"}, {"meminfo", "MemTotal: 1 kB\n", "does not report MemFree"}, {"meminfo", "MemTotal: x kB\n", `"x"`}, {"uptime", "soon", "uptime"},
	} {
		before, err := os.ReadFile(filepath.Join(root, "proc", wrong.file))
		must.NoError(t, err)
		put(wrong.file, wrong.content)
		_, err = Take(t.Context(), Options{Root: root, DataDir: root})
		must.ErrorContains(t, err, wrong.expected)
		put(wrong.file, string(before))
	}
	_, err := Take(t.Context(), Options{Root: root, DataDir: filepath.Join(root, "none")})
	must.ErrorContains(t, err, "measure the disk")
}

func TestMountIn(t *testing.T) {
	t.Parallel()
	table, err := mounts.Parse(strings.NewReader("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n" +
		"23 22 8:2 / /data rw shared:1 - xfs /dev/sdb rw\n" +
		"24 22 8:2 /x /data/with\\040space rw shared:1 master:2 - xfs /dev/sdb rw\n"))
	must.NoError(t, err)
	for _, c := range []struct{ number, dir, device, point string }{
		{"8:1", "/var", "/dev/sda1", "/"}, {"8:2", "/data", "/dev/sdb", "/data"}, {"8:2", "/data/with space/x", "/dev/sdb", "/data/with space"},
		{"8:2", "/data2", "", ""}, {"9:9", "/", "", ""},
	} {
		device, point := mountIn(table, c.number, c.dir)
		must.Eq(t, c.device, device, must.Sprint(c.dir))
		must.Eq(t, c.point, point, must.Sprint(c.dir))
	}
}

// A line that cannot be read hides no other one.
func TestMountOf_oddLine(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	var s unix.Stat_t
	must.NoError(t, unix.Stat(proc, &s))
	must.NoError(t, os.Mkdir(filepath.Join(proc, "self"), 0o700))
	line := fmt.Sprintf("36 - a b\n22 1 %d:%d / / rw - ext4 /dev/sda1 rw\n", unix.Major(s.Dev), unix.Minor(s.Dev))
	must.NoError(t, os.WriteFile(filepath.Join(proc, "self/mountinfo"), []byte(line), 0o600))
	device, point := mountOf(proc, proc)
	must.Eq(t, "/dev/sda1", device)
	must.Eq(t, "/", point)
}

// Bug: a folder behind a symbolic link had no mount point, or that of the link.
func TestMountOf_symbolicLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder, link, proc := filepath.Join(dir, "disk/data"), filepath.Join(dir, "link"), filepath.Join(dir, "proc")
	must.NoError(t, os.MkdirAll(folder, 0o700))
	must.NoError(t, os.MkdirAll(filepath.Join(proc, "self"), 0o700))
	must.NoError(t, os.Symlink(folder, link))
	var s unix.Stat_t
	must.NoError(t, unix.Stat(folder, &s))
	line := fmt.Sprintf("22 1 %d:%d / %s rw - ext4 /dev/sdb1 rw\n", unix.Major(s.Dev), unix.Minor(s.Dev), filepath.Dir(folder))
	must.NoError(t, os.WriteFile(filepath.Join(proc, "self/mountinfo"), []byte(line), 0o600))
	for _, name := range []string{folder, link} {
		device, point := mountOf(proc, name)
		must.Eq(t, "/dev/sdb1", device, must.Sprint(name))
		must.Eq(t, filepath.Dir(folder), point, must.Sprint(name))
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("cpu0 1 2 3 4 5 6 7 8 9\nMemTotal: 1 kB\nMemFree: 1 kB\nMemAvailable: 1 kB\n"))
	f.Fuzz(func(_ *testing.T, content []byte) {
		now := parseTicks(content)
		use(now, now)
		_, _ = parseMemory(content)
	})
}
