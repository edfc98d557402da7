package httpapi_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
)

// Without tokens and without TLS, a request for the name of a foreign site is refused: the site may
// have let the name resolve to this server. Reads are refused too.
func TestHost(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	h := w.handler(w.backend(), httpapi.Options{Hosts: []string{"s1.example.org"}})
	guarded := w.handler(guarded(w), httpapi.Options{})
	code := func(h http.Handler, method, host string, secured bool) int {
		r := httptest.NewRequestWithContext(t.Context(), method, "/v1/node/"+uuid('a', 1)+"/drain", strings.NewReader(`{"DrainSpec":{}}`))
		r.Host = host
		r.Header.Set("X-Nomad-Token", "writer-token")
		if secured {
			r.TLS = new(tls.ConnectionState)
		}
		got := httptest.NewRecorder()
		h.ServeHTTP(got, r)
		return got.Code
	}
	for _, host := range []string{"evil.example", "evil.example:4646", "127.0.0.1.evil.example", "localhost.evil.example:4646", "evil.example.", "s1.example.org.evil.example", "a:b:c"} {
		for _, method := range []string{"GET", "PUT"} {
			must.Eq(t, 403, code(h, method, host, false), must.Sprint(method, host))
			must.Eq(t, 200, code(guarded, method, host, false), must.Sprint(method, host, "with a token"))
			must.Eq(t, 200, code(h, method, host, true), must.Sprint(method, host, "over TLS"))
		}
	}
	for _, host := range []string{"", "127.0.0.1", "127.0.0.1:4646", "[::1]:4646", "[::1]", "10.0.0.7:1", "localhost", "LOCALHOST:4646", "a.localhost:1", "server-1:4646", "s1.example.org:4646", "S1.Example.Org", "s1.example.org."} {
		must.Eq(t, 200, code(h, "GET", host, false), must.Sprint(host))
	}
}
