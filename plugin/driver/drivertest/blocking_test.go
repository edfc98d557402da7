package drivertest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// blockingDriver is a [driver.Driver] over a double of the same loop.
type blockingDriver struct {
	loop   *scripted.Loop
	driver *scripted.Driver
	encode func(config []byte, lookup func(string) (string, bool)) ([]byte, error)
}

var _ driver.Driver = (*blockingDriver)(nil)

// newBlockingDriver returns a driver whose calls block. encode is [driver.Driver.Encode]; nil returns
// configs unchanged.
func newBlockingDriver(loop *scripted.Loop, d *scripted.Driver, encode func([]byte, func(string) (string, bool)) ([]byte, error)) *blockingDriver {
	return &blockingDriver{loop: loop, driver: d, encode: encode}
}

// none is the value of a call that has only an error.
type none struct{}

// blockError is Block for a call that has only an error.
func blockError(ctx context.Context, loop *scripted.Loop, call string, begin func(reply func(error))) error {
	_, err := scripted.Block(ctx, loop, call, func(reply func(none, error)) {
		begin(func(err error) { reply(none{}, err) })
	})
	return err
}

// Capabilities is [driver.Driver.Capabilities].
func (b *blockingDriver) Capabilities() driver.Capabilities { return b.driver.Capabilities() }

// Encode is [driver.Driver.Encode].
func (b *blockingDriver) Encode(config []byte, lookup func(string) (string, bool)) ([]byte, error) {
	if b.encode == nil {
		return config, nil
	}
	return b.encode(config, lookup)
}

// Start is [driver.Driver.Start].
func (b *blockingDriver) Start(ctx context.Context, task *driver.TaskConfig) (driver.Handle, error) {
	copied := *task
	return scripted.Block(ctx, b.loop, scripted.CallStart, func(reply func(driver.Handle, error)) { b.driver.Start(&copied, reply) })
}

// Recover is [driver.Driver.Recover].
func (b *blockingDriver) Recover(ctx context.Context, id driver.TaskID, h driver.Handle) error {
	return blockError(ctx, b.loop, scripted.CallRecover, func(reply func(error)) { b.driver.Recover(id, h, reply) })
}

// Wait is [driver.Driver.Wait].
func (b *blockingDriver) Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	return scripted.Block(ctx, b.loop, scripted.CallWait, func(reply func(driver.ExitResult, error)) { b.driver.Wait(id, reply) })
}

// Stop is [driver.Driver.Stop].
func (b *blockingDriver) Stop(ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
	return blockError(ctx, b.loop, scripted.CallStop, func(reply func(error)) { b.driver.Stop(id, grace, signal, reply) })
}

// Destroy is [driver.Driver.Destroy].
func (b *blockingDriver) Destroy(ctx context.Context, id driver.TaskID, force bool) error {
	return blockError(ctx, b.loop, scripted.CallDestroy, func(reply func(error)) { b.driver.Destroy(id, force, reply) })
}

// Inspect is [driver.Driver.Inspect].
func (b *blockingDriver) Inspect(ctx context.Context, id driver.TaskID) (driver.Status, error) {
	return scripted.Block(ctx, b.loop, scripted.CallInspect, func(reply func(driver.Status, error)) { b.driver.Inspect(id, reply) })
}

// Signal is [driver.Driver.Signal].
func (b *blockingDriver) Signal(ctx context.Context, id driver.TaskID, signal string) error {
	return blockError(ctx, b.loop, scripted.CallSignal, func(reply func(error)) { b.driver.Signal(id, signal, reply) })
}

// ExecStreaming is [driver.Driver.ExecStreaming]. The command prints its words and reads nothing.
func (b *blockingDriver) ExecStreaming(ctx context.Context, id driver.TaskID, command []string, streams driver.ExecStreams) (driver.ExitResult, error) {
	exit, err := scripted.Block(ctx, b.loop, scripted.CallExec, func(reply func(driver.ExitResult, error)) { b.driver.Exec(id, command, reply) })
	if err == nil && streams.Stdout != nil {
		_, err = fmt.Fprintln(streams.Stdout, command)
	}
	return exit, err
}

// Fingerprints is [driver.Driver.Fingerprints].
func (b *blockingDriver) Fingerprints(ctx context.Context, report func(driver.Fingerprint)) error {
	return scripted.Follow(ctx, b.loop, scripted.CallFingerprint, report, b.driver.Fingerprints)
}

// Events is [driver.Driver.Events].
func (b *blockingDriver) Events(ctx context.Context, report func(driver.Event)) error {
	return scripted.Follow(ctx, b.loop, scripted.CallEvents, report, b.driver.Events)
}

// Stats is [driver.Driver.Stats].
func (b *blockingDriver) Stats(ctx context.Context, id driver.TaskID, interval time.Duration, report func(driver.Usage)) error {
	return scripted.Follow(ctx, b.loop, scripted.CallStats, report, func(report func(driver.Usage), ended func(error)) func() {
		return b.driver.Stats(id, interval, report, ended)
	})
}
