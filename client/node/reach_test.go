package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
)

// refusing are test servers that refuse sessions.
type refusing struct {
	*scripted
	err error

	mu       sync.Mutex
	requests []time.Time
}

func (r *refusing) OpenSession(context.Context) (*session.NodeEnd, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, time.Now())
	return nil, r.err
}

// A node retries to open a session, with backoff, and logs the failures once a minute. It sends a request to an old
// server at most once a minute, and logs that once.
func TestReach_backoff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err         error
		first, last time.Duration // the longest waits
		atLeast     time.Duration // the shortest last wait
	}{
		"no connection": {errors.New("refused"), firstSessionWait, maxSessionWait, maxSessionWait / 2},
		"unknown node":  {fmt.Errorf("s1: %w", &session.Refused{Status: http.StatusNotFound, Text: "node not found"}), firstSessionWait, maxSessionWait, maxSessionWait / 2},
		"an old server": {fmt.Errorf("s1: %w", &session.Refused{Status: http.StatusNotImplemented}), oldServerWait, oldServerWait, oldServerWait / 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				s := &refusing{err: c.err}
				logger := slog.New(slog.NewTextHandler(&log, nil))
				r := &reach{servers: s, handler: http.NotFoundHandler(), logger: logger, failures: newFailures(logger)}
				ctx, end := context.WithTimeout(t.Context(), time.Hour)
				defer end()
				registered := make(chan struct{})
				time.AfterFunc(time.Minute, func() { close(registered) })
				began := time.Now()
				r.keep(ctx, registered)
				must.Eq(t, time.Minute, s.requests[0].Sub(began), must.Sprint("a node that is not registered has no session"))
				last := len(s.requests) - 1
				must.LessEq(t, c.first, s.requests[1].Sub(s.requests[0]))
				must.LessEq(t, c.last, s.requests[last].Sub(s.requests[last-1]))
				must.GreaterEq(t, c.atLeast, s.requests[last].Sub(s.requests[last-1]))
				if lines := strings.Count(log.String(), "operators cannot reach"); c.first == oldServerWait {
					must.EqOp(t, 1, lines)
				} else {
					must.Between(t, 50, lines, 60)
					must.StrContains(t, log.String(), "failing_for=")
				}
			})
		})
	}
}

// A node opens the next session with the next server, and authenticates with its secret.
func TestReach_nextServer(t *testing.T) {
	t.Parallel()
	held := make(chan *session.ServerEnd)
	server := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/client/n1/session" || r.Header.Get("X-Nomad-Token") != "secret" {
			t.Errorf("a request for %s with the token %q", r.URL.Path, r.Header.Get("X-Nomad-Token"))
		}
		end, err := session.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		held <- end
	}
	servers := newServers(t, server, server)
	r := &reach{servers: servers, logger: quiet(), failures: newFailures(quiet()), handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "here")
	})}
	registered := make(chan struct{})
	close(registered)
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.keep(ctx, registered) })
	for range 3 {
		one := <-held
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://node/", nil)
		must.NoError(t, err)
		response, err := one.RoundTrip(q)
		must.NoError(t, err)
		text, err := io.ReadAll(response.Body)
		must.NoError(t, err)
		must.NoError(t, response.Body.Close())
		must.Eq(t, "here", string(text))
		must.NoError(t, one.Close())
	}
	last := <-held
	end()
	running.Wait()
	<-last.Done()
	must.NoError(t, last.Close())
}
