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
	h := &Handler{backend: b, options: o, mux: http.NewServeMux(), waiting: newWaiting(o.MaxBlocking, o.MaxBlockingPerClient)}
	h.route(routes())
	sameOrigin := http.NewCrossOriginProtection()
	sameOrigin.SetDenyHandler(h.observed(otherRoute, func(w http.ResponseWriter, _ *http.Request) {
		WriteError(w, http.StatusForbidden, "cross-origin request refused")
	}))
	h.clients = sameOrigin.Handler(h.mux)
	return h, nil
}

// ServeHTTP answers one request of a client. A browser that asks in the name of another
// site is refused: it may be where others cannot reach the server. That a server has
// passed the request on is not believed.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.clients.ServeHTTP(w, r) }

// Passed is the handler for what other servers pass on, who are believed that they did,
// and for whom. Let nobody else reach it.
func (h *Handler) Passed() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), passedOn{}, true)))
	})
}

// observed tells the observer of what a handler answers.
func (h *Handler) observed(route string, handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		seen := &recorder{ResponseWriter: w}
		if r.Body != nil && r.Body != http.NoBody { // whoever reads it, or throws it away
			_ = http.NewResponseController(w).SetReadDeadline(start.Add(bodyTime))
		}
		handler(seen, r)
		h.options.Observe(route, seen.status(), time.Since(start))
	}
}

// How long a client may take, who holds memory and a connection meanwhile.
const (
	// bodyTime is for the body of a request.
	bodyTime = 30 * time.Second
	// answerTime is for taking an answer, from when it is there.
	answerTime = time.Minute
)

// beginAnswer has the answer that now begins be taken in time.
func beginAnswer(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // a recorder of a test has none
}

// recorder remembers the status code of an answer, and when it has to be taken.
type recorder struct {
	http.ResponseWriter
	code int // zero until the header is written
}

// WriteHeader remembers the first code that is not informational: the answer's.
func (r *recorder) WriteHeader(code int) {
	if r.code == 0 && code >= 200 {
		r.code = code
		beginAnswer(r.ResponseWriter)
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
