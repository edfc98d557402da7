package rawexec

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/plugin/rawexec/shim"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// A command starts after the last kill of the task's shim, and before the driver reads the end of the task.
// Here no shim kills. What the command has started in a session of its own ends with the task. Bug: it lived
// on, and the control group could not be removed.
func TestExec_afterTheLastKill(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root: it creates control groups")
	}
	h, err := cgroup.Find("/")
	must.NoError(t, err)
	g, err := h.Create("test-"+rand.Text()+".web", cgroup.Limits{})
	must.NoError(t, err)
	t.Cleanup(func() {
		must.NoError(t, g.Kill(context.Background()))
		must.NoError(t, g.Remove(context.Background()))
	})
	dir := t.TempDir()
	must.NoError(t, os.Mkdir(filepath.Join(dir, "web"), 0o755))
	config, err := sdk.Encode(map[string]any{"command": "/bin/sh"})
	must.NoError(t, err)
	record, err := json.Marshal(&shim.Record{Protocol: shim.Protocol, TaskID: "a/web", Phase: shim.Running, Cgroup: g.Path()})
	must.NoError(t, err)
	must.NoError(t, os.WriteFile(filepath.Join(dir, "record"), record, 0o600))
	ending := &task{
		id: "a/web", folder: shim.Folder(dir), done: make(chan struct{}),
		config: &driver.TaskConfig{ID: "a/web", Name: "web", AllocDir: dir, Config: config},
	}
	d := New(Options{})
	d.tasks[ending.id] = ending

	stdout, printed := io.Pipe()
	executed := make(chan error, 1)
	go func() {
		_, err := d.ExecStreaming(t.Context(), ending.id, []string{"/bin/sh", "-c", "setsid sh -c 'echo ready; exec sleep 600 >&- 2>&-' & wait"},
			driver.ExecStreams{Stdout: printed, Stderr: io.Discard})
		executed <- err
	}()
	_, err = io.ReadFull(stdout, make([]byte, len("ready\n")))
	must.NoError(t, err)
	close(ending.done)
	must.NoError(t, <-executed)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a killed process ends soon
	defer cancel()
	must.NoError(t, g.Wait(ctx), must.Sprint("a process of the command lives"))
}
