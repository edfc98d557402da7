package httpapi

import (
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
)

// namedHere answers requests whose Host header names this server, and refuses others, if nothing
// else keeps a browser out. A site can let its own name resolve to the address of this server: then
// the browser takes the server for a part of that site, and sends it every request of the site. The Host header is the site's name all the same. A token, which the site does not have, and
// TLS, for which the server has no certificate of that name, keep it out too.
func (h *Handler) namedHere(next http.Handler) http.Handler {
	if h.backend.Access != nil {
		return next
	}
	names := slices.Clone(h.options.Hosts)
	if own, err := os.Hostname(); err == nil {
		names = append(names, own)
	}
	refuse := h.observed(otherRoute, func(w http.ResponseWriter, _ *http.Request) {
		WriteError(w, http.StatusForbidden, "the Host header names another server: use an IP address or localhost, or allow the name with -allow-host")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil && !hostAllowed(r.Host, names) {
			refuse(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostAllowed reports whether no foreign site can have the name of a Host header: it is an address, a
// name without a dot, a name below localhost, or one of the names. Browsers always send the header.
func hostAllowed(header string, names []string) bool {
	host := header
	if name, _, err := net.SplitHostPort(header); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	switch {
	case net.ParseIP(host) != nil, !strings.Contains(host, ".") && !strings.Contains(host, ":"), strings.HasSuffix(strings.ToLower(host), ".localhost"):
		return true
	}
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, host) })
}

// sameOrigin reports whether a request comes from no browser, or from a page of this server. Browsers send
// the header Origin with every WebSocket, and with requests of scripts to other servers.
func sameOrigin(r *http.Request) bool {
	header := r.Header.Values("Origin")
	switch len(header) {
	case 0:
		return true
	case 1:
		origin, err := url.Parse(header[0])
		return err == nil && origin.Host != "" && strings.EqualFold(origin.Host, r.Host)
	}
	return false
}

// checkOrigin refuses a stream for a page of another server: the browser may reach servers that the
// page's server cannot.
func checkOrigin(q *request) error {
	if q.route.live && !sameOrigin(q.Request) {
		return failure.New(http.StatusForbidden, "cross-origin request refused: the Origin header names another host")
	}
	return nil
}

// welcome is what a browser shows of a server: what it is and where its API is. It has lists instead of
// tables, for narrow terminals, and loads nothing.
const welcome = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>nodedrain server</title>
</head>
<body>
<h1>nodedrain server</h1>
<p>This server drains the nodes of a cluster. It has no web interface.</p>
<p>Version: %s</p>
<p>HTTP API, compatible with Nomad%s:</p>
<ul>
<li><a href="/v1/drains">/v1/drains</a>: running and recent drains</li>
<li><a href="/v1/nodes">/v1/nodes</a>: nodes</li>
<li><a href="/v1/jobs">/v1/jobs</a>: jobs</li>
<li><a href="/v1/agent/members">/v1/agent/members</a>: servers</li>
<li><a href="/v1/status/leader">/v1/status/leader</a>: the leader</li>
</ul>
<p>Metrics%s:</p>
<ul>
<li><a href="/v1/metrics?format=prometheus">/v1/metrics?format=prometheus</a></li>
<li><a href="/v1/metrics">/v1/metrics</a>: the same as JSON</li>
</ul>
<p>Commands: <code>nodedrain help</code>.
Documents: <code>docs/operators.md</code> and <code>docs/api.md</code> in
<a href="https://github.com/seed-f9cf0b39/nodedrain">the sources</a>.</p>
</body>
</html>
`

// showWelcome answers GET / and GET /ui. It needs no right, and shows nothing of the state.
func (h *Handler) showWelcome(w http.ResponseWriter, _ *http.Request) {
	token := ""
	if h.backend.Access != nil {
		token = " (needs a token)"
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, fmt.Sprintf(welcome, html.EscapeString(h.options.Build), token, token)) // the client may have disconnected
}
