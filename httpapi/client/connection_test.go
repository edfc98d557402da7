package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// servers answers requests by host, and records them.
type servers struct {
	answer map[string]func(*http.Request) (*http.Response, error)

	mu       sync.Mutex
	requests []string // guarded by mu until all calls have ended
}

func (s *servers) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Host)
	s.mu.Unlock()
	return s.answer[r.URL.Host](r)
}

// sent reports that a connection was made.
func sent(r *http.Request) {
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
}

// refuses is a server that does not run.
func refuses(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }

// resets is a server that ends before it answers.
func resets(r *http.Request) (*http.Response, error) {
	sent(r)
	return nil, io.ErrUnexpectedEOF
}

// silent is a server that was paused, or whose network was cut.
func silent(r *http.Request) (*http.Response, error) {
	sent(r)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// answers is a server that gives an answer.
func answers(status int, body string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		sent(r)
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

// stops is a server that begins an answer and then falls silent.
func stops(r *http.Request) (*http.Response, error) {
	sent(r)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(io.MultiReader(strings.NewReader(`{"ID":`), waiting{r.Context()}))}, nil
}

// waiting has no data until a context ends.
type waiting struct{ ctx context.Context }

func (w waiting) Read([]byte) (int, error) {
	<-w.ctx.Done()
	return 0, w.ctx.Err()
}

// newClient returns a client of servers s1 and s2, and the lines of its moves.
func newClient(t *testing.T, s *servers, address string) (*Client, *[]string) {
	t.Helper()
	c := result.Of(New(Config{Address: address, Transport: s})).OK(t)
	moves := new([]string)
	c.OnMove(func(m Move) { *moves = append(*moves, m.From+" to "+m.To) })
	return c, moves
}

const oneToTwo = "http://s1 to http://s2"

// A call goes to the next address if the first gives no answer or a useless one, and only if a
// repeated request cannot change anything twice.
func TestClient_nextAddress(t *testing.T) {
	t.Parallel()
	node := answers(http.StatusOK, `{"ID":"n1"}`)
	read := func(c *Client) error {
		_, _, err := c.Node(context.Background(), "n1", Query{})
		return err
	}
	watch := func(c *Client) error {
		_, _, err := c.Node(context.Background(), "n1", Query{Index: 7, Wait: time.Second, Stale: true})
		return err
	}
	write := func(key string) func(*Client) error {
		return func(c *Client) error {
			_, _, err := c.UpdateDrain(context.Background(), "n1", wire.DrainRequest{}, key)
			return err
		}
	}
	for name, test := range map[string]struct {
		first    func(*http.Request) (*http.Response, error)
		call     func(*Client) error
		requests []string
		moves    []string
		took     time.Duration
		failed   string
	}{
		"a read, s1 answers":             {first: node, call: read, requests: []string{"GET s1"}},
		"a read, s1 refuses":             {first: refuses, call: read, requests: []string{"GET s1", "GET s2"}, moves: []string{oneToTwo}},
		"a read, s1 resets":              {first: resets, call: read, requests: []string{"GET s1", "GET s2"}, moves: []string{oneToTwo}},
		"a read, s1 is silent":           {first: silent, call: read, requests: []string{"GET s1", "GET s2"}, moves: []string{oneToTwo}, took: 10 * time.Second},
		"a read, s1 has no leader":       {first: answers(500, noLeader), call: read, requests: []string{"GET s1", "GET s2"}},
		"a read, s1 stops":               {first: answers(503, "the server stops"), call: read, requests: []string{"GET s1", "GET s2"}},
		"a read, s1 does not have it":    {first: answers(404, "node not found"), call: read, requests: []string{"GET s1"}, failed: "404"},
		"a read, s1 sends a page":        {first: answers(200, "<html>"), call: read, requests: []string{"GET s1", "GET s2"}, moves: []string{oneToTwo}},
		"a read, s1 sends a part":        {first: answers(200, `{"ID":"n`), call: read, requests: []string{"GET s1", "GET s2"}, moves: []string{oneToTwo}},
		"a read, s1 sends nothing":       {first: answers(200, ""), call: read, requests: []string{"GET s1", "GET s2"}, moves: []string{oneToTwo}},
		"a blocking read, s1 is silent":  {first: silent, call: watch, requests: []string{"GET s1", "GET s2"}, moves: []string{oneToTwo}, took: time.Second + time.Second/16 + staleLimit},
		"a write, s1 refuses":            {first: refuses, call: write(""), requests: []string{"PUT s1", "PUT s2"}, moves: []string{oneToTwo}},
		"a write, s1 resets":             {first: resets, call: write(""), requests: []string{"PUT s1"}, failed: "EOF"},
		"a write, s1 has no leader":      {first: answers(500, noLeader+"\n"), call: write(""), requests: []string{"PUT s1", "PUT s2"}},
		"a write, s1 has a reason":       {first: answers(500, noLeader+": the disk is full\n"), call: write(""), requests: []string{"PUT s1", "PUT s2"}},
		"a write, s1 stops":              {first: answers(503, "the server stops"), call: write(""), requests: []string{"PUT s1"}, failed: "the server stops"},
		"a write, s1 sends a page":       {first: answers(200, "<html>"), call: write(""), requests: []string{"PUT s1"}, failed: "not the expected JSON"},
		"a write with key, s1 sends it":  {first: answers(200, "<html>"), call: write("k"), requests: []string{"PUT s1", "PUT s2"}, moves: []string{oneToTwo}},
		"a write with key, s1 resets":    {first: resets, call: write("k"), requests: []string{"PUT s1", "PUT s2"}, moves: []string{oneToTwo}},
		"a write with key, s1 is silent": {first: silent, call: write("k"), requests: []string{"PUT s1", "PUT s2"}, moves: []string{oneToTwo}, took: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &servers{answer: map[string]func(*http.Request) (*http.Response, error){"s1": test.first, "s2": node}}
				c, moves := newClient(t, s, "s1,s2")
				start := time.Now()
				err := test.call(c)
				if test.failed == "" {
					must.NoError(t, err)
				} else {
					must.ErrorContains(t, err, test.failed)
				}
				must.Eq(t, test.requests, s.requests)
				must.Eq(t, test.moves, *moves)
				must.Eq(t, test.took, time.Since(start))
			})
		})
	}
}

