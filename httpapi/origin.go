package httpapi

import (
	"net/http"
	"net/url"
	"strings"
)

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
		return fail(http.StatusForbidden, "cross-origin request refused: the Origin header names another host")
	}
	return nil
}
