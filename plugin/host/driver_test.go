package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/host"
)

// methods are calls of a driver with the names that they have in the protocol.
func methods() map[string]func(ctx context.Context, d driver.Driver) error {
	const id = "t"
	return map[string]func(ctx context.Context, d driver.Driver) error{
		"StartTask": func(ctx context.Context, d driver.Driver) error {
			_, err := d.Start(ctx, &driver.TaskConfig{ID: id})
			return err
		},
		"RecoverTask": func(ctx context.Context, d driver.Driver) error { return d.Recover(ctx, id, nil) },
		"WaitTask": func(ctx context.Context, d driver.Driver) error {
			_, err := d.Wait(ctx, id)
			return err
		},
		"StopTask":    func(ctx context.Context, d driver.Driver) error { return d.Stop(ctx, id, time.Second, "") },
		"DestroyTask": func(ctx context.Context, d driver.Driver) error { return d.Destroy(ctx, id, true) },
		"InspectTask": func(ctx context.Context, d driver.Driver) error {
			_, err := d.Inspect(ctx, id)
			return err
		},
		"SignalTask": func(ctx context.Context, d driver.Driver) error { return d.Signal(ctx, id, "SIGHUP") },
		"ExecTask": func(ctx context.Context, d driver.Driver) error {
			_, err := d.Exec(ctx, id, []string{"ls"}, time.Second)
			return err
		},
		"ExecTaskStreaming": func(ctx context.Context, d driver.Driver) error {
			_, err := d.ExecStreaming(ctx, id, []string{"ls"}, driver.ExecStreams{})
			return err
		},
		"CreateNetwork": func(ctx context.Context, d driver.Driver) error {
			_, _, err := d.CreateNetwork(ctx, id, "h")
			return err
		},
		"DestroyNetwork": func(ctx context.Context, d driver.Driver) error { return d.DestroyNetwork(ctx, id, nil) },
		"Fingerprint": func(ctx context.Context, d driver.Driver) error {
			return d.Fingerprints(ctx, func(driver.Fingerprint) {})
		},
		"TaskEvents": func(ctx context.Context, d driver.Driver) error { return d.Events(ctx, func(driver.Event) {}) },
		"TaskStats": func(ctx context.Context, d driver.Driver) error {
			return d.Stats(ctx, id, time.Second, func(driver.Usage) {})
		},
	}
}

// A plugin that dies at a call ends this call, the calls in flight and the instance. The calls may
// have had an effect.
func TestDriver_diesAtACall(t *testing.T) {
	t.Parallel()
	for name, call := range methods() {
		for _, how := range []string{"die", "panic", "exit"} {
			if how != "die" && name != "StartTask" && name != "TaskStats" {
				continue
			}
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, script{At: map[string]string{name: how}})
				instance := b.launch()
				_, err := instance.Start(t.Context(), &taskOfClient)
				if name != "StartTask" {
					must.NoError(t, err)
				}
				var inFlight sync.WaitGroup
				inFlight.Go(func() {
					if _, err := instance.Wait(t.Context(), taskOfClient.ID); driver.ClassOf(err) != driver.Gone {
						t.Errorf("the call in flight: %v", err)
					}
				})
				err = call(t.Context(), instance)
				must.Eq(t, driver.Gone, driver.ClassOf(err), must.Sprint(err))
				must.ErrorContains(t, err, name)
				inFlight.Wait()
				<-instance.Done()
				must.Eq(t, driver.Gone, driver.ClassOf(instance.Signal(t.Context(), "t", "SIGHUP")), must.Sprint("a later call"))
				must.False(t, b.alive(instance.Record().Process.PID))
			})
		}
	}
}

// everywhere is a script that misbehaves at all calls of tasks.
func everywhere(how string) script {
	s := script{At: map[string]string{}}
	for name := range methods() {
		s.At[name] = how
	}
	return s
}

// A plugin that hangs at a call does not hold the caller. It can be killed.
func TestDriver_hangsAtACall(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"hang", "freeze"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, everywhere(how))
			instance := b.launch()
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			var calls sync.WaitGroup
			for name, call := range methods() {
				calls.Go(func() {
					if err := call(ctx, instance); driver.ClassOf(err) != driver.Deadline || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			calls.Wait()
			must.NoError(t, instance.Kill(t.Context()))
		})
	}
}