// The moves before any connection was made are first ones: no connection was lost.
func TestClient_firstMoves(t *testing.T) {
	t.Parallel()
	s := &servers{answer: map[string]func(*http.Request) (*http.Response, error){"s1": refuses, "s2": answers(http.StatusOK, "{}")}}
	c, _ := newClient(t, s, "s1,s2")
	var first []bool
	c.OnMove(func(m Move) { first = append(first, m.First) })
	result.Of(c.Servers().Self(t.Context())).OK(t)
	s.answer["s2"] = refuses
	s.answer["s1"] = answers(http.StatusOK, "{}")
	result.Of(c.Servers().Self(t.Context())).OK(t)
	must.Eq(t, []bool{true, false}, first)
}

// A call without any answer tries each address once. The next call continues with the address
// after the last one, and reports the move to it then.
func TestClient_allAddressesFail(t *testing.T) {
	t.Parallel()
	s := &servers{answer: map[string]func(*http.Request) (*http.Response, error){"s1": refuses, "s2": refuses, "s3": refuses}}
	c, moves := newClient(t, s, "s1, s2,s3,")
	_, err := c.Servers().Self(t.Context())
	must.ErrorContains(t, err, "connection refused")
	must.Eq(t, []string{"GET s1", "GET s2", "GET s3"}, s.requests)
	must.Eq(t, []string{oneToTwo, "http://s2 to http://s3"}, *moves)
	must.Eq(t, "http://s1", c.Address())

	s.answer["s1"] = answers(http.StatusOK, "{}")
	result.Of(c.Servers().Self(t.Context())).OK(t)
	must.Eq(t, "http://s3 to http://s1", (*moves)[2])
}

// A client of one address reports the loss of a connection at once.
func TestClient_oneAddressFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &servers{answer: map[string]func(*http.Request) (*http.Response, error){"s1": silent}}
		c, moves := newClient(t, s, "s1")
		start := time.Now()
		_, _, err := c.Node(t.Context(), "n1", Query{Index: 7, Wait: time.Second, Stale: true})
		must.ErrorIs(t, err, errSilent)
		must.EqError(t, err, "GET http://s1/v1/node/n1: the server does not answer")
		must.LessEq(t, 2*time.Second, time.Since(start))
		must.Eq(t, []string{"http://s1 to http://s1"}, *moves)
	})
}

