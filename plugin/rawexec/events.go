package rawexec

import (
	"context"
	"slices"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// maxEvents is the largest number of events that wait for a stream. The oldest is dropped first.
const maxEvents = 64

// events sends events to the streams of the host. Events wait until the first stream opens.
type events struct {
	mu      sync.Mutex
	waiting []driver.Event                 // guarded by mu
	streams map[chan driver.Event]struct{} // guarded by mu
}

// send sends an event to all streams. If a stream is full, the event is lost for this stream.
func (e *events) send(event driver.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.streams) == 0 {
		e.waiting = append(e.waiting, event)
		e.waiting = slices.Delete(e.waiting, 0, max(0, len(e.waiting)-maxEvents))
	}
	for stream := range e.streams {
		select {
		case stream <- event:
		default:
		}
	}
}

// open returns a new stream, which starts with the waiting events.
func (e *events) open() chan driver.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	stream := make(chan driver.Event, maxEvents)
	for _, event := range e.waiting {
		select {
		case stream <- event:
		default:
		}
	}
	e.waiting = nil
	if e.streams == nil {
		e.streams = map[chan driver.Event]struct{}{}
	}
	e.streams[stream] = struct{}{}
	return stream
}

func (e *events) close(stream chan driver.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.streams, stream)
}

// Events reports events of tasks, except their ends, until the context ends.
func (d *Driver) Events(ctx context.Context, report func(driver.Event)) error {
	stream := d.events.open()
	defer d.events.close(stream)
	for {
		select {
		case event := <-stream:
			report(event)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
