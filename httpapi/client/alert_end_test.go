package client

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A transport whose reader has read the alert may return only that the connection is closed, because its
// writer was slower. The error of the client is the alert. It reads from no connection that others may
// use.
func TestAlerting_slowWriter(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	conn := result.Of(tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})).OK(t)
	_, err := conn.Read(make([]byte, 1))
	must.ErrorContains(t, err, "certificate required")
	must.NoError(t, conn.Close())
	slow := new(http.Transport)
	var cause error
	slow.RegisterProtocol("https", roundTrip(func(r *http.Request) (*http.Response, error) {
		httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{Conn: conn})
		return nil, cause
	}))
	request := httptest.NewRequest(http.MethodGet, server.URL, nil)
	for _, c := range []struct {
		cause error
		want  string
	}{
		{fmt.Errorf("write: %w", net.ErrClosed), "remote error: tls: certificate required"},
		{http.ErrHandlerTimeout, http.ErrHandlerTimeout.Error()},
	} {
		cause = c.cause
		_, err := alerting{slow}.RoundTrip(request)
		must.EqError(t, err, c.want)
	}
}
