// Package httpapi is the HTTP API of a cluster with a node drainer: handlers over the
// small interfaces of a [Backend], which the nomad command, its Go client and ours can
// drive. docs/api.md lists every route with its parameters.
//
// # Compatible, and ours
//
// The larger part answers as the reference API does: the same paths, parameters, headers
// and JSON, the same status codes and texts, so that tools that drain nodes of the
// reference drain ours. The rest is ours and stands apart, on paths that the reference
// does not have (GET /v1/node/{id}/drain, /v1/drains, /v1/client/…, /v1/operator/raft/join)
// or in fields beside the compatible ones: which drain it is, how far it is, why each
// allocation is still there, how it ended. In one thing it does better where it could do
// the same: the node that the path of an eligibility request names is the one that changes,
// whatever the body says.
//
// Package wire has the shapes of both.
//
// # From request to answer
//
// A request goes the same way whatever it asks, in request.go: its parameters are read;
// whoever surely may not ask is turned away; its body is read; if another server leads and
// has to answer, it is passed on; who asks is found out; then the noun's own file answers. A write hands its noun to the [Writer]. A
// read says what it looks at and how new that is, and how to make an answer of it once
// there is nothing more to wait for.
//
// # Consistency
//
// Writes are the leader's to make, once its state shows what earlier leaders wrote
// ([Reader.CaughtUp]), and are answered when that shows them. Reads are the leader's too, and show every write that was
// acknowledged before they were asked: the leader makes sure that it still leads
// ([Reader.Consistent]), which costs a round among the servers. A read that says stale is
// answered by whichever server is asked, from the state it has; X-Nomad-LastContact says
// for how long it has not heard of a leader. The command's monitor says stale of nodes
// and their allocations; simulated clients do not, which are never to see an older state
// after a newer one.
//
// A request is passed on once. Then the leader has changed hands twice, or nobody leads,
// and the answer is 500 "No cluster leader".
//
// # Waiting
//
// Every read has an index: the raft index of the newest of what it shows, in
// X-Nomad-Index, and never zero. A reader that sends it back waits until there is
// something newer, for wait or 300 seconds at most, and up to a sixteenth of that more so
// that those who came together do not leave together. When its time is over it is told
// what there is, with the index it had.
//
// A read of one thing waits on that thing alone, a list on its table. The lists of a
// node's, a job's or an evaluation's allocations, and of a job's evaluations, wait on
// their rows: purging the newest row takes its index away, so a reader is answered when
// rows go, too, and one that comes with an index that no row has any more is told at once.
// What it cannot notice is that a row went between two of its requests which was not the
// newest: that it learns with the next change, or when its time is over.
//
// Readers that wait are bounded, in all and for each client ([Options]).
//
// # Who may
//
// With an [Access], a token needs the right to read or to write; the status of the cluster
// is told to everybody. The secret of a node will do as the token for what is about that
// node: to read it, its allocations and its drain, to drain it, and for all that a client
// does. Neither tokens nor secrets are told or logged, and a filter cannot guess them.
//
// # Errors
//
// An error is a status code and a line of plain text, byte for byte the reference's where
// its behaviour is known. Where it is not:
//
//	400  the request is wrong, and says how
//	403  this token, or none, may not do that
//	404  what the path names does not exist
//	405  the path has other methods; Allow says which
//	413  the body is larger than [Options.MaxBody] or what its route takes, or than an entry
//	     of the log may be
//	429  too many readers wait already
//	500  it failed; if the write may have been made all the same, the text says so
//	503  the write was surely not made: ask again
//
// Whatever the answer, unless it is 200 or 500 nothing has changed.
//
// # Goroutines
//
// The package starts none. A reader that waits does so in the goroutine of its request,
// and ends with the request's context.
package httpapi
