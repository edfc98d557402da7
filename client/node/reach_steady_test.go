package node

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
)

// stopping are test servers that refuse sessions, then accept one that ends after a time, and refuse again.
type stopping struct {
	*scripted
	// refuse is the number of refusals before the session.
	refuse int
	lasts  time.Duration
	// requests are the times of the requests, ended is the time of the end of the session.
	requests []time.Time
	ended    time.Time
}

func (s *stopping) OpenSession(ctx context.Context) (*session.NodeEnd, error) {
	s.requests = append(s.requests, time.Now())
	if len(s.requests) != s.refuse+1 {
		return nil, errors.New("refused")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://server/", nil)
	if err != nil {
		return nil, err
	}
	return session.Dial(ctx, s, r)
}

// RoundTrip accepts a session. Its server sends nothing.
func (s *stopping) RoundTrip(*http.Request) (*http.Response, error) {
	ofNode, ofServer := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, ofServer) }()
	time.AfterFunc(s.lasts, func() {
		s.ended = time.Now()
		_ = ofServer.Close()
	})
	return &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: http.Header{"Upgrade": {session.Protocol}}, Body: ofNode}, nil
}

// After a session that lasted, the node opens the next one soon, also after failures before it: then its server has
// stopped. After a short session the node continues to wait as long as after a failure. Bug: no test noticed a
// node that never waited less again.
func TestReach_afterASession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refuse   int
		lasts    time.Duration
		at, most time.Duration
	}{
		"a steady session":                 {0, steadySession, firstSessionWait / 2, firstSessionWait},
		"a steady session after failures":  {10, steadySession, firstSessionWait / 2, firstSessionWait},
		"a short session after failures":   {10, steadySession - 1, maxSessionWait / 2, maxSessionWait},
		"a session that is closed at once": {10, 0, maxSessionWait / 2, maxSessionWait},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &stopping{refuse: c.refuse, lasts: c.lasts}
				r := &reach{servers: s, handler: http.NotFoundHandler(), logger: quiet(), failures: newFailures(quiet())}
				ctx, end := context.WithTimeout(t.Context(), time.Hour)
				defer end()
				registered := make(chan struct{})
				close(registered)
				r.keep(ctx, registered)
				must.Greater(t, c.refuse+1, len(s.requests))
				must.Between(t, c.at, s.requests[c.refuse+1].Sub(s.ended), c.most)
			})
		})
	}
}

// Each request for a session goes to the next server, also after a failure: while a server is down, the node has a
// session with another one. Bug: no test noticed requests that all went to the first server.
func TestReach_eachServerInTurn(t *testing.T) {
	t.Parallel()
	requests := make(chan string, 8)
	server := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			requests <- name
			responds(http.StatusInternalServerError, name+" is down")(w, r)
		}
	}
	servers := newServers(t, server("s1"), server("s2"), server("s3"))
	for _, name := range []string{"s1", "s2", "s3", "s1", "s2"} {
		_, err := servers.OpenSession(t.Context())
		must.ErrorContains(t, err, name+" is down")
		must.EqOp(t, name, <-requests)
	}
	must.EqOp(t, 0, len(requests), must.Sprint("one request for each session"))
}
