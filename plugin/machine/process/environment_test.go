package process_test

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// A bug: the kernel shows no environment during an execve, so the suite for drivers did not find a
// task that executed another program, and then reported that a second start had made a process.
func TestEnvironment_whileTheProcessExecutes(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/sh", "-c", `exec /bin/sh -c "$SCRIPT"`)
	cmd.Env = []string{"MARK=here", `SCRIPT=exec /bin/sh -c "$SCRIPT"`}
	must.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	for range 5000 {
		env, err := process.Environment(cmd.Process.Pid)
		must.NoError(t, err)
		must.True(t, bytes.Contains(env, []byte("MARK=here\x00")), must.Sprintf("the environment is %q", env))
	}
	must.NoError(t, cmd.Process.Kill())
	_, err := cmd.Process.Wait()
	must.NoError(t, err)
	_, err = process.Environment(cmd.Process.Pid)
	must.ErrorIs(t, err, process.ErrGone)
}

func TestEnvironment_empty(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "600")
	cmd.Env = []string{}
	must.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	env, err := process.Environment(cmd.Process.Pid)
	must.NoError(t, err)
	must.Eq(t, "", string(env))

	env, err = process.Environment(os.Getpid())
	must.NoError(t, err)
	must.StrContains(t, string(env), "PATH=")
}
