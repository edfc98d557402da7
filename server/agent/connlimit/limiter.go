package connlimit

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Limiter counts the connections of a server. Its methods and those of its gates and connections
// are safe for concurrent use. It starts no goroutine.
type Limiter struct {
	logger hclog.Logger

	mu    sync.Mutex
	gates []*Gate // in the order of their creation; guarded by mu
}

// New returns a limiter that logs closed and refused connections, at most one line for each gate in
// ten seconds.
func New(logger hclog.Logger) *Limiter { return &Limiter{logger: logger} }

// Gate admits the connections of one kind.
type Gate struct {
	limiter *Limiter
	kind    string
	limits  Limits

	// The rest is guarded by limiter.mu.

	stopped bool
	remotes map[string]*remote // by address; none is empty
	count   Count
	// idled numbers the moments at which connections became idle.
	idled uint64
	// logged is when the last line was logged, and reported are the counts in it.
	logged   time.Time
	reported Count
}

// Count is what a gate has counted since its creation.
type Count struct {
	// Kind is the kind of its connections.
	Kind string
	// Open connections are open now.
	Open int
	// Closed were idle and closed in favour of another, Refused were closed at once.
	Closed, Refused int
}

// remote is an address that has connections.
type remote struct {
	open int
	idle list.List // of *Conn, in the order in which they became idle
}

// Gate returns a new gate. The kind names it in logs and counts.
func (l *Limiter) Gate(kind string, limits Limits) *Gate {
	g := &Gate{limiter: l, kind: kind, limits: limits, remotes: map[string]*remote{}, count: Count{Kind: kind}}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gates = append(l.gates, g)
	return g
}

// Counts are the counts of all gates, in the order of their creation.
func (l *Limiter) Counts() []Count {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := make([]Count, len(l.gates))
	for i, g := range l.gates {
		counts[i] = g.count
	}
	return counts
}

// Stop closes all idle connections, and from now on each that is admitted or becomes idle.
// Connections in use stay open. The counts do not include this: no bound was reached.
func (g *Gate) Stop() {
	g.limiter.mu.Lock()
	g.stopped = true
	var idle []*Conn
	for _, r := range g.remotes { // the order in which connections close has no effect
		for e := r.idle.Front(); e != nil; e = e.Next() {
			idle = append(idle, e.Value.(*Conn))
		}
	}
	g.limiter.mu.Unlock()
	for _, c := range idle {
		_ = c.Close()
	}
}

// Admit counts a new connection, idle at first. It returns nil if the gate refuses the connection.
// Then the connection is closed.
func (g *Gate) Admit(conn net.Conn) *Conn {
	c := &Conn{Conn: conn, limiter: g.limiter, address: addressOf(conn.RemoteAddr())}
	if !c.enter(g, true) {
		_ = conn.Close()
		return nil
	}
	return c
}

// enter makes a connection one of the gate's, and closes the one whose place it takes.
func (c *Conn) enter(g *Gate, idle bool) bool {
	l := c.limiter
	l.mu.Lock()
	if c.gate != nil {
		c.leave()
	}
	if g.stopped || c.closed {
		l.mu.Unlock()
		return false
	}
	victim, admitted := g.makeRoom(c.address)
	if admitted {
		g.add(c, idle)
	}
	report := g.report()
	l.mu.Unlock()
	if victim != nil {
		_ = victim.Close()
	}
	if report != nil {
		l.logger.Warn("too many connections: some were closed or refused", append(report, "address", c.address)...)
	}
	return admitted
}

// makeRoom reports whether a connection of the address may be added. If another must be closed for
// it, that one is already removed. The caller holds the lock and closes it afterwards.
func (g *Gate) makeRoom(address string) (victim *Conn, admitted bool) {
	from := g.remotes[address]
	switch {
	case from != nil && from.open >= g.limits.PerAddress:
		victim = from.longestIdle()
	case g.count.Open >= g.limits.All:
		victim = g.busiest().longestIdle()
	default:
		return nil, true
	}
	if victim == nil {
		g.count.Refused++
		return nil, false
	}
	victim.leave()
	victim.closed = true
	g.count.Closed++
	return victim, true
}

// busiest is the address with the most connections among those with an idle one, or nil. Of equal
// ones it is that whose connection has been idle for longer.
func (g *Gate) busiest() *remote {
	var busiest *remote
	for _, r := range g.remotes { // the order of the map does not matter: no two have the same sequence
		first := r.longestIdle()
		if first == nil {
			continue
		}
		if busiest == nil || r.open > busiest.open || r.open == busiest.open && first.since < busiest.longestIdle().since {
			busiest = r
		}
	}
	return busiest
}

// longestIdle is the connection that has been idle for the longest time, or nil.
func (r *remote) longestIdle() *Conn {
	if r == nil || r.idle.Len() == 0 {
		return nil
	}
	return r.idle.Front().Value.(*Conn)
}

