// Package presence decides when the client of a node registers the node, when it sends a heartbeat,
// when it retries a failed request, and when it logs the failures. Real and simulated clients use it.
//
// [Presence] is a state machine. It does not block and reads no clock. Its owner steps it, sends the
// request that it returns, and passes the answer to it:
//
//	Step ──▶ Register ── accepted ──▶ Heartbeat ── answered ──▶ Heartbeat after a part of the TTL
//	            ▲  └── failed: retry with backoff     │
//	            └───────── ErrNotRegistered ──────────┘
//
// # Servers that do not have the node
//
// Servers lose a node when an operator purges it, restores a state without it, or replaces all
// servers. The next heartbeat then fails with [ErrNotRegistered], and the node registers again. Other
// requests do not trigger this. All nodes wait for changes of their allocations, and after a restore
// all these requests fail at the same moment. The servers spread heartbeats over the TTL, and so the
// registrations are spread too.
package presence
