// Package remote runs simulated clients against real servers. The nodes of a
// [simclient.Fleet] register, send heartbeats, read their allocations and report them, as
// real clients do.
//
// [Run] does so over the HTTP API, from any process. If a server is down, does not answer or has
// no leader, the node uses the next one of [Config].Addresses. It retries failed requests. If the
// servers no longer have a node, or its secret, the node registers again. [KeepAlive] performs
// only the registration and the heartbeats of one node, for callers that reach the servers in another
// way.
//
// # Each node by itself
//
// Each node has its own connections and its own secret, so that servers count it as a client.
// It waits for changes of its allocations with blocking queries, and reads only what the servers
// have changed. The leader answers them, so the node never reads an older state after a newer one.
// An answer of another cluster stops nothing: the node keeps what it runs, and logs a warning.
//
// # Goroutines
//
// Run steps the fleet in its caller's goroutine. It owns two goroutines for each node, for
// heartbeats and for changes, and during a batch one for the batch and one for each node in
// it. All of them have ended when it returns.
package remote
