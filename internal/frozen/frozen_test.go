package frozen_test

import (
	"os/exec"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/frozen"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

func TestStop(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/sh", "-c", "while :; do :; done")
	must.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	frozen.Stop(t, cmd.Process.Pid)
	d, err := process.Describe(cmd.Process.Pid)
	must.NoError(t, err)
	must.Eq(t, byte('T'), d.State)
}
