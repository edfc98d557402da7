package agent

import (
	"net"
	"net/http"
	"sync"
)

// newConns are the connections of an HTTP server that have not sent a request yet.
// [http.Server.Shutdown] waits for them for seconds, in case one does; clients have
// them in store as a rule.
type newConns struct {
	mu     sync.Mutex
	conns  map[net.Conn]struct{} // guarded by mu
	closed bool                  // guarded by mu
}

// observe is the server's [http.Server.ConnState].
func (n *newConns) observe(c net.Conn, state http.ConnState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(n.conns, c)
	case n.closed:
		_ = c.Close()
	default:
		if n.conns == nil {
			n.conns = make(map[net.Conn]struct{})
		}
		n.conns[c] = struct{}{}
	}
}

// close closes all unused connections, and later ones at once.
func (n *newConns) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for c := range n.conns {
		_ = c.Close()
	}
	clear(n.conns)
}
