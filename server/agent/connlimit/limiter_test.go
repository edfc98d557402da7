package connlimit_test

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/connlimit"
)

// fixture is a gate whose connections come from any address.
type fixture struct {
	*testing.T
	limiter *connlimit.Limiter
	*connlimit.Gate
	log strings.Builder
}

func newFixture(t *testing.T, limits connlimit.Limits) *fixture {
	f := &fixture{T: t}
	f.limiter = connlimit.New(hclog.New(&hclog.LoggerOptions{Output: &f.log}))
	f.Gate = f.limiter.Gate("http", limits)
	return f
}

// wire is the server's end of a connection.
type wire struct {
	net.Conn
	remote net.Addr
	closed bool
}

func (w *wire) RemoteAddr() net.Addr { return w.remote }

func (w *wire) Close() error {
	w.closed = true
	return w.Conn.Close()
}

// connection is a connection as its server has it.
type connection struct {
	*connlimit.Conn // nil if it was refused
	*wire
}

func (c connection) Close() error { return c.Conn.Close() }

func (f *fixture) connect(from string) connection {
	f.Helper()
	at := result.Of(net.ResolveTCPAddr("tcp", net.JoinHostPort(from, "5000"))).OK(f)
	near, far := net.Pipe()
	f.Cleanup(func() { _ = far.Close() })
	w := &wire{Conn: near, remote: at}
	return connection{f.Admit(w), w}
}

// is reports to the gate what the HTTP server does with a connection.
func (c connection) is(state http.ConnState) { connlimit.Observe(c.Conn, state) }

func (f *fixture) count() connlimit.Count { return f.limiter.Counts()[0] }

// At the bound of an address, the connection of that address that has been idle for the longest time
// makes room. A connection in use never does.
func TestGate_boundsEachAddress(t *testing.T) {
	t.Parallel()
	f := newFixture(t, connlimit.Limits{All: 10, PerAddress: 3})
	operator := f.connect("192.0.2.1")
	busy, first, second := f.connect("192.0.2.9"), f.connect("192.0.2.9"), f.connect("192.0.2.9")
	busy.is(http.StateActive)
	first.is(http.StateActive)
	first.is(http.StateIdle) // again, after the second
	must.NotNil(t, f.connect("192.0.2.9").Conn)
	must.True(t, second.closed)
	third := f.connect("192.0.2.9")
	must.True(t, first.closed)
	must.Eq(t, connlimit.Count{Kind: "http", Open: 4, Closed: 2}, f.count())

	// All are in use: one more is refused.
	third.is(http.StateActive)
	fourth := f.connect("192.0.2.9")
	fourth.is(http.StateActive)
	refused := f.connect("192.0.2.9")
	must.Nil(t, refused.Conn)
	must.True(t, refused.closed)
	must.Eq(t, connlimit.Count{Kind: "http", Open: 4, Closed: 3, Refused: 1}, f.count())

	must.False(t, busy.closed)
	must.False(t, operator.closed)
	must.NoError(t, busy.Close())
	must.NoError(t, busy.Close()) // counts once
	must.NotNil(t, f.connect("192.0.2.9").Conn)
	must.Eq(t, 4, f.count().Open)
}

// At the bound of all, the address with the most connections loses an idle one. The operator, who has
// one connection, keeps it.
func TestGate_boundsAll(t *testing.T) {
	t.Parallel()
	f := newFixture(t, connlimit.Limits{All: 5, PerAddress: 5})
	operator := f.connect("192.0.2.1")
	var flood []connection
	for range 4 {
		flood = append(flood, f.connect("192.0.2.9"))
	}
	second := f.connect("192.0.2.2")
	must.NotNil(t, second.Conn)
	must.True(t, flood[0].closed)
	for _, c := range flood[1:] {
		c.is(http.StateActive)
	}
	// The flood has no idle one. Of the two addresses with one each, the longer idle one loses it.
	third := f.connect("192.0.2.3")
	must.NotNil(t, third.Conn)
	must.True(t, operator.closed)
	must.False(t, second.closed)
	second.is(http.StateActive)
	third.is(http.StateActive)
	must.Nil(t, f.connect("192.0.2.4").Conn)
	must.Eq(t, connlimit.Count{Kind: "http", Open: 5, Closed: 2, Refused: 1}, f.count())
}

