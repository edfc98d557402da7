package httpapi_test

import (
	"bufio"
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
)

// sendAll sends a request with its whole body, and reads the answer after that.
func sendAll(t *testing.T, address, head string, body io.Reader) (code int, text string, closes bool) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	must.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, head)
	must.NoError(t, err)
	_, err = io.Copy(conn, body)
	must.NoError(t, err, must.Sprint("the server ended the connection before the body was sent"))
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must.NoError(t, err)
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	must.NoError(t, err)
	return response.StatusCode, string(b), response.Close
}

// A client that sends its whole body before it reads gets the answer, also if the server does not need the
// body. The server reset the connection before, and the client read no answer.
func TestBody_answerBeforeTheEnd(t *testing.T) {
	t.Parallel()
	const size = 32 << 20 // more than the buffers of two sockets
	f := newFixture(t).nodes(1)
	open := f.serve(httpapi.Options{}).Listener.Addr().String()
	b := f.backend()
	b.Access = everyToken()
	guarded := f.serveAs(b, httpapi.Options{}).Listener.Addr().String()
	node, own := "/v1/node/"+uuid('a', 1), "/v1/client/"+uuid('a', 1)
	for _, test := range []struct {
		address, line string
		code          int
		text          string
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
			code, text, closes := sendAll(t, test.address, test.line+" HTTP/1.1\r\nHost: localhost\r\n"+length+"\r\n\r\n", body)
			must.Eq(t, test.code, code, what)
			must.StrHasPrefix(t, test.text, text, what)
			must.True(t, closes, what)
		}
	}
}

// A connection stays open after the refusal of a body that the server reads to its end.
func TestBody_shortRestKeepsTheConnection(t *testing.T) {
	t.Parallel()
	address := newFixture(t).serve(httpapi.Options{MaxBody: 100}).Listener.Addr().String()
	code, text, closes := sendAll(t, address, "PUT /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200\r\n\r\n", io.LimitReader(spaces{}, 200))
	must.Eq(t, 413, code)
	must.Eq(t, "request body is larger than 100 bytes", text)
	must.False(t, closes)
}

// The reference's client reports the refusal.
func TestReferenceClient_largeJob(t *testing.T) {
	t.Parallel()
	jobs := newFixture(t).client().Jobs()
	job := api.NewServiceJob("web", "web", "global", 50)
	job.SetMeta("large", strings.Repeat("x", 32<<20))
	_, _, err := jobs.Register(job, nil)
	must.ErrorContains(t, err, "Unexpected response code: 413 (request body is larger than 4194304 bytes)")
	_, _, err = jobs.Plan(job, false, nil)
	must.ErrorContains(t, err, "Unexpected response code: 413 (request body is larger than 4194304 bytes)")
}

// The server discards a bounded number of bytes of a body without an end.
func TestBody_discardIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	address := newFixture(t).serve(httpapi.Options{}).Listener.Addr().String()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	must.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "PUT /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1099511627776\r\n\r\n")
	must.NoError(t, err)
	sent, err := io.CopyN(conn, spaces{}, 1<<30)
	must.Error(t, err)
	must.Between(t, 64<<20, sent, 128<<20, must.Sprint("the buffers of the sockets have the rest"))
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
				w := newFixture(t)
				closed := make(chan time.Time, 1)
				s := &http.Server{Handler: w.handler(w.backend(), httpapi.Options{MaxBody: 100}), ConnState: func(_ net.Conn, now http.ConnState) {
					if now == http.StateClosed {
						closed <- time.Now()
					}
				}}
				listener := make(pipes)
				go func() { _ = s.Serve(listener) }()
				client, server := net.Pipe()
				listener <- server
				start := time.Now()
				go func() {
					_, _ = io.WriteString(client, "PUT /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
					time.Sleep(test.head)
					_, _ = io.Copy(client, chunked(io.LimitReader(spaces{}, 1<<20))) // and no end
				}()
				response, err := http.ReadResponse(bufio.NewReader(client), nil)
				must.NoError(t, err)
				must.Eq(t, 413, response.StatusCode)
				must.NoError(t, response.Body.Close())
				must.Between(t, test.closed, (<-closed).Sub(start), test.closed+time.Second)
				must.NoError(t, client.Close())
				close(listener)
				must.NoError(t, s.Shutdown(context.Background()))
			})
		})
	}
}

// The server discards 16 bodies of one address at a time. It closes other connections with the answer.
func TestBody_discardIsBoundedInNumber(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		closed := make(chan time.Time, 17)
		s := &http.Server{Handler: w.handler(w.backend(), httpapi.Options{MaxBody: 100}), ConnState: func(_ net.Conn, now http.ConnState) {
			if now == http.StateClosed {
				closed <- time.Now()
			}
		}}
		listener := make(pipes)
		go func() { _ = s.Serve(listener) }()
		start := time.Now()
		for range 17 {
			client, server := net.Pipe()
			defer client.Close()
			listener <- server
			_, err := io.WriteString(client, "PUT /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
			must.NoError(t, err)
			go func() { _, _ = io.Copy(io.Discard, client) }()
		}
		must.Between(t, 0, (<-closed).Sub(start), time.Second)
		for range 16 {
			must.Between(t, 5*time.Second, (<-closed).Sub(start), 6*time.Second)
		}
		close(listener)
		must.NoError(t, s.Shutdown(context.Background()))
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
