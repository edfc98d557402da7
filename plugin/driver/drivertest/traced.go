package drivertest

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// traced is a driver whose calls are noted.
type traced struct {
	driver.Driver
	trace  *conformance.Trace
	health *health
}

func (t traced) Encode(config []byte, lookup func(string) (string, bool)) ([]byte, error) {
	answer := t.trace.Begin("encode %s", config)
	encoded, err := t.Driver.Encode(config, lookup)
	answer(conformance.ErrorText(err))
	return encoded, err
}

func (t traced) Fingerprints(ctx context.Context, report func(driver.Fingerprint)) error {
	answer := t.trace.Begin("Fingerprint")
	err := t.Driver.Fingerprints(ctx, func(f driver.Fingerprint) {
		t.health.note(f)
		report(f)
	})
	answer(conformance.ErrorText(err))
	return err
}

func (t traced) Start(ctx context.Context, task *driver.TaskConfig) (driver.Handle, error) {
	answer := t.trace.Begin("StartTask")
	handle, err := t.Driver.Start(ctx, task)
	answer(conformance.ErrorText(err))
	return handle, err
}

func (t traced) Recover(ctx context.Context, id driver.TaskID, handle driver.Handle) error {
	answer := t.trace.Begin("RecoverTask")
	err := t.Driver.Recover(ctx, id, handle)
	answer(conformance.ErrorText(err))
	return err
}

func (t traced) Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	answer := t.trace.Begin("WaitTask")
	result, err := t.Driver.Wait(ctx, id)
	answer(answerText(result, err))
	return result, err
}

func (t traced) Stop(ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
	answer := t.trace.Begin("StopTask, timeout %v, signal %q", grace, signal)
	err := t.Driver.Stop(ctx, id, grace, signal)
	answer(conformance.ErrorText(err))
	return err
}

func (t traced) Destroy(ctx context.Context, id driver.TaskID, force bool) error {
	answer := t.trace.Begin("DestroyTask, force %t", force)
	err := t.Driver.Destroy(ctx, id, force)
	answer(conformance.ErrorText(err))
	return err
}

func (t traced) Inspect(ctx context.Context, id driver.TaskID) (driver.Status, error) {
	answer := t.trace.Begin("InspectTask")
	status, err := t.Driver.Inspect(ctx, id)
	switch {
	case err != nil:
		answer(conformance.ErrorText(err))
	case status.Exit != nil:
		answer(fmt.Sprintf("%v, %s", status.State, resultText(*status.Exit)))
	default:
		answer(status.State.String())
	}
	return status, err
}

func (t traced) Stats(ctx context.Context, id driver.TaskID, interval time.Duration, report func(driver.Usage)) error {
	answer := t.trace.Begin("TaskStats, interval %v", interval)
	err := t.Driver.Stats(ctx, id, interval, report)
	answer(conformance.ErrorText(err))
	return err
}

func (t traced) Signal(ctx context.Context, id driver.TaskID, signal string) error {
	answer := t.trace.Begin("SignalTask %q", signal)
	err := t.Driver.Signal(ctx, id, signal)
	answer(conformance.ErrorText(err))
	return err
}

func (t traced) ExecStreaming(ctx context.Context, id driver.TaskID, command []string, streams driver.ExecStreams) (driver.ExitResult, error) {
	answer := t.trace.Begin("ExecTaskStreaming %q, terminal %t", command, streams.TTY)
	exit, err := t.Driver.ExecStreaming(ctx, id, command, streams)
	answer(answerText(exit, err))
	return exit, err
}
