package node

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	api "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// shownServers answer writes with a state, and requests for changes with one that has it.
type shownServers struct {
	*httpServers
	// state is the part of the answer to a write about its state. failing: requests for changes fail.
	state   atomic.Pointer[string]
	failing atomic.Bool
	// requested is the state that the last request for changes has named.
	requested atomic.Pointer[string]
	// during runs in a request for changes.
	during func()
}

func newShownServers(t *testing.T) *shownServers {
	s := &shownServers{during: func() {}}
	s.httpServers = newServers(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			responds(http.StatusOK, fmt.Sprintf(`{"HeartbeatTTL": 5000000000, "Index": 1%s}`, *s.state.Load()))(w, r)
			return
		}
		s.requested.Store(new(r.URL.Query().Get("shown")))
		s.during()
		if s.failing.Load() {
			responds(http.StatusInternalServerError, "no leader")(w, r)
			return
		}
		responds(http.StatusOK, `{"ClusterID": "c", "Index": 100, "History": "ff"}`)(w, r)
	})
	s.shows(t, 0, "")
	return s
}

// shows sets the state of the next answers. The empty history is that of servers that have none.
func (s *shownServers) shows(t *testing.T, index int, history string) {
	t.Helper()
	text := ""
	if history != "" {
		text = fmt.Sprintf(`, "State": {"Index": %d, "History": %q}`, index, history)
	}
	s.state.Store(&text)
	_, err := s.Heartbeat(t.Context())
	must.NoError(t, err)
}

// requests checks which state a request for changes names.
func (s *shownServers) requests(t *testing.T, shown string, fails bool) {
	t.Helper()
	s.failing.Store(fails)
	_, err := s.Changes(t.Context(), api.Since{ClusterID: "c", Index: 90, History: "aa"})
	must.EqOp(t, fails, err != nil)
	must.EqOp(t, shown, *s.requested.Load())
}

// Each write shows a state. The next request for changes names the newest one, until it is answered.
func TestHTTPServers_shownStates(t *testing.T) {
	t.Parallel()
	s := newShownServers(t)
	s.requests(t, "", false)
	s.shows(t, 95, "bb")
	s.shows(t, 94, "cc") // its answer came late
	s.requests(t, "95-bb", true)
	s.requests(t, "95-bb", false)
	s.requests(t, "", false)

	for write, send := range map[string]func() error{
		"register": func() error {
			_, err := s.Register(t.Context(), &cluster.Node{ID: "n1", SecretID: "secret"})
			return err
		},
		"report": func() error { return s.Report(t.Context(), nil) },
	} {
		text := `, "State": {"Index": 96, "History": "dd"}`
		s.state.Store(&text)
		must.NoError(t, send(), must.Sprint(write))
		s.requests(t, "96-dd", false)
	}
}

// A write is answered while a request for changes waits. The servers have started from an older copy meanwhile, or
// not: the next request names the state of this write, also if its index is lower. After a request without an answer it
// names the higher one, which shows the loss.
func TestHTTPServers_shownStateDuringARequest(t *testing.T) {
	t.Parallel()
	for fails, next := range map[bool]string{false: "65-ee", true: "95-bb"} {
		s := newShownServers(t)
		s.shows(t, 95, "bb")
		s.during = func() {
			s.during = func() {}
			s.shows(t, 65, "ee")
		}
		s.requests(t, "95-bb", fails)
		s.requests(t, next, false)
		s.requests(t, "", false)
	}
}

// Servers of an older release, and below cluster version 9, show no states.
func TestHTTPServers_noShownStates(t *testing.T) {
	t.Parallel()
	s := newShownServers(t)
	s.shows(t, 95, "")
	s.requests(t, "", false)
}
