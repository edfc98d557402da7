package httpapi

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
)

// request is a request on its way to its answer. It belongs to one goroutine.
type request struct {
	*http.Request
	handler *Handler
	backend *Backend // of the handler
	options *Options // of the handler
	route   route
	w       http.ResponseWriter
	// forwarder is the forwarding header: the server that forwarded the request and the client, or
	// empty.
	forwarder string
	// params are the query parameters of a read; zero for a write.
	params params
	// body is the whole body, or empty.
	body []byte
	// author made the request; set by authorize.
	author Identity
	// byNode: the token is the secret of the node in the path; set by authorize.
	byNode bool
	// next is where the next page begins, or empty.
	next string
}

// serve answers requests of a route.
func (h *Handler) serve(r route) http.HandlerFunc {
	return func(w http.ResponseWriter, hr *http.Request) {
		q := &request{Request: hr, handler: h, backend: &h.backend, options: &h.options, route: r, w: w, forwarder: forwarderOf(hr)}
		if err := q.serve(); err != nil {
			q.fail(err)
		}
	}
}

// serve answers the request, or forwards it to the leader. The receiving server checks the request
// itself and that its token is known. The answering server checks everything that depends on the
// state.
func (q *request) serve() error {
	if err := q.readParams(); err != nil {
		return err
	}
	if err := checkOrigin(q); err != nil {
		return err
	}
	if q.route.greets && greets(q.Request) {
		q.route.needs = needsNothing
	}
	if err := q.admit(); err != nil {
		return err
	}
	if err := q.readBody(); err != nil {
		return err
	}
	if q.params.index > 0 {
		client := q.client()
		if !q.handler.waiting.Take(client) {
			return failure.New(http.StatusTooManyRequests, "too many readers are waiting")
		}
		defer q.handler.waiting.Free(client)
	}
	err := q.tryAnswer()
	switch {
	case !q.needsLeader(err):
		return err
	case q.forward():
		return nil
	}
	return q.tryAnswer() // This server has become the leader.
}

// tryAnswer answers the request, or returns an error that wraps ErrNotLeader before it has written anything.
func (q *request) tryAnswer() error {
	err := q.onLeader()
	if err == nil {
		err = q.authorize()
	}
	if err == nil {
		err = q.route.answer(q)
	}
	return err
}

// readBody reads the body, so that the request can still be forwarded. If the route ignores the
// body, net/http discards it. A file is left to the handler, or to the leader.
func (q *request) readBody() error {
	most := min(q.route.body, q.options.MaxBody)
	if most == 0 || q.route.bulk {
		return nil
	}
	tooLarge := failure.Newf(http.StatusRequestEntityTooLarge, "request body is larger than %d bytes", most)
	if q.ContentLength > most {
		return tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(q.w, q.Body, most))
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return tooLarge
	}
	if err != nil {
		return failure.New(http.StatusBadRequest, "reading the request body: "+err.Error())
	}
	q.body = body
	_ = http.NewResponseController(q.w).SetReadDeadline(time.Time{}) // or the wait for a change would end with it
	return nil
}

// nodeID is the node that the path names.
func (q *request) nodeID() cluster.NodeID { return cluster.NodeID(q.PathValue("id")) }

// state is the newest state.
func (q *request) state() (State, error) {
	var newest State
	err := q.readAgain(q.Context(), 0, func(s State) (uint64, error) {
		newest = s
		return s.Index(), nil
	})
	return newest, err
}

// forwardedHeader names the server that forwarded the request, and the client. A request is
// forwarded once: two servers that take each other for the leader would loop for ever.
const forwardedHeader = "X-Nodedrain-Forwarded"

// forwardedKey marks the context of a request that arrived at [Handler.Forwarded].
type forwardedKey struct{}

// forwarderOf is the forwarding header of a request from another server. A client's header is ignored:
// it could lie.
func forwarderOf(r *http.Request) string {
	if r.Context().Value(forwardedKey{}) == nil {
		return ""
	}
	return r.Header.Get(forwardedHeader)
}

// onLeader returns when this server may answer. The leader makes changes, once its state shows the
// entries of earlier leaders, and answers consistent reads, which show every write that was
// acknowledged before. Any server answers stale reads. The error wraps ErrNotLeader if another
// server may answer.
func (q *request) onLeader() error {
	switch {
	case q.route.local, q.params.stale:
		return nil
	case !q.backend.Peers.Leads():
		return ErrNotLeader
	case q.route.reads:
		return q.backend.Reader.Consistent(q.Context())
	}
	return q.backend.Reader.CaughtUp(q.Context())
}

// needsLeader reports whether the leader must answer because this server could not.
func (q *request) needsLeader(err error) bool {
	notHere := errors.Is(err, ErrNotLeader) || errors.Is(err, rules.ErrNotEnabled)
	return notHere && q.forwarder == ""
}

// forward sends the request to the leader, and reports false if this server has become the leader.
func (q *request) forward() bool { return q.backend.Peers.Forward(q.w, markedRequest(q.Context(), q)) }

// markedRequest returns the request for another server, with the forwarding header.
func markedRequest(ctx context.Context, q *request) *http.Request {
	marked := q.Clone(ctx)
	client := q.client()
	marked.Header.Set(forwardedHeader, q.backend.Peers.Name()+" "+hex.EncodeToString(client[:8]))
	if !q.route.bulk {
		marked.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(q.body)), nil }
		marked.Body = io.NopCloser(bytes.NewReader(q.body))
		marked.ContentLength = int64(len(q.body))
		marked.TransferEncoding = nil
	}
	return marked
}
