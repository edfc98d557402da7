package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// served is a server in virtual time, without a network.
type served struct {
	*testing.T
	server   *http.Server
	listener pipes
	// closed receives the time of the end of each connection.
	closed chan time.Time
}

// serveInPipes serves until the end of the test. It is for a bubble of testing/synctest.
func serveInPipes(t *testing.T, h http.Handler) *served {
	s := &served{T: t, listener: make(pipes), closed: make(chan time.Time, 100)}
	s.server = &http.Server{Handler: h, ConnState: func(_ net.Conn, now http.ConnState) {
		if now == http.StateClosed {
			s.closed <- time.Now()
		}
	}}
	go func() { _ = s.server.Serve(s.listener) }()
	t.Cleanup(func() {
		close(s.listener)
		must.NoError(t, s.server.Shutdown(context.Background()))
	})
	return s
}

// connect returns the client's end of a new connection.
func (s *served) connect() net.Conn {
	client, server := net.Pipe()
	s.listener <- server
	return client
}

// sendAll sends a request with its whole body, and parses the answer after that. As the kernel of a
// client does, it receives the answer meanwhile.
func (s *served) sendAll(head string, body io.Reader) (code int, text string, closes bool) {
	s.Helper()
	conn := s.connect()
	received := make(chan []byte, 1)
	go func() {
		answer, _ := io.ReadAll(conn) // until the server or the test closes the connection
		received <- answer
	}()
	result.Of(io.WriteString(conn, head)).OK(s)
	_, err := io.Copy(conn, body)
	must.NoError(s, err, must.Sprint("the server ended the connection before the body was sent"))
	time.Sleep(6 * time.Second) // a long answer ends after the discarding
	must.NoError(s, conn.Close())
	response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(<-received)), nil)
	must.NoError(s, err, must.Sprint(head))
	defer response.Body.Close()
	b := result.Of(io.ReadAll(response.Body)).OK(s)
	return response.StatusCode, string(b), response.Close
}

// A client that sends its whole body before it reads gets the answer, also if the server does not need the
// body. The server reset the connection before, and the client read no answer.
func TestBody_answerBeforeTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, answersBeforeTheEnd)
}

func answersBeforeTheEnd(t *testing.T) {
	const size = 6 << 20 // more than each limit and what net/http discards
	f := newFixture(t).nodes(1)
	open := serveInPipes(t, f.handler(f.backend(), httpapi.Options{}))
	guarded := serveInPipes(t, f.handler(guarded(f), httpapi.Options{}))
	node, own := "/v1/node/"+uuid('a', 1), "/v1/client/"+uuid('a', 1)
	for _, test := range []struct {
		server *served
		line   string
		code   int
		text   string
	}{
		{open, "PUT /v1/jobs", 413, "request body is larger than 4194304 bytes"},
		{open, "POST /v1/jobs", 413, "request body is larger than 4194304 bytes"},
		{open, "PUT /v1/job/web", 413, "request body is larger than 4194304 bytes"},
		{open, "PUT /v1/job/web/plan", 413, "request body is larger than 4194304 bytes"},
		{open, "PUT /v1/search", 413, "request body is larger than 4194304 bytes"},
		{open, "PUT " + node + "/drain", 413, "request body is larger than 524288 bytes"},
		{open, "PUT " + node + "/eligibility", 413, "request body is larger than 4194304 bytes"},
		{open, "PUT /v1/volume/csi/v", 413, "request body is larger than 262144 bytes"},
		{open, "PUT /v1/client/allocation/x/signal", 413, "request body is larger than 65536 bytes"},
		{open, "PUT /v1/client/allocation/x/restart", 413, "request body is larger than 65536 bytes"},
		{open, "PUT " + own + "/register", 413, "request body is larger than 4194304 bytes"},
		{open, "PUT " + own + "/allocations", 413, "request body is larger than 1048576 bytes"},
		{open, "PUT " + own + "/claims", 413, "request body is larger than "},
		{open, "PUT /v1/operator/raft/join", 413, "request body is larger than 4194304 bytes"},
		{open, "PUT /v1/operator/snapshot", 501, "this server cannot save or restore snapshots"},
		{open, "PUT " + own + "/heartbeat", 200, "{"},
		{open, "GET /v1/nodes", 200, "["},
		{open, "DELETE /v1/jobs", 405, "Invalid method"},
		{open, "PUT /v1/nothing", 501, "PUT /v1/nothing is not implemented"},
		{open, "PUT /nothing", 404, ""},
		{guarded, "PUT /v1/jobs", 403, "Permission denied"},
	} {
		for _, length := range []string{fmt.Sprintf("Content-Length: %d", size), "Transfer-Encoding: chunked"} {
			body := io.LimitReader(spaces{}, size)
			if strings.HasPrefix(length, "Transfer") {
				body = chunked(body)
			}
			what := must.Sprint(test.line, length)
			code, text, closes := test.server.sendAll(test.line+" HTTP/1.1\r\nHost: localhost\r\n"+length+"\r\n\r\n", body)
			must.Eq(t, test.code, code, what)
			must.StrHasPrefix(t, test.text, text, what)
			must.True(t, closes, what)
		}
	}
}

