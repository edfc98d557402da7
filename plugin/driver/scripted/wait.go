package scripted

import (
	"context"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

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
