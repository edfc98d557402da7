// Package httpapi is the HTTP API of a cluster with a node drainer: handlers over the small
// interfaces of a [Backend]. The nomad command, its Go client and ours can use it. Begin with
// [NewHandler]. docs/api.md lists every route with its parameters.
//
// # Compatible routes and our own
//
// Most routes answer as the reference API does: the same paths, parameters, headers and
// JSON, the same status codes and texts. So tools that drain nodes of the reference drain
// ours. Our own routes have paths that the reference does not have (GET
// /v1/node/{id}/drain, /v1/drains, PUT /v1/drain/{id}/confirm, /v1/client/…,
// /v1/operator/raft/join), and our own fields stand beside the compatible ones: the drain's id and
// progress, why each allocation is still there, how the drain ended. One route differs: an eligibility request changes the
// node in its path, and ignores the node in its body.
//
// Package wire has the shapes of both.
//
// # From request to answer
//
// Every request takes the same steps, in request.go. The server reads its parameters,
// refuses a caller without rights, and reads the body. If another server leads and must
// answer, it forwards the request. Else it identifies the caller, and the handler of the
// route answers, in the file of its noun. A handler of writes calls the [Writer]. A handler
// of reads returns the index of the rows that it read, and a function that makes the answer
// after the wait.
//
// # Consistency
//
// The leader makes writes, once its state shows the entries of earlier leaders
// ([Reader.CaughtUp]), and answers when the state shows the write. The leader answers reads
// too. They show every write that was acknowledged before: the leader checks that it still
// leads ([Reader.Consistent]), which costs a round among the servers. A read with the stale
// parameter is answered by the server that receives it, from its own state;
// X-Nomad-LastContact is the time since the last message of a leader. The command's monitor
// reads nodes and allocations with stale. Simulated clients do not: they must not read an
// older state after a newer one.
//
// A request is forwarded once. If the second server does not lead either, the answer is 500
// "No cluster leader".
//
// Any server answers a plan of drains from its own state. A leader passes the request to another
// server, whose state then shows every entry that the leader's showed.
//
// # Waiting
//
// Every read has an index: the newest raft index of the rows that it shows, in
// X-Nomad-Index, never zero. A reader that sends the index back waits for a newer one, for
// its wait or 300 seconds at most, and up to a sixteenth more, so that readers that came
// together leave at different times. After the wait the answer holds the present rows with
// the old index.
//
// A read of one object waits on that object, a list on its table. The lists of a node's, a
// job's or an evaluation's allocations, and of a job's evaluations, wait on their rows. When
// the newest row is purged, its index is lost. So a reader is answered when rows are
// deleted, too, and at once if no row has its index any more. It misses one case: a row that
// was not the newest and that was deleted between two of its requests. The next change or
// the end of its wait shows that.
//
// A node's client does not read whole lists. It requests what the servers have changed since the
// index of its last answer, and waits for that alone. The answer to such a request has the index of
// the state.
//
// Waiting readers are bounded, in total and for each client ([Options]).
//
// # Rights
//
// With an [Access], a token needs the right to read, to write or to register nodes. The status
// of the cluster needs no right. The secret of a node is a valid token for what the client of
// that node does: it reads the node's allocations, registers, sends heartbeats and reports.
// testdata/rights.txt lists for every route who may use it. Answers and logs hold no tokens and
// no secrets, and a filter cannot guess them. A caller that may not write receives no environment
// and no driver configuration of a task.
//
// # Errors
//
// An error is a status code and a line of plain text. Where the reference's text is known it
// is the same, byte for byte. Otherwise:
//
//	400  the request is wrong; the text describes how
//	403  the token does not have the right, or is missing
//	404  the path names something that does not exist
//	405  the path has other methods; Allow lists them
//	413  the body is larger than [Options.MaxBody], its route's bound or an entry of the log
//	429  too many readers wait already
//	500  the request failed; the text names it if the write may have happened
//	503  the server cannot write or read now: retry
//
// An answer other than 200 and 500 means that nothing has changed.
//
// # Goroutines
//
// The package starts none. A reader waits in the goroutine of its request, and ends with the
// request's context.
package httpapi