// Bug: a monitor of one address repeated a read silently while a proxy answered it with a page. All addresses
// fail: each is tried once, and the error names the last. Other requests go on.
func TestClient_undecodedAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		page := answers(http.StatusOK, "<html>")
		for addresses, want := range map[string]struct{ requests, moves []string }{
			"s1":    {[]string{"GET s1", "GET s1"}, []string{"http://s1 to http://s1"}},
			"s1,s2": {[]string{"GET s1", "GET s1", "GET s2"}, []string{oneToTwo}},
		} {
			answered := make(chan struct{})
			s := &servers{answer: map[string]func(*http.Request) (*http.Response, error){"s1": func(r *http.Request) (*http.Response, error) {
				if !r.URL.Query().Has("index") {
					return page(r)
				}
				<-answered
				return answers(http.StatusOK, "{}")(r)
			}, "s2": page}}
			c, moves := newClient(t, s, addresses)
			other := make(chan error, 1)
			go func() {
				_, _, err := c.Node(t.Context(), "n1", Query{Index: 7, Wait: time.Hour})
				other <- err
			}()
			synctest.Wait()
			_, err := c.Servers().Self(t.Context())
			undecoded, is := errors.AsType[*UndecodedError](err)
			must.True(t, is, must.Sprint(err))
			must.Eq(t, s.requests[len(s.requests)-1], "GET "+strings.TrimPrefix(undecoded.Address, "http://"))
			close(answered)
			must.NoError(t, <-other)
			must.Eq(t, want.requests, s.requests)
			must.Eq(t, want.moves, *moves)
		}
	})
}

// When one read detects that a connection is lost, the other reads that wait on it continue at the
// next address at once.
func TestClient_readsMoveTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &servers{answer: map[string]func(*http.Request) (*http.Response, error){"s1": silent, "s2": answers(http.StatusOK, "null")}}
		c, moves := newClient(t, s, "s1,s2")
		start := time.Now()
		long := make(chan time.Duration, 1)
		go func() {
			result.Read(c.NodeAllocations(t.Context(), "n1", Query{Index: 7, Wait: time.Hour, Stale: true})).OK(t)
			long <- time.Since(start)
		}()
		synctest.Wait()
		_, _, _ = c.Node(t.Context(), "n1", Query{Index: 7, Wait: time.Second, Stale: true})
		must.LessEq(t, 2*time.Second, <-long)
		must.Eq(t, []string{oneToTwo}, *moves)
	})
}

// A server that falls silent within its answer is noticed: the call fails, the next one goes to the
// next address.
func TestClient_silentWithinAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &servers{answer: map[string]func(*http.Request) (*http.Response, error){"s1": stops, "s2": answers(http.StatusOK, "{}")}}
		c, moves := newClient(t, s, "s1,s2")
		start := time.Now()
		_, _, err := c.Node(t.Context(), "n1", Query{Index: 7, Wait: time.Second, Stale: true})
		must.ErrorIs(t, err, errSilent)
		must.Eq(t, pauseLimit, time.Since(start))
		result.Read(c.Node(t.Context(), "n1", Query{})).OK(t)
		must.Eq(t, []string{oneToTwo}, *moves)
	})
}

// A server without a leader answers, but may be cut off from the others: the next read goes to
// the next address, without a report.
func TestClient_serverWithoutLeader(t *testing.T) {
	t.Parallel()
	s := &servers{answer: map[string]func(*http.Request) (*http.Response, error){
		"s1": func(r *http.Request) (*http.Response, error) {
			answer, err := answers(http.StatusOK, "{}")(r)
			answer.Header.Set("X-Nomad-KnownLeader", "false")
			return answer, err
		},
		"s2": answers(http.StatusOK, "{}"),
	}}
	c, moves := newClient(t, s, "s1,s2")
	for range 3 {
		result.Read(c.Node(t.Context(), "n1", Query{Stale: true})).OK(t)
	}
	must.Eq(t, []string{"GET s1", "GET s2", "GET s2"}, s.requests)
	must.SliceEmpty(t, *moves)
}

