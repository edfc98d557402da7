package rawexec

import (
	"context"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/client/driver"
)

// events passes events to the streams of the host.
type events struct {
	mu      sync.Mutex
	streams map[chan driver.Event]struct{} // guarded by mu
}

// send passes an event to all streams. A stream that does not read loses it.
func (e *events) send(event driver.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for stream := range e.streams {
		select {
		case stream <- event:
		default:
		}
	}
}

// Events reports what happens to tasks beside their end, until the context ends.
func (d *Driver) Events(ctx context.Context, report func(driver.Event)) error {
	stream := make(chan driver.Event, 64)
	d.events.mu.Lock()
	if d.events.streams == nil {
		d.events.streams = map[chan driver.Event]struct{}{}
	}
	d.events.streams[stream] = struct{}{}
	d.events.mu.Unlock()
	defer func() {
		d.events.mu.Lock()
		defer d.events.mu.Unlock()
		delete(d.events.streams, stream)
	}()
	for {
		select {
		case event := <-stream:
			report(event)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