// add counts a connection. The caller holds the lock.
func (g *Gate) add(c *Conn, idle bool) {
	r := g.remotes[c.address]
	if r == nil {
		r = new(remote)
		g.remotes[c.address] = r
	}
	r.open++
	g.count.Open++
	c.gate = g
	if idle {
		c.rest()
	}
}

// logInterval is the shortest time between two lines of a gate.
const logInterval = 10 * time.Second

// report returns what to log now, or nil. The caller holds the lock.
func (g *Gate) report() []any {
	closed, refused := g.count.Closed-g.reported.Closed, g.count.Refused-g.reported.Refused
	now := time.Now()
	if closed+refused == 0 || now.Sub(g.logged) < logInterval && !g.logged.IsZero() {
		return nil
	}
	g.logged, g.reported = now, g.count
	return []any{
		"kind", g.kind, "closed", closed, "refused", refused, "open", g.count.Open,
		"bound", g.limits.All, "bound_per_address", g.limits.PerAddress,
	}
}

// Listen returns a listener that admits the connections of another. The caller gets no refused
// connections.
func (g *Gate) Listen(at net.Listener) net.Listener { return listener{Listener: at, gate: g} }

type listener struct {
	net.Listener
	gate *Gate
}

// Accept waits for a connection that is admitted.
func (l listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if admitted := l.gate.Admit(conn); admitted != nil {
			return admitted, nil
		}
	}
}

// Observe is an [http.Server.ConnState]: a connection is in use during a request. It ignores
// connections that no gate has admitted.
func Observe(conn net.Conn, state http.ConnState) {
	c := admitted(conn)
	if c == nil {
		return
	}
	switch state {
	case http.StateActive:
		c.setIdle(false)
	case http.StateNew, http.StateIdle:
		c.setIdle(true)
	case http.StateHijacked, http.StateClosed: // Close counts it
	}
}

// admitted finds the connection of a gate below TLS, or returns nil.
func admitted(conn net.Conn) *Conn {
	for conn != nil {
		if c, is := conn.(*Conn); is {
			return c
		}
		over, is := conn.(interface{ NetConn() net.Conn })
		if !is {
			return nil
		}
		conn = over.NetConn()
	}
	return nil
}

// Conn is an admitted connection. It counts until it is closed.
type Conn struct {
	net.Conn
	limiter *Limiter
	address string

	// The rest is guarded by limiter.mu.

	gate   *Gate         // or nil: it does not count any more
	idle   *list.Element // its place among the idle ones of its address, or nil: it is in use
	since  uint64        // when it became idle, as a number that increases
	closed bool
}

// Move makes the connection one of another gate, in use. If that gate refuses it, Move closes it and
// returns false.
func (c *Conn) Move(to *Gate) bool {
	if c.enter(to, false) {
		return true
	}
	_ = c.Close()
	return false
}

// Move makes a connection, which may be below TLS, one of another gate, as [Conn.Move] does. It returns
// true and does nothing for a connection that no gate has admitted.
func Move(conn net.Conn, to *Gate) bool {
	c := admitted(conn)
	return c == nil || c.Move(to)
}

// Close closes the connection, which then no longer counts.
func (c *Conn) Close() error {
	c.limiter.mu.Lock()
	c.closed = true
	if c.gate != nil {
		c.leave()
	}
	c.limiter.mu.Unlock()
	return c.Conn.Close()
}

func (c *Conn) setIdle(idle bool) {
	c.limiter.mu.Lock()
	stop := false
	if c.gate != nil {
		switch {
		case idle && c.gate.stopped:
			stop = true
		case idle && c.idle == nil:
			c.rest()
		case !idle && c.idle != nil:
			c.wake()
		}
	}
	c.limiter.mu.Unlock()
	if stop {
		_ = c.Close()
	}
}

// rest makes the connection idle. The caller holds the lock.
func (c *Conn) rest() {
	c.gate.idled++
	c.since = c.gate.idled
	c.idle = c.gate.remotes[c.address].idle.PushBack(c)
}

// wake makes the connection used. The caller holds the lock.
func (c *Conn) wake() {
	c.gate.remotes[c.address].idle.Remove(c.idle)
	c.idle = nil
}

// leave removes the connection from the gate. The caller holds the lock.
func (c *Conn) leave() {
	if c.idle != nil {
		c.wake()
	}
	g := c.gate
	g.count.Open--
	r := g.remotes[c.address]
	if r.open--; r.open == 0 {
		delete(g.remotes, c.address)
	}
	c.gate = nil
}

// addressOf is the address by which connections are counted.
func addressOf(remote net.Addr) string {
	at, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return remote.String()
	}
	ip := at.Addr().Unmap()
	if ip.Is4() || ip.IsLinkLocalUnicast() { // the hosts of a link share the network of link-local addresses
		return ip.String()
	}
	network, err := ip.Prefix(64)
	if err != nil {
		return ip.String()
	}
	return network.String()
}
