// Package heartbeat keeps the times by which heartbeats of nodes are due, and reports the
// nodes that missed them.
//
// [Timers] is a step machine: it neither blocks, sleeps nor reads a clock. Its owner reports
// heartbeats and the answers of writes to it, and steps it:
//
//	Heard(node) ──▶ armed ── its time passes ──▶ missed ── Step ──▶ written down
//	                  ▲                            │                    │
//	                  └────────── Heard ───────────┘◀── Settle(failed) ─┘
//
// # Properties
//
//   - A node that is heard within its TTL is never marked down.
//   - A node that is not heard is marked down, and the write is retried, until it is written
//     or the node is heard. A node that is heard during that write is marked ready once the
//     write is settled.
//   - The TTL grows with the number of nodes, so that all of them together send heartbeats
//     at a rate of [Options].MaxRate at most. A random part of up to the same length is
//     added, so that nodes that began together spread out.
//   - A paused process cannot tell that nodes were silent: a pause between two calls beyond
//     [MaxPause] delays every timer by the pause. If the clock is set back, every timer moves
//     back with it.
//   - At most [Options].MaxWrites writes are in flight, the longest waiting first.
//
// A new leader makes new timers. Each node gets the longest time that an earlier leader may
// have given it.
package heartbeat
