package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/client/datacopy"
	"github.com/seed-f9cf0b39/nodedrain/internal/tmpfs"
)

// tarVariable makes TestCopy_besideTar run.
const tarVariable = "NODEDRAIN_TAR"

// A copy of a million empty files, of 1 GiB in one file, and of 200,000 files, prints its time, its processor time and
// the peak memory of both its ends, beside the times of tar | tar. The folders are in memory where the machine has
// such a folder, which needs two million free inodes. Nothing fails by time.
func TestCopy_besideTar(t *testing.T) {
	if os.Getenv(tarVariable) == "" {
		t.Skip("SKIPPED: it takes some minutes, and its figures need a quiet machine; " + tarVariable + "=1 runs it")
	}
	for _, size := range []struct{ files, bytes int }{{1_000_000, 0}, {1, 1 << 30}, {200_000, 1 << 10}} {
		t.Run(fmt.Sprintf("files=%d/bytes=%d", size.files, size.bytes), func(t *testing.T) {
			from := tmpfs.Folder(t)
			dir, content := from.Name(), make([]byte, size.bytes)
			_, _ = rand.NewChaCha8([32]byte{}).Read(content)
			for i := range size.files {
				folder := filepath.Join(dir, fmt.Sprint(i/1000))
				if i%1000 == 0 {
					must.NoError(t, os.MkdirAll(folder, 0o700))
				}
				must.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprint(i)), content, 0o640))
			}
			// Twice: the memory of the machine and the heap are warm the second time.
			for range 2 {
				tarWall, tarCPU := besideTar(t, dir)
				forgetPeak(t)
				wall, cpu := throughPipe(t, from)
				t.Logf("copy %.2f s, processor %.2f s, peak memory %s; tar | tar %.2f s, processor %.2f s; ratios %.1f and %.1f",
					wall.Seconds(), cpu.Seconds(), peak(t), tarWall.Seconds(), tarCPU.Seconds(), wall.Seconds()/tarWall.Seconds(), cpu.Seconds()/tarCPU.Seconds())
			}
		})
	}
}

// besideTar copies a folder with tar.
func besideTar(t *testing.T, dir string) (wall, cpu time.Duration) {
	t.Helper()
	to, err := os.MkdirTemp(filepath.Dir(dir), "tmpfs-test-tar-")
	must.NoError(t, err)
	defer os.RemoveAll(to)
	return measured(t, unix.RUSAGE_CHILDREN, func() {
		command := exec.CommandContext(t.Context(), "sh", "-c", `tar -C "$0" -cf - . | tar -C "$1" -xf -`, dir, to)
		out, err := command.CombinedOutput()
		must.NoError(t, err, must.Sprint(string(out)))
	})
}

// throughPipe copies a folder through a pipe.
func throughPipe(t *testing.T, from *os.Root) (wall, cpu time.Duration) {
	t.Helper()
	path, err := os.MkdirTemp(filepath.Dir(from.Name()), "tmpfs-test-")
	must.NoError(t, err)
	defer os.RemoveAll(path)
	into, err := os.OpenRoot(path)
	must.NoError(t, err)
	defer into.Close()
	return measured(t, unix.RUSAGE_SELF, func() {
		r, err := datacopy.NewReceiver(datacopy.Options{Into: into, Folders: []string{"alloc/data"}, MaxBytes: 1 << 30})
		must.NoError(t, err)
		in, out, err := os.Pipe()
		must.NoError(t, err)
		sent := make(chan error, 1)
		go func() {
			err := datacopy.Send(t.Context(), out, []datacopy.Source{{Name: "alloc/data", Root: from}}, datacopy.Position{})
			_ = out.Close()
			sent <- err
		}()
		must.NoError(t, r.Receive(t.Context(), in))
		must.NoError(t, <-sent)
		must.NoError(t, in.Close())
		must.NoError(t, r.Close())
	})
}

// measured returns the time and the processor time that a function takes, in this process or in its children.
func measured(t *testing.T, of int, do func()) (wall, cpu time.Duration) {
	t.Helper()
	before, began := processorTime(t, of), time.Now()
	do()
	return time.Since(began), processorTime(t, of) - before
}

// forgetPeak begins a measurement of the peak memory of this process.
func forgetPeak(t *testing.T) {
	t.Helper()
	debug.FreeOSMemory()
	must.NoError(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0))
}

// peak returns the peak memory of this process since forgetPeak, as the kernel prints it.
func peak(t *testing.T) string {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	must.NoError(t, err)
	_, after, found := strings.Cut(string(status), "VmHWM:")
	must.True(t, found)
	line, _, _ := strings.Cut(after, "\n")
	return strings.TrimSpace(line)
}

func processorTime(t *testing.T, of int) time.Duration {
	t.Helper()
	var use unix.Rusage
	must.NoError(t, unix.Getrusage(of, &use))
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