// A connection stays open after the refusal of a body that the server reads to its end.
func TestBody_shortRestKeepsTheConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		s := serveInPipes(t, f.handler(f.backend(), httpapi.Options{MaxBody: 100}))
		code, text, closes := s.sendAll("PUT /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200\r\n\r\n", io.LimitReader(spaces{}, 200))
		must.Eq(t, 413, code)
		must.Eq(t, "request body is larger than 100 bytes", text)
		must.False(t, closes)
	})
}

// The reference's client reports the refusal.
func TestReferenceClient_largeJob(t *testing.T) {
	t.Parallel()
	jobs := newFixture(t).client().Jobs()
	job := api.NewServiceJob("web", "web", "global", 50)
	job.SetMeta("large", strings.Repeat("x", 6<<20))
	_, _, err := jobs.Register(job, nil)
	must.ErrorContains(t, err, "Unexpected response code: 413 (request body is larger than 4194304 bytes)")
	_, _, err = jobs.Plan(job, false, nil)
	must.ErrorContains(t, err, "Unexpected response code: 413 (request body is larger than 4194304 bytes)")
}

// The server discards a bounded number of bytes of a body without an end.
func TestBody_discardIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		conn := serveInPipes(t, f.handler(f.backend(), httpapi.Options{})).connect()
		defer conn.Close()
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		result.Of(io.WriteString(conn, "PUT /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1099511627776\r\n\r\n")).OK(t)
		sent, err := io.CopyN(conn, spaces{}, 1<<30)
		must.Error(t, err)
		must.Between(t, 64<<20, sent, 65<<20, must.Sprint("net/http discards 256 KiB of its own"))
	})
}

// The server discards a body for five seconds, and not longer than the body may take in all.
func TestBody_discardIsBoundedInTime(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		// head is the time at which the client has sent enough for an answer.
		head, closed time.Duration
	}{
		"at once":                  {0, 5 * time.Second},
		"shortly before the limit": {28 * time.Second, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				s := serveInPipes(t, f.handler(f.backend(), httpapi.Options{MaxBody: 100}))
				client := s.connect()
				start := time.Now()
				go func() {
					_, _ = io.WriteString(client, "PUT /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
					time.Sleep(test.head)
					_, _ = io.Copy(client, chunked(io.LimitReader(spaces{}, 1<<20))) // and no end
				}()
				response := result.Of(http.ReadResponse(bufio.NewReader(client), nil)).OK(t)
				must.Eq(t, 413, response.StatusCode)
				must.NoError(t, response.Body.Close())
				must.Between(t, test.closed, (<-s.closed).Sub(start), test.closed+time.Second)
				must.NoError(t, client.Close())
			})
		})
	}
}

// The server discards 16 bodies of one address at a time. It closes other connections with the answer.
func TestBody_discardIsBoundedInNumber(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		s := serveInPipes(t, f.handler(f.backend(), httpapi.Options{MaxBody: 100}))
		start := time.Now()
		for range 17 {
			client := s.connect()
			defer client.Close()
			result.Of(io.WriteString(client, "PUT /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")).OK(t)
			go func() { _, _ = io.Copy(io.Discard, client) }()
		}
		must.Between(t, 0, (<-s.closed).Sub(start), time.Second)
		for range 16 {
			must.Between(t, 5*time.Second, (<-s.closed).Sub(start), 6*time.Second)
		}
	})
}

// spaces are spaces without an end.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// chunked returns the chunks of a body, without the last one.
func chunked(body io.Reader) io.Reader {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(httputil.NewChunkedWriter(w), body)
		_ = w.CloseWithError(err)
	}()
	return r
}
