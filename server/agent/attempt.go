package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
)

// answerTimeout bounds the time until the leader begins its answer, except for blocking queries and
// snapshots.
const answerTimeout = 30 * time.Second

// Reasons to cancel an attempt. A leader that lost its power or its network does not close its
// connections, so the attempt would wait for ever.
var (
	errLeaderChanged = errors.New("another server leads now, or no server does")
	errNoAnswer      = fmt.Errorf("no answer for %s", answerTimeout)
)

// attempt sends the request to a leader. It cancels the request when the leader changes and when the
// answer does not begin in time. The error wraps errDial if the request was not sent. attempt owns a
// goroutine until the caller closes the answer's body.
func (p peers) attempt(r *http.Request, leader string) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	var reached atomic.Bool // other goroutines make the connections
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { reached.Store(true) }})
	sent := r.WithContext(ctx)
	target := *r.URL
	target.Host = leader
	sent.URL = &target

	watcherDone := make(chan struct{})
	go func() {
		defer close(watcherDone)
		cancel(p.awaitLeaderChange(ctx, leader))
	}()
	stop := func() {
		cancel(nil)
		<-watcherDone
	}
	timer := time.AfterFunc(answerTimeout, func() { cancel(errNoAnswer) })
	if isBlocking(r) || r.URL.Path == httpapi.SnapshotPath {
		timer.Stop()
	}
	response, err := p.agent.transport.RoundTrip(sent)
	timer.Stop()
	if err == nil {
		response.Body = &body{ReadCloser: response.Body, onClose: stop}
		return response, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	stop()
	if !reached.Load() && !errors.Is(err, errDial) {
		err = fmt.Errorf("%w: %w", errDial, err)
	}
	return nil, err
}

// awaitLeaderChange waits until this server has another leader, or none for
// [Config].LeaderWait, and returns errLeaderChanged. It returns nil when the context ends.
func (p peers) awaitLeaderChange(ctx context.Context, leader string) error {
	for {
		changed := p.agent.leaders.changed()
		if now := p.awaitLeader(ctx); ctx.Err() != nil {
			return nil
		} else if now != leader {
			return errLeaderChanged
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// body is the body of an answer. Close calls onClose.
type body struct {
	io.ReadCloser
	onClose func()
}

// Close closes the body.
func (b *body) Close() error {
	defer b.onClose()
	return b.ReadCloser.Close()
}

// isRead reports whether the request only reads, so that it can be sent twice.
func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// isBlocking reports whether the request is a blocking query: the answer may wait for a change.
func isBlocking(r *http.Request) bool {
	index := r.URL.Query().Get("index")
	return isRead(r) && index != "" && index != "0"
}
