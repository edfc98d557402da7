package agent

import (
	"net"
	"net/http"
	"sync"
)

// newConns are the connections of HTTP servers that have not sent a request yet.
// [http.Server.Shutdown] waits some seconds for their first requests. Clients open such connections
// in advance, so the agent closes them before it calls Shutdown.
type newConns struct {
	mu     sync.Mutex
	conns  map[net.Conn]struct{} // guarded by mu
	closed bool                  // guarded by mu
}

// observe is the [http.Server.ConnState] of the servers.
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

// close closes all unused connections, and from then on each new connection.
func (n *newConns) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for c := range n.conns {
		_ = c.Close()
	}
	clear(n.conns)
}
