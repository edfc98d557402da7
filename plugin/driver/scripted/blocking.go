package scripted

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Blocking is a [driver.Driver] over a [Driver] of the same loop.
type Blocking struct {
	loop   *Loop
	driver *Driver
	encode func(config []byte, lookup func(string) (string, bool)) ([]byte, error)
}

var _ driver.Driver = (*Blocking)(nil)

// NewBlocking returns a driver whose calls block. encode is [driver.Driver.Encode]; nil returns
// configs unchanged.
func NewBlocking(loop *Loop, d *Driver, encode func([]byte, func(string) (string, bool)) ([]byte, error)) *Blocking {
	return &Blocking{loop: loop, driver: d, encode: encode}
}

// answer is the reply to a call.
type answer[T any] struct {
	value T
	err   error
}

// Block begins a call, and waits for its reply or for the end of the context.
func Block[T any](ctx context.Context, loop *Loop, call string, begin func(reply func(T, error))) (T, error) {
	replied := make(chan answer[T], 1)
	loop.Do(func() { begin(func(v T, err error) { replied <- answer[T]{v, err} }) })
	select {
	case a := <-replied:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, callError(call, driver.Deadline, ctx.Err())
	}
}

// none is the value of a call that has only an error.
type none struct{}

// blockError is Block for a call that has only an error.
func blockError(ctx context.Context, loop *Loop, call string, begin func(reply func(error))) error {
	_, err := Block(ctx, loop, call, func(reply func(none, error)) {
		begin(func(err error) { reply(none{}, err) })
	})
	return err
}

// Capabilities is [driver.Driver.Capabilities].
func (b *Blocking) Capabilities() driver.Capabilities { return b.driver.Capabilities() }

// Encode is [driver.Driver.Encode].
func (b *Blocking) Encode(config []byte, lookup func(string) (string, bool)) ([]byte, error) {
	if b.encode == nil {
		return config, nil
	}
	return b.encode(config, lookup)
}

// Start is [driver.Driver.Start].
func (b *Blocking) Start(ctx context.Context, task *driver.TaskConfig) (driver.Handle, error) {
	copied := *task
	return Block(ctx, b.loop, CallStart, func(reply func(driver.Handle, error)) { b.driver.Start(&copied, reply) })
}

// Recover is [driver.Driver.Recover].
func (b *Blocking) Recover(ctx context.Context, id driver.TaskID, h driver.Handle) error {
	return blockError(ctx, b.loop, CallRecover, func(reply func(error)) { b.driver.Recover(id, h, reply) })
}

// Wait is [driver.Driver.Wait].
func (b *Blocking) Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	return Block(ctx, b.loop, CallWait, func(reply func(driver.ExitResult, error)) { b.driver.Wait(id, reply) })
}

// Stop is [driver.Driver.Stop].
func (b *Blocking) Stop(ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
	return blockError(ctx, b.loop, CallStop, func(reply func(error)) { b.driver.Stop(id, grace, signal, reply) })
}

// Destroy is [driver.Driver.Destroy].
func (b *Blocking) Destroy(ctx context.Context, id driver.TaskID, force bool) error {
	return blockError(ctx, b.loop, CallDestroy, func(reply func(error)) { b.driver.Destroy(id, force, reply) })
}

// Inspect is [driver.Driver.Inspect].
func (b *Blocking) Inspect(ctx context.Context, id driver.TaskID) (driver.Status, error) {
	return Block(ctx, b.loop, CallInspect, func(reply func(driver.Status, error)) { b.driver.Inspect(id, reply) })
}

// Signal is [driver.Driver.Signal].
func (b *Blocking) Signal(ctx context.Context, id driver.TaskID, signal string) error {
	return blockError(ctx, b.loop, CallSignal, func(reply func(error)) { b.driver.Signal(id, signal, reply) })
}

// ExecStreaming is [driver.Driver.ExecStreaming]. The command prints its words and reads nothing.
func (b *Blocking) ExecStreaming(ctx context.Context, id driver.TaskID, command []string, streams driver.ExecStreams) (driver.ExitResult, error) {
	exit, err := Block(ctx, b.loop, CallExec, func(reply func(driver.ExitResult, error)) { b.driver.Exec(id, command, reply) })
	if err == nil && streams.Stdout != nil {
		_, err = fmt.Fprintln(streams.Stdout, command)
	}
	return exit, err
}

// Fingerprints is [driver.Driver.Fingerprints].
func (b *Blocking) Fingerprints(ctx context.Context, report func(driver.Fingerprint)) error {
	return Follow(ctx, b.loop, CallFingerprint, report, b.driver.Fingerprints)
}

// Events is [driver.Driver.Events].
func (b *Blocking) Events(ctx context.Context, report func(driver.Event)) error {
	return Follow(ctx, b.loop, CallEvents, report, b.driver.Events)
}

// Stats is [driver.Driver.Stats].
func (b *Blocking) Stats(ctx context.Context, id driver.TaskID, interval time.Duration, report func(driver.Usage)) error {
	return Follow(ctx, b.loop, CallStats, report, func(report func(driver.Usage), ended func(error)) func() {
		return b.driver.Stats(id, interval, report, ended)
	})
}

// Follow opens a stream, and passes its reports on outside of the loop until the stream or the
// context ends.
func Follow[T any](ctx context.Context, loop *Loop, call string, report func(T), open func(report func(T), ended func(error)) func()) error {
	reports := &mailbox[T]{wake: make(chan struct{}, 1)}
	ended := make(chan error, 1)
	var cancel func()
	loop.Do(func() { cancel = open(reports.put, func(err error) { ended <- err }) })
	defer loop.Do(func() { cancel() })
	for {
		select {
		case <-reports.wake:
		case err := <-ended:
			reports.drain(report)
			return err
		case <-ctx.Done():
			return callError(call, driver.Deadline, ctx.Err())
		}
		reports.drain(report)
	}
}

// mailbox carries reports out of the loop, which must not wait for their reader.
type mailbox[T any] struct {
	mu    sync.Mutex
	items []T
	wake  chan struct{}
}

func (b *mailbox[T]) put(item T) {
	b.mu.Lock()
	b.items = append(b.items, item)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *mailbox[T]) drain(report func(T)) {
	b.mu.Lock()
	items := b.items
	b.items = nil
	b.mu.Unlock()
	for _, item := range items {
		report(item)
	}
}
