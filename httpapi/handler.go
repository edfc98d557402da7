package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"
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
	waiting *waiting
	// streams counts the event streams.
	streams *waiting
	// reaches counts the open requests to clients of nodes.
	reaches *waiting
	// greetings counts the callers that have yet to send their token in a first message.
	greetings *waiting
	// discards counts the bodies whose rest is discarded.
	discards *waiting
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
		backend: b, options: o, mux: http.NewServeMux(), waiting: newWaiting(o.MaxBlocking, o.MaxBlockingPerClient),
		streams: newWaiting(maxStreams, maxStreamsPerClient), reaches: newWaiting(maxReaches, maxReachesPerClient),
		greetings: newWaiting(maxGreetings, maxGreetingsPerClient), discards: newWaiting(maxDiscards, maxDiscardsPerClient),
	}
	h.route(routes())
	sameOrigin := http.NewCrossOriginProtection()
	sameOrigin.SetDenyHandler(h.observed(otherRoute, func(w http.ResponseWriter, _ *http.Request) {
		WriteError(w, http.StatusForbidden, "cross-origin request refused")
	}))
	h.clients = h.namedHere(sameOrigin.Handler(h.mux))
	return h, nil
}

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
		seen := &recorder{ResponseWriter: w, answer: allowed.answer}
		if r.Body == nil || r.Body == http.NoBody {
			handler(seen, r)
			h.options.Observe(route, seen.status(), time.Since(start))
			return
		}
		deadline := start.Add(allowed.body) // for the handler, or for the discarding of the rest
		_ = http.NewResponseController(w).SetReadDeadline(deadline)
		b := &body{ReadCloser: r.Body}
		r = r.WithContext(r.Context()) // a copy: net/http keeps the type of its own Body
		r.Body = b
		handler(seen, r)
		h.options.Observe(route, seen.status(), time.Since(start))
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

// recorder remembers the status code of an answer, and when it has to be taken.
type recorder struct {
	http.ResponseWriter
	answer time.Duration // the time for taking the answer
	code   int           // zero until the header is written
}

// WriteHeader remembers the first code that is not informational.
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
