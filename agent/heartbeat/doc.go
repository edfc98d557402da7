// Package heartbeat keeps the time by which the nodes of a cluster have to be
// heard, and says which were not.
//
// [Timers] is a step machine: it neither blocks, sleeps nor reads a clock. Whoever
// owns it tells it who was heard and what became of the writes it asked for, and
// steps it:
//
//	Heard(node) ──▶ armed ── its time passes ──▶ missed ── Step ──▶ written down
//	                  ▲                            │                    │
//	                  └────────── Heard ───────────┘◀── Settle(failed) ─┘
//
// # What holds
//
//   - A node that was heard within its TTL is never called down.
//   - A node that was not heard is called down until somebody has written it, or
//     it is heard after all. One that is heard while it is being written down is
//     called ready as soon as that is settled.
//   - The more nodes there are the longer is their TTL, so that all of them
//     together are heard at a rate of [Options].MaxRate at most. Each has up to as
//     long again by chance, so that those which began together do not stay
//     together.
//   - Whoever was not looking cannot say that nobody called: a pause between two
//     calls beyond [MaxPause] lengthens every wait by the pause, and a clock that
//     is set back takes every wait with it.
//   - At most [Options].MaxWrites are being written at a time, those that waited
//     longest first.
//
// A leader that begins makes new timers, in which every node has the longest time
// that an earlier leader may have given it.
package heartbeat