// Errors of drivers have the classes that their codes, details and texts mean.
func TestDriver_classesOfErrors(t *testing.T) {
	t.Parallel()
	for how, class := range map[string]driver.Class{
		"recoverable":                      driver.Recoverable,
		"not recoverable":                  driver.Fatal,
		"some error":                       driver.Fatal,
		"unimplemented":                    driver.Unsupported,
		"task not found for given id":      driver.NotFound,
		"task does not exist: \"alloc/t\"": driver.NotFound,
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, everywhere(how))
			instance := b.launch()
			for name, call := range methods() {
				want := class
				if name == "StartTask" && want == driver.NotFound {
					want = driver.Fatal // the text is about something else
				}
				err := call(t.Context(), instance)
				must.Eq(t, want, driver.ClassOf(err), must.Sprint(err))
				must.ErrorContains(t, err, name+": ")
			}
			must.NoError(t, instance.Check(t.Context()), must.Sprint("an error ends nothing"))
		})
	}
}

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
	d := b.launch()
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
	output, err := d.Exec(ctx, "t", []string{"ls", "-l"}, time.Second)
	must.NoError(t, err)
	must.Eq(t, driver.Output{Stdout: []byte("ls -l"), Stderr: []byte("e"), Exit: driver.ExitResult{Code: 3}}, output)

	var usages []driver.Usage
	must.NoError(t, d.Stats(ctx, "t", time.Second, func(u driver.Usage) { usages = append(usages, u) }))
	must.Eq(t, []driver.Usage{{Time: time.Unix(5, 0).UTC(), CPUPercent: 12.5, RSS: 4096}}, usages)

	network, created, err := d.CreateNetwork(ctx, "a", "h")
	must.NoError(t, err)
	must.True(t, created)
	must.Eq(t, &driver.Network{Mode: driver.NetworkGroup, Path: "/net/a", Hostname: "h"}, network)
	must.NoError(t, d.DestroyNetwork(ctx, "a", network))

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
	must.Eq(t, []string{"network /net/a"}, b.lines("no"))

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
	d := b.launch()
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

// A plugin that sends a million messages of health is slowed down. The client receives few of them,
// in their order, and the other calls work.
func TestFingerprints_aMillion(t *testing.T) {
	t.Parallel()
	b := newBench(t, script{Fingerprints: 1_000_000})
	b.options.FingerprintInterval = 200 * time.Millisecond
	d := b.launch()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var counts []int
	began := time.Now()
	err := d.Fingerprints(ctx, func(f driver.Fingerprint) {
		var n int
		_, err := fmt.Sscan(f.Attributes["driver.scripted.count"], &n)
		must.NoError(t, err)
		counts = append(counts, n)
		took := time.Since(began)
		must.GreaterEq(t, time.Duration(len(counts)-1)*b.options.FingerprintInterval, took)
		must.Less(t, 100*(1+int(took/time.Second)), n, must.Sprint("100 in each second that has begun"))
		must.NoError(t, d.Check(t.Context()))
		if len(counts) == 12 {
			cancel()
		}
	})
	must.Error(t, err)
	must.Eq(t, 0, counts[0])
	for i := range counts[1:] {
		must.Less(t, counts[i+1], counts[i])
	}
}

// A stream of health that ends is an error, after the last message.
func TestFingerprints_theStreamEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t, script{EndOfStream: true})
	d := b.launch()
	reports := 0
	err := d.Fingerprints(t.Context(), func(driver.Fingerprint) { reports++ })
	must.ErrorContains(t, err, "the plugin has ended the stream")
	must.Eq(t, driver.Fatal, driver.ClassOf(err))
	must.Eq(t, 1, reports)
	must.NoError(t, d.Check(t.Context()))
}

// A driver may be healthy and fail at each start. The host reports both.
func TestDriver_healthyAndUseless(t *testing.T) {
	t.Parallel()
	b := newBench(t, script{At: map[string]string{"StartTask": "cannot create a cgroup"}, EndOfStream: true})
	d := b.launch()
	_ = d.Fingerprints(t.Context(), func(f driver.Fingerprint) { must.Eq(t, driver.Healthy, f.Health) })
	_, err := d.Start(t.Context(), &taskOfClient)
	must.EqError(t, err, "StartTask: cannot create a cgroup")
}

var _ driver.Driver = (*host.Instance)(nil)
