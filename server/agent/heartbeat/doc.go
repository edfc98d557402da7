// Package heartbeat keeps a timer for each node, and returns the nodes that missed their next
// heartbeat.
//
// [Timers] is a state machine: it does not block, sleep or read a clock. Its owner reports
// heartbeats and the outcomes of writes to it, and steps it:
//
//	Heartbeat(node) ──▶ armed ── timer expires ──▶ missed ── Step ──▶ writing (down)
//	                      ▲                          │ ▲                  │
//	                      └──────── Heartbeat ───────┘ └─ WriteDone(failed)
//
// # Properties
//
//   - A node that sends a heartbeat within its TTL is never marked down.
//   - A node that sends no heartbeat is marked down. The write is retried until it is applied or the
//     node sends a heartbeat. If the node sends a heartbeat during the write, it is marked ready
//     after the write.
//   - A node that is written as disconnected keeps its timer ([Timers.Await]). When the timer expires, the
//     node is due again: its owner writes down when no allocation on it is awaited any more.
//   - The TTL grows with the number of nodes, so that all nodes together send at most
//     [Options].MaxRate heartbeats a second. A random duration of up to the same length is added,
//     so that nodes that start together do not send together.
//   - A node whose request waits for a write is alive until the write ends: the owner renews its timer.
//   - A paused process does not receive heartbeats. If the time between two calls is longer than
//     [MaxPause], every timer is delayed by that time. If the clock is set back, every timer moves
//     back with it.
//   - At most [Options].MaxWrites writes are in flight. The longest waiting ones are first.
//
// A new leader creates new timers. Each node gets the longest time that it may have from an earlier leader.
package heartbeat
