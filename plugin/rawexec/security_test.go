package rawexec_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/shoenig/test/must"
)

// Another user of the machine sees no environment of a task and nothing of its shim. The user sees
// the command line of the task, as of every process. The command line of the shim has nothing of
// the task.
func TestSecurity_LocalUserAndATask(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for _, open := range []string{filepath.Dir(n.dir), n.dir} {
		must.NoError(t, os.Chmod(open, 0o755)) // the folder of the test must not block other users
	}
	p := n.launch()
	c := n.task("echo ready; exec sleep 600 # argument-of-the-task")
	c.Env["PASSWORD"] = "hunter2"
	n.start(p, c)
	n.until(func() bool { return strings.TrimSpace(n.stdout(c)) == "ready" })
	pids := n.living(1)
	shim := n.pid(p, c, "shim_pid")
	asNobody := func(command ...string) (string, error) {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, pid := range append(pids, shim) {
		proc := filepath.Join("/proc", strconv.Itoa(pid))
		for _, file := range []string{"environ", "mem", "fd"} {
			out, err := asNobody("head", "-c", "1", filepath.Join(proc, file))
			must.Error(t, err, must.Sprint(file, out))
		}
		line, err := asNobody("cat", filepath.Join(proc, "cmdline"))
		must.NoError(t, err)
		must.StrNotContains(t, line, "hunter2")
		if pid == shim {
			must.StrNotContains(t, line, "sleep")
			must.StrNotContains(t, line, "argument-of-the-task")
		}
	}
	err := filepath.WalkDir(n.shims(), func(path string, _ os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the shim writes meanwhile: it renames files and removes them
		}
		must.NoError(t, err)
		_, err = asNobody("/bin/sh", "-c", `[ -r "$0" ] || [ -w "$0" ]`, path)
		must.Error(t, err, must.Sprint(path))
		return nil
	})
	must.NoError(t, err)
	n.destroy(p, c)
}
