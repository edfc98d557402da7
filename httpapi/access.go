package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// right is what a route needs its request to be allowed.
type right int

const (
	needsNothing right = iota
	needsRead
	needsWrite
)

// everybody is who asks while there is no access control; the name is the reference's.
func everybody() Identity { return Identity{Name: "token:acls-disabled", Read: true, Write: true} }

// admit turns away who surely may not, before anything is spent on the request: its body
// is read, it waits and other servers are asked after this. What may be the secret of a
// node is left to authorize, which looks at the state for it.
func (q *request) admit() error {
	if q.route.own && q.token() != "" {
		return nil
	}
	return q.identify()
}

// authorize finds out who asks, and whether they may. The secret of the node that the
// path names will do where the route says so, for that node alone.
func (q *request) authorize() error {
	if q.route.own && q.secretFits() {
		q.who = Identity{Name: "node:" + string(q.nodeID()), Read: true, Write: true}
		return nil
	}
	return q.identify()
}

// identify finds out who has the token, and whether they may.
func (q *request) identify() error {
	switch {
	case q.route.needs == needsNothing:
		return nil
	case q.backend.Access == nil:
		q.who = everybody()
		return nil
	}
	token := q.token()
	who, known := q.backend.Access.Identify(token)
	switch {
	case !known && token != "":
		return fail(http.StatusForbidden, "ACL token not found")
	case !known, q.route.needs == needsWrite && !who.Write, !who.Read && !who.Write:
		return errForbidden()
	}
	q.who = who
	return nil
}

// token is what the request has to show for itself, or empty.
func (q *request) token() string {
	if token := q.Header.Get("X-Nomad-Token"); token != "" {
		return token
	}
	scheme, token, _ := strings.Cut(q.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// secretFits reports whether the token is the secret of the node that the path names.
func (q *request) secretFits() bool {
	token := q.token()
	if token == "" {
		return false
	}
	state, err := q.state()
	if err != nil {
		return false
	}
	node := state.Node(q.nodeID())
	return node != nil && sameSecret(node.SecretID, token)
}

// sameSecret compares two secrets in a time that says nothing of either.
func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// client is whom a reader that waits is counted for: who has the token, or else the
// address. The server that passes a request on says so for the other one.
func (q *request) client() client {
	switch {
	case q.passer != "":
		return sha256.Sum256([]byte("forwarded " + q.passer))
	case q.tokenIsKnown():
		return sha256.Sum256([]byte("token " + q.token()))
	}
	host, _, err := net.SplitHostPort(q.RemoteAddr)
	if err != nil {
		host = q.RemoteAddr
	}
	return sha256.Sum256([]byte("address " + host))
}

// tokenIsKnown reports whether somebody has the request's token: whoever makes tokens up
// would be another client with each.
func (q *request) tokenIsKnown() bool {
	if q.route.own && q.secretFits() {
		return true
	}
	token := q.token()
	if token == "" || q.backend.Access == nil {
		return false
	}
	_, known := q.backend.Access.Identify(token)
	return known
}
