package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/slots"
)

// right is the right that a route demands of the request's identity.
type right int

const (
	needsNothing right = iota
	needsRead
	needsWrite
	// needsNode is the right to register nodes.
	needsNode
)

// AnonymousName is the author of every change without access control. The name is the reference's.
const AnonymousName = "token:acls-disabled"

// unrestricted is the identity of every caller without access control.
func unrestricted() Identity {
	return Identity{Name: AnonymousName, Read: true, Write: true, Node: true}
}

// admit refuses a caller without rights before the server spends anything on the request: reading
// its body, waiting or requests to other servers. A token that may be the secret of a node is left to
// authorize, which needs the state.
func (q *request) admit() error {
	if q.route.own && q.token() != "" {
		return nil
	}
	return q.identify()
}

// authorize sets the identity of the caller and checks its rights. On a route with own, the secret
// of the node in the path is a valid token for that node.
func (q *request) authorize() error {
	if owner := q.owner(); owner != nil {
		q.author, q.byNode = Identity{Name: "node:" + string(owner.ID), Read: true, Write: true}, true
		return nil
	}
	return q.identify()
}

// identify sets the identity that the token belongs to, and checks its rights.
func (q *request) identify() error {
	switch {
	case q.route.needs == needsNothing:
		return nil
	case q.backend.Access == nil:
		q.author = unrestricted()
		return nil
	}
	token := q.token()
	who, known := q.backend.Access.Identify(token)
	switch {
	case !known && token != "":
		return failure.New(http.StatusForbidden, "ACL token not found")
	case !known, !q.route.needs.metBy(who):
		return errForbidden()
	}
	q.author = who
	return nil
}

// stillAllowed reports whether the caller has the rights with which the request began. An answer that
// does not end by itself checks this now and then: it must not outlive the token.
func (q *request) stillAllowed() bool {
	began := q.author
	return q.identify() == nil && q.author == began
}

func (r right) metBy(who Identity) bool {
	switch r {
	case needsRead:
		return who.Read || who.Write
	case needsWrite:
		return who.Write
	case needsNode:
		return who.Node || who.Write
	}
	return r == needsNothing
}

// token is the request's token, or empty.
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

// owner returns the node that the path names, or that of its allocation, if the token is the secret of the node
// and the route takes it. Otherwise it returns nil.
func (q *request) owner() *cluster.Node {
	token := q.token()
	if !q.route.own || token == "" {
		return nil
	}
	state, err := q.state()
	if err != nil {
		return nil
	}
	id := q.nodeID()
	if q.route.ofAlloc {
		alloc := state.Alloc(cluster.AllocID(q.PathValue("id")))
		if alloc == nil {
			return nil
		}
		id = alloc.NodeID
	}
	if node := state.Node(id); node != nil && sameSecret(node.SecretID, token) {
		return node
	}
	return nil
}

// sameSecret compares two secrets in a time that does not depend on them.
func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// client is the client that a waiting reader counts for: a known token, or else an address. For a
// forwarded request, the server that forwarded it names the client.
func (q *request) client() slots.Client {
	switch {
	case q.forwarder != "":
		return sha256.Sum256([]byte("forwarded " + q.forwarder))
	case q.tokenIsKnown():
		return sha256.Sum256([]byte("token " + q.token()))
	}
	return addressOf(q.Request)
}

// addressOf is the client with the address from which the request comes.
func addressOf(r *http.Request) slots.Client {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return sha256.Sum256([]byte("address " + host))
}

// tokenIsKnown reports whether the request's token belongs to an identity or a node. A caller could
// otherwise be a new client with each invented token.
func (q *request) tokenIsKnown() bool {
	if q.owner() != nil {
		return true
	}
	token := q.token()
	if token == "" || q.backend.Access == nil {
		return false
	}
	_, known := q.backend.Access.Identify(token)
	return known
}
