// Package journal is the story of one drain: what operators requested, when each stage began and ended, what
// the deadline took, what the servers refused, how the drain ended, and how the drain changed the health of
// each group.
//
// A [Journal] is a row of the replicated state. The FSM writes it in the entries that cause its events, so
// every server has the same one. The functions of the package are pure: times and indexes come from the entry.
// A stored journal never changes. [Journal.Copy] makes the one that an entry writes.
//
// # Bounds
//
// A journal has at most [MaxEvents] events. When it has more, it keeps the first ones and the latest ones, and
// counts the others in EventsOmitted. The texts of events are cut. The journal of an ended drain has the
// [MaxGroups] groups that were farthest below their need, and then those with the lowest numbers. It counts the
// others. So its size is at most [MaxBytes].
//
// # Health
//
// A group is in the journal from its first mark by the drain on. Its healthy allocations are counted after each
// entry, as for guarantee G1: those that run, have the verdict healthy, are not marked, and whose node can be
// reached. While several drains move allocations of a group, each of their journals has the count.
package journal