// Addresses are counted as hosts have them.
func TestGate_addresses(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, a, b string
		same       bool
	}{
		{"IPv4", "192.0.2.1", "192.0.2.2", false},
		{"IPv4 in IPv6", "192.0.2.1", "::ffff:192.0.2.1", true},
		{"one network of a host", "2001:db8::1", "2001:db8::ffff:1", true},
		{"two networks", "2001:db8::1", "2001:db8:0:1::1", false},
		{"two hosts of a link", "fe80::1", "fe80::2", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, connlimit.Limits{All: 10, PerAddress: 1})
			first := f.connect(c.a)
			f.connect(c.b)
			must.Eq(t, c.same, first.closed)
		})
	}
}

// A connection that moves takes a place of the other gate, and frees its own.
func TestConn_Move(t *testing.T) {
	t.Parallel()
	f := newFixture(t, connlimit.Limits{All: 1, PerAddress: 1})
	raft := f.limiter.Gate("raft", connlimit.Limits{All: 1, PerAddress: 1})
	peer := f.connect("192.0.2.1")
	must.True(t, peer.Move(raft))
	second := f.connect("192.0.2.1")
	must.NotNil(t, second.Conn)
	must.False(t, second.Move(raft)) // the peer's is in use
	must.True(t, second.closed)
	must.Eq(t, []connlimit.Count{{Kind: "http"}, {Kind: "raft", Open: 1, Refused: 1}}, f.limiter.Counts())

	// One that made room for another does not come back by moving.
	must.NoError(t, peer.Close())
	third := f.connect("192.0.2.1")
	f.connect("192.0.2.1")
	must.True(t, third.closed)
	must.False(t, third.Move(raft))
	must.Eq(t, 0, f.limiter.Counts()[1].Open)
}

// A stopped gate closes what is idle, now and later, and waits for what is in use.
func TestGate_Stop(t *testing.T) {
	t.Parallel()
	f := newFixture(t, connlimit.Limits{All: 10, PerAddress: 10})
	idle, busy := f.connect("192.0.2.1"), f.connect("192.0.2.1")
	busy.is(http.StateActive)
	f.Stop()
	must.True(t, idle.closed)
	must.False(t, busy.closed)
	busy.is(http.StateIdle)
	must.True(t, busy.closed)
	must.Nil(t, f.connect("192.0.2.1").Conn)
	must.Eq(t, connlimit.Count{Kind: "http"}, f.count())
}

// A flood is one line in ten seconds.
func TestGate_logsRarely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, connlimit.Limits{All: 2, PerAddress: 1})
		flood := func() {
			for range 100 {
				f.connect("192.0.2.9")
				time.Sleep(time.Millisecond)
			}
		}
		flood()
		must.Eq(t, 1, strings.Count(f.log.String(), "\n"))
		must.StrContains(t, f.log.String(), "too many connections: some were closed or refused: "+
			"kind=http closed=1 refused=0 open=1 bound=2 bound_per_address=1 address=192.0.2.9")
		time.Sleep(10 * time.Second)
		flood()
		must.Eq(t, 2, strings.Count(f.log.String(), "\n"))
		must.StrContains(t, f.log.String(), "closed=99 refused=0") // all since the line before
	})
}

// Zero limits come from the number of files that the process may have open.
func TestLimits(t *testing.T) {
	t.Parallel()
	byDefault := connlimit.Limits{}.WithDefaults()
	must.Between(t, connlimit.MinDefault, byDefault.All, connlimit.MaxDefault)
	must.Eq(t, byDefault.All/2, byDefault.PerAddress)
	must.Eq(t, connlimit.Limits{All: 1, PerAddress: 1}, connlimit.Limits{All: 1}.WithDefaults())
	must.Eq(t, connlimit.Limits{All: 7, PerAddress: 9}, connlimit.Limits{All: 7, PerAddress: 9}.WithDefaults())
	must.NoError(t, byDefault.Validate())
	must.EqError(t, connlimit.Limits{All: -1}.Validate(), "the limit of all connections must not be negative")
	must.EqError(t, connlimit.Limits{PerAddress: -1}.Validate(), "the limit of an address must not be negative")
	var log strings.Builder
	byDefault.Warn(hclog.New(&hclog.LoggerOptions{Output: &log}))
	must.Eq(t, "", log.String())
}
