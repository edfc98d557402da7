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
)

// answerTimeout bounds the time until the leader begins its answer, except for blocking queries.
const answerTimeout = 30 * time.Second

// Reasons to give up an attempt. A leader that lost its power or its network does not close its
// connections.
var (
	errDeposed = errors.New("another server leads now, or none does")
	errSilent  = fmt.Errorf("no answer for %s", answerTimeout)
)

// attempt sends the request to a leader. It gives up when the server knows that this leader leads
// no more, and when the answer does not begin in time. The error wraps errDial if the request was
// not sent. It owns a goroutine until the answer's body is closed.
func (p peers) attempt(r *http.Request, leader string) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	var reached atomic.Bool // its connections are made in other goroutines
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { reached.Store(true) }})
	asked := r.WithContext(ctx)
	at := *r.URL
	at.Host = leader
	asked.URL = &at

	watched := make(chan struct{})
	go func() {
		defer close(watched)
		cancel(p.deposed(ctx, leader))
	}()
	end := func() {
		cancel(nil)
		<-watched
	}
	timer := time.AfterFunc(answerTimeout, func() { cancel(errSilent) })
	if waits(r) {
		timer.Stop()
	}
	response, err := p.agent.transport.RoundTrip(asked)
	timer.Stop()
	if err == nil {
		response.Body = &body{ReadCloser: response.Body, end: end}
		return response, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	end()
	if !reached.Load() && !errors.Is(err, errDial) {
		err = fmt.Errorf("%w: %w", errDial, err)
	}
	return nil, err
}

// deposed returns errDeposed when another server leads, or none has for some time, and
// nil when the context ends.
func (p peers) deposed(ctx context.Context, leader string) error {
	for {
		changed := p.agent.leaders.changed()
		if now := p.awaitLeader(ctx); ctx.Err() != nil {
			return nil
		} else if now != leader {
			return errDeposed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// body is the body of an answer; end is called when it is closed.
type body struct {
	io.ReadCloser
	end func()
}

// Close closes the body.
func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// reads reports whether the request can be made twice.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// waits reports whether the request may be answered only when there is news.
func waits(r *http.Request) bool {
	index := r.URL.Query().Get("index")
	return reads(r) && index != "" && index != "0"
}
