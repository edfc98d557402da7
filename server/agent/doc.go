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
// no other address. Each connection uses TLS, with certificates ([Config].ServerTLS) or with keys
// that the servers derive from a secret ([PeerSecret]). Without both the port is closed, and the
// server is the only one of its cluster. The first byte inside TLS names the protocol: 'r' for
// raft, 'h' for HTTP. So every server that has the leader can forward an
// HTTP request to it. A forwarded request is not forwarded again.
//
// When the leader is lost, this server sends a request that has not reached it to the next
// leader. It sends a read again even if the read has reached the lost leader, so a blocking
// query continues. It answers a write that has reached the lost leader with 500, and the text
// means that the write may have been made. A leader that does not answer counts as lost: an
// attempt ends when this server has another leader, when it has none for
// [Config].LeaderWait, and after 30 s without an answer. A blocking query has no such limit.
//
// A leader passes plans of drains to the other servers: see [httpapi.Peers].Pass.
//
// # Membership
//
// Servers bootstrap a new cluster if all of them have its voters ([Config].Voters), or when they
// have found as many servers as they expect ([Config].BootstrapExpect). In the second case the
// server whose name comes first bootstraps the cluster, after all servers have promised to join
// no other new cluster.
//
// A server without a cluster, or with another address than its cluster has, requests that the members
// add it, until they do. It finds the members at [Config].Join and in its
// log. Before the leader adds a server, it requests the name and the cluster of the server at that
// address: an absent voter could cost the quorum, and two servers with logs of different clusters
// would damage each other's state. [Agent.Leave] removes this server, [httpapi.Peers].Remove
// removes a dead one.
//
// # Versions
//
// A cluster may be upgraded server by server. The leader requests from every server of the cluster,
// by HTTP over the servers' port, the cluster versions that it understands
// ([cluster.Versions]). The leader assumes that a server that does not answer understands only
// the present version. When all servers understand a higher version, the leader raises the
// version by a raft entry. Until then every server writes entries that the oldest server can
// read. A new cluster has version 1, and the leader makes no change for a request before it has once
// tried to raise that. The leader does not add a server that does not understand the version of the
// cluster. A server that was downgraded to a build without that version stops at the first entry or
// snapshot that it does not understand: see [Agent.Failed].
//
// # Reads and writes
//
// This server answers a stale read from its own state. The leader answers a consistent read after
// [server.Server.Consistent]. Only the leader writes. It first waits until its state contains the
// entries of earlier leaders. Errors are those of package httpapi, and show whether a write may
// have been made.
//
// # Heartbeats
//
// The leader keeps a timer for every node that is not down: see package heartbeat. When the timer
// expires, it writes the node as disconnected, and the FSM decides in the state of the apply whether
// the node is disconnected or down: see [scheduler.AwayStatus]. A disconnected node keeps its timer,
// until it is down. A node is ready at its next heartbeat. The leader starts a timer for each node
// that an applied entry registers or makes ready, even if the caller of the write has disconnected.
// A new leader starts all timers again.
//
// # The data directory
//
// Package datadir manages the data directory. [New] verifies the log and the newest snapshot. If a
// part of the directory is lost, New returns an error that wraps [datadir.ErrUnsafe]: the server
// must not vote. The leader acknowledges a write when a majority of the servers have synced it to
// their logs. Neither a killed process nor a power failure loses an acknowledged write.
//
// # Goroutines
//
// An agent owns the goroutines of its server, and these:
//
//   - one that serves HTTP to clients and one that serves HTTP to peers; net/http adds one for each
//     connection
//   - one that accepts connections at the servers' port, and one for each connection there that has
//     not sent its first byte
//   - one that observes leadership, and one for each request that is forwarded or passed
//   - one that searches for a cluster, until the server is in it
//   - one for each change of the cluster's servers in progress
//   - on the leader: one that requests the versions of servers, one for each of these requests, one
//     that steps the heartbeat timers, and one for each write of a node's status
//
// [Agent.Stop] ends all of them and waits for them.
package agent
