package drivertest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/driver"
)

// trace notes the calls of one test, so that the author of a driver sees what was done.
type trace struct {
	began time.Time
	mu    sync.Mutex
	calls []noted // guarded by mu
	text  string  // guarded by mu; the end of the driver's log
}

// keep notes the end of the driver's log.
func (t *trace) keep(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = text
}

// logged returns the end of the driver's log.
func (t *trace) logged() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text
}

// noted is a call with its answer.
type noted struct {
	at, took     time.Duration
	call, answer string
}

// mostCalls bounds the calls that a trace keeps.
const mostCalls = 100

// begin notes a call. The function that it returns notes the answer.
func (t *trace) begin(call string, args ...any) func(answer string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.calls)
	if n == mostCalls {
		return func(string) {}
	}
	t.calls = append(t.calls, noted{at: time.Since(t.began), call: fmt.Sprintf(call, args...), answer: "no answer yet"})
	return func(answer string) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.calls[n].answer, t.calls[n].took = answer, time.Since(t.began)-t.calls[n].at
	}
}

// lines describes the calls in their order.
func (t *trace) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for _, n := range t.calls {
		line := fmt.Sprintf("at %v: %s: %s", rounded(n.at), n.call, n.answer)
		if took := rounded(n.took); took > 0 {
			line += fmt.Sprintf(", after %v", took)
		}
		lines = append(lines, line)
	}
	return lines
}

// log writes the calls to the log of a test.
func (t *trace) log(to T) {
	if lines := t.lines(); len(lines) > 0 {
		to.Logf("calls:\n\t%s", strings.Join(lines, "\n\t"))
	}
	if text := t.logged(); text != "" {
		to.Logf("the log of the driver:\n%s", text)
	}
}

// traced is a driver whose calls are noted.
type traced struct {
	driver.Driver
	trace *trace
}

func (t traced) Encode(config []byte, lookup func(string) (string, bool)) ([]byte, error) {
	answer := t.trace.begin("encode %s", config)
	encoded, err := t.Driver.Encode(config, lookup)
	answer(errorText(err))
	return encoded, err
}

func (t traced) Fingerprints(ctx context.Context, report func(driver.Fingerprint)) error {
	answer := t.trace.begin("Fingerprint")
	err := t.Driver.Fingerprints(ctx, report)
	answer(errorText(err))
	return err
}

func (t traced) Start(ctx context.Context, task *driver.TaskConfig) (driver.Handle, error) {
	answer := t.trace.begin("StartTask")
	handle, err := t.Driver.Start(ctx, task)
	answer(errorText(err))
	return handle, err
}

func (t traced) Recover(ctx context.Context, id driver.TaskID, handle driver.Handle) error {
	answer := t.trace.begin("RecoverTask")
	err := t.Driver.Recover(ctx, id, handle)
	answer(errorText(err))
	return err
}

func (t traced) Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	answer := t.trace.begin("WaitTask")
	result, err := t.Driver.Wait(ctx, id)
	answer(answerOf(result, err))
	return result, err
}

func (t traced) Stop(ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
	answer := t.trace.begin("StopTask, timeout %v, signal %q", grace, signal)
	err := t.Driver.Stop(ctx, id, grace, signal)
	answer(errorText(err))
	return err
}

func (t traced) Destroy(ctx context.Context, id driver.TaskID, force bool) error {
	answer := t.trace.begin("DestroyTask, force %t", force)
	err := t.Driver.Destroy(ctx, id, force)
	answer(errorText(err))
	return err
}

func (t traced) Inspect(ctx context.Context, id driver.TaskID) (driver.Status, error) {
	answer := t.trace.begin("InspectTask")
	status, err := t.Driver.Inspect(ctx, id)
	switch {
	case err != nil:
		answer(errorText(err))
	case status.Exit != nil:
		answer(fmt.Sprintf("%v, %s", status.State, resultText(*status.Exit)))
	default:
		answer(status.State.String())
	}
	return status, err
}

func (t traced) Signal(ctx context.Context, id driver.TaskID, signal string) error {
	answer := t.trace.begin("SignalTask %q", signal)
	err := t.Driver.Signal(ctx, id, signal)
	answer(errorText(err))
	return err
}

func (t traced) Exec(ctx context.Context, id driver.TaskID, command []string, timeout time.Duration) (driver.Output, error) {
	answer := t.trace.begin("ExecTask %q", command)
	out, err := t.Driver.Exec(ctx, id, command, timeout)
	answer(answerOf(out.Exit, err))
	return out, err
}

func (t traced) ExecStreaming(ctx context.Context, id driver.TaskID, command []string, streams driver.ExecStreams) (driver.ExitResult, error) {
	answer := t.trace.begin("ExecTaskStreaming %q, terminal %t", command, streams.TTY)
	exit, err := t.Driver.ExecStreaming(ctx, id, command, streams)
	answer(answerOf(exit, err))
	return exit, err
}

func (t traced) CreateNetwork(ctx context.Context, alloc, hostname string) (*driver.Network, bool, error) {
	answer := t.trace.begin("CreateNetwork")
	network, created, err := t.Driver.CreateNetwork(ctx, alloc, hostname)
	answer(errorText(err))
	return network, created, err
}
