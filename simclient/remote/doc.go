// Package remote has simulated clients play against real servers: it runs a
// [simclient.Fleet] whose nodes register, send heartbeats, learn what to run and
// report, as clients of their own would.
//
// [Run] does so over the HTTP API, from any process and against any servers. A
// server that is down, silent, or that knows no leader, is left for the next one of
// [Config].Addresses, and whatever was not taken is said again. [KeepAlive] is
// one node's registration and heartbeats alone, for whoever has servers at hand
// that are reached in another way.
//
// # Each node for itself
//
// Each node asks with a connection and a secret of its own, so that servers count
// it as the client that it is. It waits for news of its allocations by blocking
// queries that the leader answers: it never sees an older state after a newer one.
//
// # Goroutines
//
// Run steps the fleet in its caller's goroutine. It owns two for each node, for
// heartbeats and for news, and while a batch is reported one for the batch and one
// for each node in it. It joins them all before it returns.
package remote
