package httpapi

import (
	"fmt"
	"html"
	"io"
	"net/http"
)

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
