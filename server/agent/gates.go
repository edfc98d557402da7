package agent

import (
	"github.com/seed-f9cf0b39/nodedrain/server/agent/connlimit"
	"github.com/seed-f9cf0b39/nodedrain/server/telemetry"
)

// gates bound the connections of both ports. A connection of one kind takes no place of another.
type gates struct {
	limiter *connlimit.Limiter
	// http are the connections of clients to the API.
	http *connlimit.Gate
	// unidentified are the connections to the servers' port that have not yet shown a certificate and
	// sent their protocol.
	unidentified *connlimit.Gate
	// sessions are the connections over which this server reaches the clients of nodes.
	sessions *connlimit.Gate
	// forwarded are the HTTP connections of other servers, raft those of raft.
	forwarded, raft *connlimit.Gate
}

// minPeerConns is the least bound on connections to the servers' port. A server needs about eight of
// a peer, and several servers may share an address.
const minPeerConns = 64

// newGates derives the bounds of the servers' port from those of the HTTP port. By default all of
// them together are less than the files that the process may have open.
func newGates(c *Config) gates {
	l := connlimit.New(c.Logger.Named("connections"))
	most := max(minPeerConns, c.Conns.All)
	few := max(minPeerConns, c.Conns.All/4)
	return gates{
		limiter:      l,
		http:         l.Gate("http", c.Conns),
		unidentified: l.Gate("unidentified", connlimit.Limits{All: few, PerAddress: few / 2}),
		forwarded:    l.Gate("forwarded", connlimit.Limits{All: 2 * most, PerAddress: most}),
		sessions:     l.Gate("session", connlimit.Limits{All: few, PerAddress: few}),
		raft:         l.Gate("raft", connlimit.Limits{All: few, PerAddress: few / 2}),
	}
}

// stop closes HTTP connections that are idle now or later: a server that shuts down waits for
// seconds for a connection that has not sent a request yet.
func (g *gates) stop() {
	if g.limiter == nil { // the agent did not start
		return
	}
	g.http.Stop()
	g.forwarded.Stop()
}

// counts are the counts for a scrape.
func (g *gates) counts() []telemetry.Connections {
	counts := g.limiter.Counts()
	list := make([]telemetry.Connections, len(counts))
	for i, c := range counts {
		list[i] = telemetry.Connections(c)
	}
	return list
}
