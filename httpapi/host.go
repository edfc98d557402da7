package httpapi

import (
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
)

// namedHere answers requests whose Host header names this server, and refuses others, if nothing
// else keeps a browser out. A site can let its own name resolve to the address of this server: then
// the browser takes the server for a part of that site, and sends it every request that the site
// wants. The Host header is the site's name all the same. A token, which the site does not have, and
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
