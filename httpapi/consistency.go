package httpapi

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"net/http"

	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// forwardedHeader says which server has passed the request on, and for whom. It is
// passed on once: two servers that take each other for the leader would do so for ever.
const forwardedHeader = "X-Nodedrain-Forwarded"

// passedOn marks the context of a request that came by [Handler.Passed].
type passedOn struct{}

// passerOf is the header of a request that was passed on: anybody else can lie.
func passerOf(r *http.Request) string {
	if r.Context().Value(passedOn{}) == nil {
		return ""
	}
	return r.Header.Get(forwardedHeader)
}

// onLeader returns when this server may answer: what changes the state is the leader's
// to do, once its state shows what earlier leaders did, and so is a read that does not say
// stale, which shows every write that was acknowledged before it. The error wraps ErrNotLeader if another server may.
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

// elsewhere reports whether the error means that the leader would know better.
func (q *request) elsewhere(err error) bool {
	notHere := errors.Is(err, ErrNotLeader) || errors.Is(err, rules.ErrNotEnabled)
	return notHere && q.passer == ""
}

// forward has the leader answer.
func (q *request) forward() error {
	passed := q.Clone(q.Context())
	client := q.client()
	passed.Header.Set(forwardedHeader, q.backend.Peers.Name()+" "+hex.EncodeToString(client[:8]))
	passed.Body = io.NopCloser(bytes.NewReader(q.body))
	passed.ContentLength = int64(len(q.body))
	passed.TransferEncoding = nil
	q.backend.Peers.Forward(q.w, passed)
	return nil
}
