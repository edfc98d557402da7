// Package agent is one process of a cluster: a [server.Server] with the sockets, the disk
// and the peers that it needs outside a test. [New] starts one, [Agent.Stop] ends it.
//
//	clients ──HTTP──▶ HTTPAddr ─▶ httpapi ─┬─ leads? ─▶ reader, writer ─▶ server
//	                                       └─ else: Forward ──┐
//	peers ◀──────▶ ServerAddr ─┬ 'r' ─▶ raft                  │
//	                           └ 'h' ─▶ inner HTTP ◀──────────┘
//
// # One port for servers
//
// All traffic between servers uses one TCP port. Raft's configuration holds its address, and
// no other address. The first byte of a connection, inside TLS if there is any, names the
// protocol: 'r' for raft, 'h' for HTTP. So every server that knows the leader can forward an
// HTTP request to it. A forwarded request is not forwarded again.
//
// If the leader is lost, a request that has not reached it goes to the next leader. A read
// goes there even if it has: a blocking query continues. A write that has reached the lost
// leader is answered 500, and the text says that it may have been made. A leader that does
// not answer counts as lost: an attempt ends when this server knows another leader, or none
// for [Config].LeaderWait, and after 30 s without an answer, unless it is a blocking query.
//
// # Membership
//
// Servers begin a new cluster if all of them have its voters ([Config].Voters), or when they
// have found as many servers as they expect ([Config].BootstrapExpect). Then the server whose
// name comes first begins it, after all of them have promised to begin no other.
//
// A server without a cluster, or with another address than its cluster knows, asks members to
// add it until they do. It finds them at [Config].Join and in its log. The leader first asks
// the server at that address: a vote of an absent server could cost the quorum, and a log of
// another cluster, which has another id, would damage both. [Agent.Leave] removes the server
// itself, [httpapi.Peers].Remove a dead one.
//
// # Versions
//
// A cluster may be upgraded server by server. The leader asks every server of the cluster,
// by HTTP over the servers' port, for the cluster versions that it understands
// ([cluster.Versions]). A server that does not answer may understand only the present one.
// When all understand a higher version, the leader raises the version by an entry. Until then
// every server writes entries that the oldest one reads. The leader does not add a server
// that does not understand the version of the cluster. A server that was downgraded below it
// stops at the first entry or snapshot that it does not understand: see [Agent.Failed].
//
// # Reads and writes
//
// A read is answered from the state of this server, or on the leader after
// [server.Server.Consistent]. The leader makes writes: it decides from a state that shows the
// entries of earlier leaders. Errors are those of package httpapi, and say whether a write
// may have been made.
//
// # Heartbeats
//
// The leader expects heartbeats of every node that is not down, by package heartbeat. A node
// without a heartbeat in time becomes down, and ready with the next one. The set of nodes
// follows the log, even if the caller of a write has disconnected. A new leader starts all
// timers again.
//
// # The data directory
//
// Package datadir keeps it. [New] verifies the log and the newest snapshot. It refuses a directory
// that has lost a part, by an error that wraps [datadir.ErrUnsafe]: the server must not vote.
// A write is acknowledged when most servers have synced it to their logs. A killed process
// or a loss of power loses no acknowledged write.
//
// # Goroutines
//
// An agent owns the goroutines of its server, and these: one that serves HTTP to clients and
// one to peers, with net/http's own for each connection; one that accepts at the servers'
// port, and one for each connection there that has not sent its first byte; one that follows
// leadership, and one for each forwarded request; one that looks for a cluster, until the
// server is in it; one for each change of the servers in progress; and on the leader one that
// asks for versions, one for each server that it asks, and one for each write of a node's
// status. [Agent.Stop] ends and joins them all.
package agent
