package host_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Each call carries all its fields.
func TestDriver(t *testing.T) {
	t.Parallel()
	testDriver(t, script{})
}

// A plugin sends whole buffers of C. The client cuts each string at the first NUL.
func TestDriver_paddedStrings(t *testing.T) {
	t.Parallel()
	testDriver(t, script{Padded: true})
}

func testDriver(t *testing.T, s script) {
	t.Helper()
	s.HealthMessage = "all\x07 well"
	b := newBench(t, s)
	b.options.HostCgroup = true
	d := b.launch().Driver()
	ctx := t.Context()
	must.Eq(t, driver.Capabilities{
		SendSignals: true, FSIsolation: driver.FSChroot, NoMounts: true, HostCgroup: true,
		NetworkModes: []driver.NetworkMode{driver.NetworkHost, driver.NetworkNone},
	}, d.Capabilities())

	_, err := d.Encode([]byte(`{"comand": "x"}`), nil)
	must.ErrorContains(t, err, `"comand"`)
	config, err := d.Encode([]byte(`{"command": "${x}"}`), func(string) (string, bool) { return "y", true })
	must.NoError(t, err)
	must.Eq(t, []byte("\x81\xa7command\xa1y"), config)

	task := &driver.TaskConfig{ID: "t", Name: "web", Config: config, Env: map[string]string{"A": "b"}, AllocDir: "/alloc"}
	handle, err := d.Start(ctx, task)
	must.NoError(t, err)
	_, err = d.Start(ctx, task)
	must.Eq(t, driver.Fatal, driver.ClassOf(err))
	must.NoError(t, d.Recover(ctx, "t", handle))
	must.ErrorContains(t, d.Recover(ctx, "t", []byte("\xff")), "RecoverTask")
	must.ErrorContains(t, d.Recover(ctx, "t", nil), "failed to decode driver config: EOF")

	status, err := d.Inspect(ctx, "t")
	must.NoError(t, err)
	must.Eq(t, driver.Status{ID: "t", Name: "web", State: driver.TaskRunning, StartedAt: time.Unix(5, 0).UTC(), Attributes: map[string]string{"pid": "7"}}, status)
	must.NoError(t, d.Signal(ctx, "t", "SIGHUP"))

	var usages []driver.Usage
	must.NoError(t, d.Stats(ctx, "t", time.Second, func(u driver.Usage) { usages = append(usages, u) }))
	must.Eq(t, []driver.Usage{{Time: time.Unix(5, 0).UTC(), CPUPercent: 12.5, RSS: 4096}}, usages)

	must.NoError(t, d.Stop(ctx, "t", 1500*time.Millisecond, "SIGINT"))
	for range 2 {
		exit, err := d.Wait(ctx, "t")
		must.NoError(t, err)
		must.Eq(t, driver.ExitResult{Code: 143, Signal: 15}, exit)
	}
	status, err = d.Inspect(ctx, "t")
	must.NoError(t, err)
	must.Eq(t, &driver.ExitResult{Code: 143, Signal: 15}, status.Exit)
	must.NoError(t, d.Destroy(ctx, "t", true))
	for _, err := range []error{d.Destroy(ctx, "t", true), d.Stop(ctx, "t", time.Second, ""), d.Stats(ctx, "t", time.Second, nil)} {
		must.Eq(t, driver.NotFound, driver.ClassOf(err), must.Sprint(err))
	}
	must.Eq(t, []string{"1.5s SIGINT"}, b.lines("stop"))
	must.Eq(t, []string{"SIGHUP"}, b.lines("signal"))

	reports := make(chan driver.Fingerprint, 1)
	events := make(chan driver.Event, 1)
	listening, cancel := context.WithCancel(ctx)
	var streams sync.WaitGroup
	streams.Go(func() { _ = d.Fingerprints(listening, func(f driver.Fingerprint) { reports <- f }) })
	streams.Go(func() { _ = d.Events(listening, func(e driver.Event) { events <- e }) })
	must.Eq(t, driver.Fingerprint{Health: driver.Healthy, Description: "all? well", Attributes: map[string]string{
		"driver.scripted": "true", "driver.scripted.memory": "5GiB", "driver.scripted.load": "0.5", "driver.scripted.system": "linux", "driver.scripted.count": "0",
	}}, <-reports)
	must.Eq(t, driver.Event{Task: "t", Time: time.Unix(5, 0).UTC(), Message: "pulled", Annotations: map[string]string{"a": "b"}}, <-events)
	cancel()
	streams.Wait()
}

// A command of a task has streams, and a terminal that changes its size.
func TestDriver_execStreaming(t *testing.T) {
	t.Parallel()
	b := newBench(t, script{})
	d := b.launch().Driver()
	in, typed := io.Pipe()
	var stdout, stderr bytes.Buffer
	resize := make(chan driver.TerminalSize)
	var typing sync.WaitGroup
	typing.Go(func() {
		resize <- driver.TerminalSize{Height: 24, Width: 80}
		close(resize)
		for _, text := range []string{"one ", strings.Repeat("two ", 20_000)} {
			_, _ = io.WriteString(typed, text)
		}
		_ = typed.Close()
	})
	exit, err := d.ExecStreaming(t.Context(), "t", []string{"sh", "-i"}, driver.ExecStreams{Stdin: in, Stdout: &stdout, Stderr: &stderr, TTY: true, Resize: resize})
	must.NoError(t, err)
	typing.Wait()
	must.Eq(t, driver.ExitResult{Code: 4}, exit)
	must.Eq(t, "one "+strings.Repeat("two ", 20_000), stdout.String())
	must.Eq(t, "[sh -i] true;24x80;", stderr.String())

	// Without input.
	exit, err = d.ExecStreaming(t.Context(), "t", []string{"ls"}, driver.ExecStreams{})
	must.NoError(t, err)
	must.Eq(t, 4, exit.Code)
	// The caller's output fails.
	_, err = d.ExecStreaming(t.Context(), "t", []string{"ls"}, driver.ExecStreams{Stderr: failingWriter{}})
	must.ErrorIs(t, err, io.ErrClosedPipe)
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// A driver may be healthy and fail at each start. The host reports both.
func TestDriver_healthyAndUseless(t *testing.T) {
	t.Parallel()
	b := newBench(t, script{At: map[string]string{"StartTask": "cannot create a cgroup"}, EndOfStream: true})
	d := b.launch().Driver()
	_ = d.Fingerprints(t.Context(), func(f driver.Fingerprint) { must.Eq(t, driver.Healthy, f.Health) })
	_, err := d.Start(t.Context(), &taskOfClient)
	must.EqError(t, err, "StartTask: cannot create a cgroup")
}
