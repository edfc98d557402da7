package httpapi

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"net/http"

	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

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

// forward sends the request to the leader.
func (q *request) forward() error {
	passed := q.Clone(q.Context())
	client := q.client()
	passed.Header.Set(forwardedHeader, q.backend.Peers.Name()+" "+hex.EncodeToString(client[:8]))
	if !q.route.bulk {
		passed.Body = io.NopCloser(bytes.NewReader(q.body))
		passed.ContentLength = int64(len(q.body))
		passed.TransferEncoding = nil
	}
	q.backend.Peers.Forward(q.w, passed)
	return nil
}
