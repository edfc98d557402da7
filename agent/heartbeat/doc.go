// Package heartbeat keeps the deadline of each node's next heartbeat, and returns the nodes that
// missed it.
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
//   - A node that sends a heartbeat within its TTL is never marked down.
//   - A node without a heartbeat is marked down. The write is retried until it is applied or the
//     node sends a heartbeat. After a heartbeat during that write, the node is marked ready
//     when the write is settled.
//   - The TTL grows with the number of nodes, so that all of them together send heartbeats
//     at a rate of [Options].MaxRate at most. A random part of up to the same length is
//     added, so that nodes that began together spread out.
//   - A paused process cannot tell that nodes were silent: a pause between two calls beyond
//     [MaxPause] delays every timer by the pause. If the clock is set back, every timer moves
//     back with it.
//   - At most [Options].MaxWrites writes are in flight, those of the longest wait first.
//
// A new leader makes new timers. Each node gets the longest time that an earlier leader may
// have given it.
package heartbeat
