package rawexec

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
	"github.com/seed-f9cf0b39/nodedrain/plugin/rawexec/shim"
)

// family is a session of two processes: the first one, and a child of it that outlives it.
type family struct {
	first, child process.Identity
}

// newFamily starts the processes. The first one ends if ended is set.
func newFamily(t *testing.T, ended bool) family {
	t.Helper()
	task := exec.Command("sh", "-c", "sleep 600 </dev/null >/dev/null & echo $!; read end")
	task.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := task.StdinPipe()
	must.NoError(t, err)
	out, err := task.StdoutPipe()
	must.NoError(t, err)
	must.NoError(t, task.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	must.NoError(t, err)
	var f family
	f.first, err = process.Identify(task.Process.Pid)
	must.NoError(t, err)
	f.child, err = process.Identify(pid)
	must.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() { // it leaves nothing
			_ = syscall.Kill(-f.first.PID, syscall.SIGKILL)
		}
	})
	if ended {
		must.NoError(t, in.Close())
		_ = task.Wait()
		return f
	}
	go func() { _ = task.Wait() }()
	t.Cleanup(func() { _ = in.Close() })
	return f
}

// The shim of a task dies in each phase. No process of the task is left, and the result is known from the phase on in
// which the record has it. Bug: no test killed a shim between the end of the first process and that of the others.
func TestWatch_shimDiesInEachPhase(t *testing.T) {
	t.Parallel()
	gone := exec.Command("true")
	must.NoError(t, gone.Start())
	dead, err := process.Identify(gone.Process.Pid)
	must.NoError(t, err)
	must.NoError(t, gone.Wait())
	exit := &shim.Exit{Code: 3}
	for name, c := range map[string]struct {
		phase shim.Phase
		ended bool // the first process
		exit  *shim.Exit
		want  driver.ExitResult
	}{
		"starting":                     {shim.Starting, false, nil, driver.ExitResult{Unknown: true}},
		"running":                      {shim.Running, false, nil, driver.ExitResult{Unknown: true}},
		"running, the first one ended": {shim.Running, true, nil, driver.ExitResult{Unknown: true}},
		"ending":                       {shim.Ending, true, exit, driver.ExitResult{Code: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFamily(t, c.ended)
			folder := t.TempDir()
			record, err := json.Marshal(shim.Record{Protocol: 1, TaskID: "x", Phase: c.phase, Shim: dead, Task: f.first, Exit: c.exit})
			must.NoError(t, err)
			must.NoError(t, os.WriteFile(filepath.Join(folder, "record"), record, 0o600))
			d, one := New(Options{}), &task{id: "x", folder: shim.Folder(folder), done: make(chan struct{})}
			d.mu.Lock()
			d.adopt(one)
			d.mu.Unlock()
			<-one.done
			must.Eq(t, c.want, one.exit)
			for _, p := range []process.Identity{f.first, f.child} {
				alive, err := p.Alive()
				must.NoError(t, err)
				must.False(t, alive, must.Sprint(p))
			}
		})
	}
}