// An interrupted call tries no other address.
func TestClient_interrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &servers{answer: map[string]func(*http.Request) (*http.Response, error){"s1": silent}}
		c, moves := newClient(t, s, "s1,s2")
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := c.Servers().Self(ctx)
		must.ErrorIs(t, err, context.DeadlineExceeded)
		must.Eq(t, []string{"GET s1"}, s.requests)
		must.SliceEmpty(t, *moves)
	})
}

// Over real sockets: the first server is killed while a read waits.
func TestClient_killedServer(t *testing.T) {
	t.Parallel()
	waits := make(chan struct{})
	first := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(waits)
		<-r.Context().Done()
	}))
	second := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"ID":"n1"}`) }))
	t.Cleanup(second.Close)
	c := result.Of(New(Config{Address: first.URL + "," + second.URL})).OK(t)
	t.Cleanup(c.Close)
	go func() {
		<-waits
		first.CloseClientConnections()
		first.Close()
	}()
	n := result.Read(c.Node(t.Context(), "n1", Query{Index: 3, Stale: true})).OK(t)
	must.Eq(t, "n1", n.ID)
	must.Eq(t, second.URL, c.Address())
}

// A restore sends its file once: it does not send the file to a server that does not run or does not
// answer, if another one does.
func TestClient_restoreTriesEachServer(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func(*http.Request) (*http.Response, error){"refuses": refuses, "silent": silent} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				restored := answers(http.StatusOK, "")
				s := &servers{answer: map[string]func(*http.Request) (*http.Response, error){"s1": first, "s2": func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodPut {
						file := result.Of(io.ReadAll(r.Body)).OK(t)
						must.Eq(t, "the state", string(file))
					}
					return restored(r)
				}}}
				c, moves := newClient(t, s, "http://s1,http://s2")
				result.Of(RestoreSnapshot(t.Context(), c, strings.NewReader("the state"))).OK(t)
				must.Eq(t, []string{"GET s1", "GET s2", "PUT s2"}, s.requests)
				must.Eq(t, []string{oneToTwo}, *moves)
			})
		})
	}
}

// A server with a large state needs minutes before it answers with a snapshot. The client waits for it,
// and does not make all servers write the state in vain.
func TestClient_waitsForASnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		large := answers(http.StatusOK, "the state")
		s := &servers{answer: map[string]func(*http.Request) (*http.Response, error){"s1": silent, "s2": func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == snapshotPath {
				select {
				case <-time.After(5 * time.Minute):
				case <-r.Context().Done():
					return nil, r.Context().Err()
				}
			}
			return large(r)
		}}}
		c, moves := newClient(t, s, "http://s1,http://s2")
		var saved strings.Builder
		must.ErrorContains(t, SaveSnapshot(t.Context(), c, false, &saved), "checksum") // the test sends none
		must.Eq(t, "the state", saved.String())
		must.Eq(t, []string{"GET s1", "GET s2", "GET s2"}, s.requests)
		must.Eq(t, []string{oneToTwo}, *moves)
	})
}

// A request is reported until it has its whole answer, also if it fails. A read that waits for an index is not.
func TestClient_onRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			server func(*http.Request) (*http.Response, error)
			query  Query
			took   []time.Duration
		}{
			"answered": {server: answers(http.StatusOK, `{"ID":"n1"}`), took: []time.Duration{0}},
			"silent":   {server: silent, took: []time.Duration{lastLimit}},
			"stops":    {server: stops, took: []time.Duration{lastLimit}},
			"blocking": {server: silent, query: Query{Index: 7, Wait: time.Second}},
		} {
			c, _ := newClient(t, &servers{answer: map[string]func(*http.Request) (*http.Response, error){"s1": test.server}}, "s1")
			var took []time.Duration
			must.Nil(t, OnRequest(c, func() func() {
				began := time.Now()
				return func() { took = append(took, time.Since(began)) }
			}))
			_, _, _ = c.Node(t.Context(), "n1", test.query)
			must.Eq(t, test.took, took, must.Sprint(name))
			must.NotNil(t, OnRequest(c, nil))
			_, _, _ = c.Node(t.Context(), "n1", test.query)
			must.Eq(t, test.took, took, must.Sprint(name))
		}
	})
}
