package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/datamove"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/slots"
)

// Handler answers the API of one server. Build it with [NewHandler]. It is safe for
// concurrent use, and starts no goroutine.
type Handler struct {
	backend Backend
	options Options
	mux     *http.ServeMux
	// clients is the mux, for requests of the same origin.
	clients http.Handler
	// waiting counts the readers that wait.
	waiting *slots.Slots
	// streams counts the event streams.
	streams *slots.Slots
	// reaches counts the open requests to clients of nodes.
	reaches *slots.Slots
	// greetings counts the callers that have yet to send their token in a first message.
	greetings *slots.Slots
	// dataRequests counts the open requests for the data of ephemeral disks, and copies are the copies.
	dataRequests *slots.Slots
	copies       *datamove.Copies
	// drainPlans counts the plans of drains that are made or wait. The one that is made has drainPlanTurn.
	drainPlans    *slots.Slots
	drainPlanTurn chan struct{}
	// discards counts the bodies whose rest is discarded.
	discards *slots.Slots
}

// NewHandler returns the API of a server. A backend or options that cannot work are
// refused, with the field named.
func NewHandler(b Backend, o Options) (*Handler, error) {
	switch {
	case b.Reader == nil:
		return nil, errors.New("httpapi: Backend.Reader is nil")
	case b.Writer == nil:
		return nil, errors.New("httpapi: Backend.Writer is nil")
	case b.Peers == nil:
		return nil, errors.New("httpapi: Backend.Peers is nil")
	case b.Drains == nil:
		return nil, errors.New("httpapi: Backend.Drains is nil")
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	h := &Handler{
		backend: b, options: o, mux: http.NewServeMux(), waiting: slots.New(o.MaxBlocking, o.MaxBlockingPerClient),
		streams: slots.New(maxStreams, maxStreamsPerClient), reaches: slots.New(maxReaches, maxReachesPerClient),
		drainPlans: slots.New(maxDrainPlans, maxDrainPlansPerClient), drainPlanTurn: make(chan struct{}, 1),
		greetings: slots.New(maxGreetings, maxGreetingsPerClient), discards: slots.New(maxDiscards, maxDiscardsPerClient),
		dataRequests: slots.New(maxDataRequests, maxDataRequestsPerClient), copies: datamove.NewCopies(o.MaxDataCopies, o.DataRate),
	}
	h.route(routes())
	sameOrigin := http.NewCrossOriginProtection()
	sameOrigin.SetDenyHandler(h.observed(otherRoute, func(w http.ResponseWriter, _ *http.Request) {
		WriteError(w, http.StatusForbidden, "cross-origin request refused")
	}))
	h.clients = h.namedHere(sameOrigin.Handler(h.mux))
	return h, nil
}

// Waiting returns the number of readers that wait for a change.
func (h *Handler) Waiting() int { return h.waiting.Taken() }

// DataCopies counts the copies of the data of ephemeral disks.
func (h *Handler) DataCopies() datamove.Counts { return h.copies.Counts() }

// ServeHTTP answers one request of a client. It refuses a browser request from another site: the
// browser may reach servers that the site cannot. Without access control it also refuses a request
// for another host. It ignores the forwarding header.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.clients.ServeHTTP(w, r) }

// Forwarded is the handler for requests that other servers forward. It trusts their forwarding header,
// so only servers may reach it.
func (h *Handler) Forwarded() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), forwardedKey{}, true)))
	})
}

// observed reports each answer of a handler to the observer.
func (h *Handler) observed(route string, handler http.HandlerFunc) http.HandlerFunc {
	return h.observedWithin(times{body: bodyTime, answer: answerTime}, route, handler)
}

// observedWithin sets the time limits, too.
func (h *Handler) observedWithin(allowed times, route string, handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		recorded := &recorder{ResponseWriter: w, answer: allowed.answer}
		if r.Body == nil || r.Body == http.NoBody {
			handler(recorded, r)
			h.options.Observe(route, recorded.status(), time.Since(start))
			return
		}
		deadline := start.Add(allowed.body) // for the handler, or for the discarding of the rest
		_ = http.NewResponseController(w).SetReadDeadline(deadline)
		b := &body{ReadCloser: r.Body}
		r = r.WithContext(r.Context()) // a copy: net/http keeps the type of its own Body
		r.Body = b
		handler(recorded, r)
		h.options.Observe(route, recorded.status(), time.Since(start))
		h.discard(w, r, b, deadline)
	}
}

// times are the time limits of a request: for its body, and for taking the answer.
type times struct{ body, answer time.Duration }

// Time limits for a client, which holds memory and a connection meanwhile.
const (
	// bodyTime is for the body of a request.
	bodyTime = 30 * time.Second
	// answerTime is for taking an answer, from when it is there.
	answerTime = time.Minute
)

// beginAnswer sets the deadline by which the client must have read the answer.
func beginAnswer(w http.ResponseWriter, within time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(within)) // a recorder of a test has none
}

// recorder keeps the status code of an answer, and when it has to be taken.
type recorder struct {
	http.ResponseWriter
	answer time.Duration // the time for taking the answer
	code   int           // zero until the header is written
}

// WriteHeader keeps the first code that is not informational.
func (r *recorder) WriteHeader(code int) {
	if r.code == 0 && code >= 200 {
		r.code = code
		beginAnswer(r.ResponseWriter, r.answer)
	}
	r.ResponseWriter.WriteHeader(code)
}

// Unwrap lets a forwarder flush.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) status() int {
	if r.code == 0 {
		return http.StatusOK
	}
	return r.code
}

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
	if !h.discards.Take(client) {
		return
	}
	defer h.discards.Free(client)
	controller := http.NewResponseController(w)
	// Flush also discards 256 KiB. It returns an error if the connection belongs to another protocol now.
	err := errors.Join(controller.Flush(), controller.SetReadDeadline(earlier(deadline, time.Now().Add(discardTime))))
	if err == nil {
		_, _ = io.CopyN(io.Discard, b, discardBytes) // the answer is sent, and net/http gets the same error
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
