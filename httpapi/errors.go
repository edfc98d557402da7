package httpapi

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
)

// errForbidden is the failure of a request without the right.
func errForbidden() error { return failure.New(http.StatusForbidden, "Permission denied") }

// errOtherSecret is the failure of a registration under the id of another client's node. The caller may
// register nodes.
func errOtherSecret() error {
	return failure.New(http.StatusForbidden, "the node is registered with another secret: an operator must purge it first")
}

// Texts for subjects that do not exist, as the reference has them.
const (
	nodeNotFound  = "node not found"
	drainNotFound = "drain not found"
	jobNotFound   = "job not found"
	allocNotFound = "alloc not found"
	evalNotFound  = "eval not found"

	volumeNotFound = "volume not found"
	claimNotFound  = "volume is not claimed on the node"
	pluginNotFound = "plugin not found"
)

// orNotFound replaces an error that wraps ErrNotFound by this code and text.
func orNotFound(err error, code int, text string) error {
	if errors.Is(err, ErrNotFound) {
		return failure.New(code, text)
	}
	return err
}

// asFailure returns the code and the text that a client gets for an error.
func asFailure(err error) *failure.Failure {
	if f, is := errors.AsType[*failure.Failure](err); is {
		return f
	}
	code, text := http.StatusInternalServerError, err.Error()
	switch {
	case errors.Is(err, ErrForbidden):
		code, text = http.StatusForbidden, "Permission denied"
	case errors.Is(err, ErrNotLeader), errors.Is(err, rules.ErrNotEnabled), errors.Is(err, rules.ErrAbandoned):
		text = noLeader
	case errors.Is(err, ErrInUse):
		code = http.StatusConflict
	case errors.Is(err, ErrBadSnapshot):
		code = http.StatusBadRequest
	case errors.Is(err, ErrTooLarge):
		code = http.StatusRequestEntityTooLarge
	case errors.Is(err, ErrNotFound):
		code = http.StatusNotFound
	case errors.Is(err, cluster.ErrModifyIndex): // the reference's command compares the text
		_, after, _ := strings.Cut(err.Error(), cluster.ErrModifyIndex.Error())
		code, text = http.StatusConflict, cluster.ErrModifyIndex.Error()+after
	case errors.Is(err, ErrNodeDraining):
		text = ErrNodeDraining.Error()
	case errors.Is(err, ErrUnavailable), errors.Is(err, rules.ErrNotDraining):
		code = http.StatusServiceUnavailable
	}
	return &failure.Failure{Code: code, Text: text}
}

// noLeader is the text of a failure without a leader. Clients compare it.
const noLeader = "No cluster leader"

// NoLeaderText is the text of a failure without a leader, with the reason if this server has it.
func NoLeaderText(p Peers) string {
	if trouble := p.Trouble(); trouble != "" {
		return noLeader + ": " + trouble
	}
	return noLeader
}

// fail answers with an error. An error of the server is logged, unless the client has disconnected.
func (q *request) fail(err error) {
	f := asFailure(err)
	if f.Text == noLeader {
		f.Text = NoLeaderText(q.backend.Peers)
	}
	if f.Code >= 500 && q.blameless(err) {
		q.options.Logger.Warn("request failed", "route", q.route.method+" "+q.route.path, "code", f.Code, "error", err)
	}
	if f.Code == http.StatusServiceUnavailable {
		q.w.Header().Set("Retry-After", "1")
	}
	WriteError(q.w, f.Code, f.Text)
}

// blameless reports whether the client is still there and its request was in order: the
// reference answers some that are not with 500.
func (q *request) blameless(err error) bool {
	_, refused := errors.AsType[*failure.Failure](err)
	return !refused && !errors.Is(err, ErrNodeDraining) && q.Context().Err() == nil
}

// maxErrorText bounds the text of an error, in bytes.
const maxErrorText = 4 << 10

// WriteError answers with a bare message, as the reference does. Code that answers in place of a
// handler uses it, such as [Peers] without a leader. It cuts a long text, which may repeat the
// request.
func WriteError(w http.ResponseWriter, code int, text string) {
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", strconv.Itoa(len(text))) // the end, if the connection stays open for the rest of a body
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text) // the client may have disconnected
}
