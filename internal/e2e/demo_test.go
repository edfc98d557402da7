package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/shoenig/test/must"
)

// show is "nodedrain demo -real" with a temporary directory of its own.
func show(t *testing.T) (d *trial, command func(args ...string) *exec.Cmd) {
	t.Helper()
	d = newTrial(t)
	temp := filepath.Join(filepath.Dir(d.dir), "t")
	must.NoError(t, os.Mkdir(temp, 0o711))
	must.NoError(t, os.Chmod(temp, 0o711)) // the umask may have closed it
	d.dir = filepath.Join(temp, "nodedrain-demo-"+strconv.Itoa(os.Geteuid()))
	return d, func(args ...string) *exec.Cmd {
		c := exec.Command(d.binary, append([]string{"demo", "-real"}, args...)...)
		c.Env = append(os.Environ(), "TMPDIR="+temp)
		d.said = new(output)
		c.Stdout, c.Stderr = d.said, d.said
		return c
	}
}

// Real tasks leave nodes that drain at once, while the leader is killed. No process and no folder is
// left.
//
//race:skip its programs do not have the detector
func TestDemo_real(t *testing.T) {
	t.Parallel()
	d, command := show(t)
	err := command("-nodes", "4", "-deadline", "12s").Run()
	must.NoError(t, err, must.Sprint(d.said.String()))
	first, _, _ := strings.Cut(d.said.String(), "\n")
	must.StrContains(t, first, "tasks are real")
	for _, want := range []string{"2 nodes drain at once", "killed the leader", "is the new leader", "OK: 2 nodes drained"} {
		must.StrContains(t, d.said.String(), want)
	}
	d.nothingLeft()
}

// Ctrl-C ends all of it. What runs on after SIGKILL is ended by the next one.
//
//race:skip its programs do not have the detector
func TestDemo_realInterrupted(t *testing.T) {
	t.Parallel()
	d, command := show(t)
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		d.process = command("-nodes", "2")
		must.NoError(t, d.process.Start())
		d.await("the drains", func() bool { return strings.Contains(d.said.String(), "drain at once") })
		must.NoError(t, d.process.Process.Signal(signal))
		_ = d.process.Wait() // the error only says how it ended
		d.process = nil
		if signal == syscall.SIGKILL {
			must.SliceNotEmpty(t, d.left(), must.Sprint("tasks run on"))
		}
	}
	d.nothingLeft()
}
