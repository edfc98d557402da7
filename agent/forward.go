package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
)

// forwarded marks the context of a request that a peer passed on, which is not
// passed on again: two servers that each take the other for the leader would do so
// for ever.
type forwarded struct{}

// newTransport is how HTTP requests reach peers: a URL's host is the address that
// raft knows the peer by.
func newTransport(p *port) *http.Transport {
	return &http.Transport{
		DialContext:         func(ctx context.Context, _, peer string) (net.Conn, error) { return p.dial(ctx, peer, protocolHTTP) },
		MaxIdleConnsPerHost: 64,
		DisableCompression:  true, // what passes through stays as it is
	}
}

// Forward has the leader answer the request. If there is none it waits a little:
// one is elected soon, as a rule.
func (p peers) Forward(w http.ResponseWriter, r *http.Request) {
	leader := ""
	if r.Context().Value(forwarded{}) == nil {
		leader = p.awaitLeader(r.Context())
	}
	if leader == "" {
		http.Error(w, "No cluster leader", http.StatusInternalServerError)
		return
	}
	proxy := httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.SetURL(&url.URL{Scheme: "http", Host: leader})
			pr.Out.Host = pr.In.Host
			pr.SetXForwarded()
		},
		Transport:    p.agent.transport,
		ErrorLog:     p.agent.config.Logger.StandardLogger(nil),
		ErrorHandler: p.lost,
	}
	proxy.ServeHTTP(w, r)
}

// lost answers a request that the leader did not.
func (p peers) lost(w http.ResponseWriter, r *http.Request, err error) {
	p.agent.config.Logger.Warn("the leader did not answer a request", "method", r.Method, "path", r.URL.Path, "error", err)
	what := "it may have been made: look, or ask again with the same idempotency token"
	switch {
	case errors.Is(err, errDial):
		what = "nothing was asked of it: ask again"
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		what = "ask again"
	}
	http.Error(w, fmt.Sprintf("the leader was lost before it answered; %s (%v)", what, err), http.StatusInternalServerError)
}

// httpError answers with an error of the API.
func httpError(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	if errors.Is(err, httpapi.ErrNotFound) {
		code = http.StatusNotFound
	}
	http.Error(w, err.Error(), code)
}
