package httpapi

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// Bounds on the discarding of bodies. A client that sends a whole body before it reads gets the answer only
// if the server receives the rest of the body: a connection that is closed before is reset, and the reset
// deletes the answer at the client. net/http discards 256 KiB, which is less than a body above a limit has.
const (
	// discardBytes is the most of one body that the server discards after an answer.
	discardBytes = 64 << 20
	// discardTime is the longest time for that. The time limit of the body applies too.
	discardTime = 5 * time.Second
	// maxDiscards bounds the bodies that a server discards at a time, maxDiscardsPerClient those of one
	// address. Other connections are closed with the answer.
	maxDiscards          = 64
	maxDiscardsPerClient = 16
)

// body is the body of a request. The handler reads it, or a forwarder of the handler.
type body struct {
	io.ReadCloser
	// ended: a read has returned an error, such as the end of the body.
	ended atomic.Bool
}

// Read reads the body.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.ended.Store(true)
	}
	return n, err
}

// Close does nothing: net/http closes the body after the handler. A forwarder closes it before.
func (b *body) Close() error { return nil }

// discard sends the answer, and then reads the rest of a body that the handler has not read. If it has not
// read the end of the body at the deadline or at a bound, net/http closes the connection.
func (h *Handler) discard(w http.ResponseWriter, r *http.Request, b *body, deadline time.Time) {
	if b.ended.Load() || r.ProtoMajor > 1 { // HTTP/2 can end a request without its connection
		return
	}
	client := addressOf(r)
	if !h.discards.begin(client) {
		return
	}
	defer h.discards.end(client)
	controller := http.NewResponseController(w)
	// Flush also discards 256 KiB. It returns an error if the connection belongs to another protocol now.
	err := errors.Join(controller.Flush(), controller.SetReadDeadline(earlier(deadline, time.Now().Add(discardTime))))
	if err == nil {
		_, _ = io.CopyN(io.Discard, b, discardBytes) // the answer is sent, and net/http sees the same error
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
