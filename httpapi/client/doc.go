// Package client calls the HTTP API of package httpapi. The nodedrain command uses it for all its
// requests. The shapes are those of package wire.
//
// A [Client] is built from a [Config], and a Config from the environment variables that the
// compatible command reads ([FromEnv]). All calls take a context and end with it. A call that is
// not answered 200 fails with an [*Error], which holds the server's text. An [*UndecodedError] is
// an answer with another text than the expected JSON. Any other error means that there was no
// answer.
//
// Reads can wait: a [Query] with the index of the last answer is answered when there is a newer
// index, or when its wait is over. Loops over such reads wait [Pause] after a failed one.
//
// The client of a node uses [Client.Register] and a [NodeSide], and keeps what it has of its
// allocations in [NodeAllocs].
//
// The requests of an [Alloc] are answered by the allocation's node, behind any server: files, logs,
// commands in tasks, signals, restarts and statistics. [Alloc.Logs] does not connect again when its
// connection is lost: its caller requests what comes after the last frame. A command of [Alloc.Exec] is
// sent to another address only if it cannot have started.
//
// [Config] may name several servers. A client uses one until that one fails, and then the next. A
// server has failed when a connection to it fails, when it does not begin its answer in time, when
// its answer pauses for too long, and when its answer cannot be decoded. A blocking query with
// Stale and a Wait of a second has failed after two seconds; other reads have 10 s, the last
// address 30 s. Writes without an idempotency key have no limit: their outcome would not be known.
// A call tries each address at most once. It repeats reads, writes with an idempotency key, and
// writes that have changed nothing: those that were not sent, and those that a server without a
// leader refused. [Client.OnMove] reports the changes, and [OnRequest] the requests that wait.
package client
