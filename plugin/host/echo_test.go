package host_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/host"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// echo is a driver of package sdk. It writes what it gets to files.
type echo struct {
	sdk.Driver
	folder string
}

func (e *echo) write(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(e.folder, name), text, 0o600)
}

func (*echo) Info() sdk.Info {
	return sdk.Info{Name: "echo", Version: "1.0.0", HandleVersion: 3, ConfigSchema: oneKey("mode"), TaskSchema: oneKey("command")}
}

func (e *echo) Configure(config []byte) error { return e.write("config", config) }

func (*echo) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		SendSignals: true, Exec: true, FSIsolation: driver.FSUnveil, NetworkModes: []driver.NetworkMode{driver.NetworkGroup},
		MustCreateNetwork: true, NoMounts: true, NoLogCollection: true, DynamicWorkloadUsers: true,
	}
}

func (e *echo) Start(_ context.Context, task *driver.TaskConfig) ([]byte, error) {
	return []byte("state"), e.write("start", task)
}

func (e *echo) Recover(_ context.Context, task *driver.TaskConfig, version int32, state []byte) error {
	if version != 3 || string(state) != "state" {
		return os.ErrInvalid
	}
	return e.write("recover", task)
}

func (*echo) Wait(context.Context, driver.TaskID) (driver.ExitResult, error) {
	return driver.ExitResult{Code: 137, Signal: 9, OOMKilled: true}, nil
}

func (*echo) Inspect(_ context.Context, id driver.TaskID) (driver.Status, error) {
	return driver.Status{
		ID: id, Name: "web", State: driver.TaskExited, StartedAt: time.Unix(1, 0).UTC(), CompletedAt: time.Unix(2, 0).UTC(),
		Exit: &driver.ExitResult{Code: 1}, Attributes: map[string]string{"a": "b"},
	}, nil
}

// Messages pass unchanged between the client and a driver of package sdk.
func TestEcho(t *testing.T) {
	t.Parallel()
	b := newBench(t, script{})
	folder := t.TempDir()
	b.options.Args = []string{asEcho, folder}
	instance, err := b.program().Launch(t.Context(), host.Record{}, keep)
	must.NoError(t, err)
	defer func() { must.NoError(t, instance.Shutdown(t.Context())) }()
	must.Eq(t, (&echo{}).Capabilities(), instance.Driver().Capabilities())

	sent := &driver.TaskConfig{
		ID: "alloc/web/1", Name: "web", Config: []byte("\x81\xa7command\xa1y"),
		Env: map[string]string{"A": "b", "D": "e"}, DeviceEnv: map[string]string{"D": "e"},
		Resources: driver.Resources{
			CPU: 500, Cores: "2-3", MemoryMB: 64, MemoryMaxMB: 256, Cgroup: "/c", Ports: []driver.Port{{Label: "http", Number: 20001, To: 8080, HostIP: "10.0.0.2"}},
			TaskNetwork: &driver.TaskNetwork{IP: "10.0.0.2", Static: []driver.TaskPort{{Label: "ssh", Number: 22}}, Dynamic: []driver.TaskPort{{Label: "db", Number: 20002}}},
		},
		Mounts:  []driver.Mount{{TaskPath: "/t", HostPath: "/h", ReadOnly: true, Propagation: "private"}},
		Devices: []driver.Device{{TaskPath: "/dev/t", HostPath: "/dev/h", Permissions: "rw"}},
		User:    "daemon", AllocDir: "/alloc", StdoutPath: "/out", StderrPath: "/err",
		AllocID: "alloc", GroupName: "g", JobName: "jn", JobID: "ji", ParentJobID: "p", Namespace: "ns", NodeName: "nn", NodeID: "ni",
		Network: &driver.Network{Mode: driver.NetworkGroup, Path: "/net", Labels: map[string]string{"l": "m"}, Hostname: "h", Address: "10.0.0.1"},
	}
	handle, err := instance.Driver().Start(t.Context(), sent)
	must.NoError(t, err)
	must.NoError(t, instance.Driver().Recover(t.Context(), sent.ID, handle))
	for _, name := range []string{"start", "recover"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		must.NoError(t, err)
		var got driver.TaskConfig
		must.NoError(t, json.Unmarshal(text, &got))
		must.Eq(t, sent, &got, must.Sprint(name))
	}
	exit, err := instance.Driver().Wait(t.Context(), sent.ID)
	must.NoError(t, err)
	must.Eq(t, driver.ExitResult{Code: 137, Signal: 9, OOMKilled: true}, exit)
	expected, err := (&echo{}).Inspect(t.Context(), sent.ID)
	must.NoError(t, err)
	got, err := instance.Driver().Inspect(t.Context(), sent.ID)
	must.NoError(t, err)
	must.Eq(t, expected, got)
	must.Eq(t, driver.Unsupported, driver.ClassOf(instance.Driver().Signal(t.Context(), sent.ID, "SIGHUP")))
}
