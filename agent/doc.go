// Package agent is one process of a cluster: a [server.Server] with the sockets,
// the disk and the peers that it needs outside a test. [New] starts one,
// [Agent.Stop] ends it.
//
//	clients ──HTTP──▶ HTTPAddr ─▶ httpapi ─┬─ leads? ─▶ reader, writer ─▶ server
//	                                       └─ else: Forward ──┐
//	peers ◀──────▶ ServerAddr ─┬ 'r' ─▶ raft                  │
//	                           └ 'h' ─▶ inner HTTP ◀──────────┘
//
// # One port for servers
//
// Everything between servers goes over one TCP port, whose address is the only one
// that raft's configuration holds. The first byte of a connection, inside TLS if
// there is any, says what it is for: 'r' for raft, 'h' for HTTP. So whoever knows
// the leader can pass an HTTP request on to it, and no other addresses have to be
// exchanged. A request that was passed on once is not passed on again.
//
// If the leader is lost, a request that has not reached it goes to the next one,
// and so does any read: a blocking query waits on. A write that has reached it is
// answered 500, and the text says that it may have been made. Lost is also who is
// silent: an attempt ends as soon as this server knows another leader, or none for
// [Config].LeaderWait, and after 30 s without an answer, unless it waits for news.
//
// # Membership
//
// A new cluster is begun by servers that were all given its voters
// ([Config].Voters), or that wait until they have found as many as they expect
// ([Config].BootstrapExpect). Then the one whose name comes first begins it, after
// all of them have promised to begin no other. A server that is in no cluster, or
// whose address is not the one its cluster knows, asks any server of it
// ([Config].Join, and whom its log tells of) to be let in, and goes on asking until
// it is. The leader asks it back before it does: a vote where nobody is would be missed,
// and a log of another cluster, which it knows by the cluster's id, would end both.
// [Agent.Leave] takes it out again, [httpapi.Peers].Remove one that is dead.
//
// # Versions
//
// A cluster may be upgraded server by server. The leader asks every server of the cluster,
// by HTTP over the servers' port, which cluster versions it understands
// ([cluster.Versions]). A server that does not answer may understand none but the present
// one. When all understand a higher one, the leader raises the version by an entry; until
// then every server writes what the oldest one reads. A server that does not understand
// the version of the cluster is not let in. One that was downgraded below it stops at the
// first entry or snapshot that it does not understand: see [Agent.Failed].
//
// # Reads and writes
//
// A read is answered from the state as this server knows it, or after
// [server.Server.Consistent] on the leader. Writes are the leader's: before one is
// decided upon, the state shows what earlier leaders wrote. Errors are those of
// package httpapi, and say whether a write may have been made.
//
// # Heartbeats
//
// The leader waits for every node that is not down, by package heartbeat. A node
// that is not heard in time becomes down, one that is heard again ready. Whom it waits
// for follows the log, whatever those who asked for a write have learned of it. A new
// leader begins all waits anew.
//
// # The data directory
//
//	LOCK              held while a process uses the directory
//	name              the server's name, for good
//	cluster           the id of its cluster
//	promise           with whom it has promised to begin one
//	raft/log.db       raft's log and its vote (hashicorp/raft-boltdb)
//	raft/snapshots/   the last three snapshots of the state
//
// A write is acknowledged when most servers have it in their logs, synced: a
// process that is killed, or a machine that loses power, loses none of it.
//
// # Goroutines
//
// An agent owns, besides those of its server: one that serves HTTP to clients and
// one to peers, with net/http's own for each connection; one that accepts at the
// servers' port, and one for each connection there that has not said what it is
// for; one that follows who leads, and one for each request being passed on; one that
// looks for a cluster, until the server is in it; one for each change of the servers
// under way; and on the leader one that asks for versions, one for each server being
// asked, and one for each status of a node being written.
// [Agent.Stop] ends and joins them all.
package agent
