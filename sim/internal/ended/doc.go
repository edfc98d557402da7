// Package ended compares the ends of drains in a simulated world with the processes of the
// machines. A [Judge] reads the rows of the state and the processes, which the doubles of drivers
// or the simulated clients count without the rows. It shares no code with the drainer.
//
// It is a part of G5, truth. Package witness judges by rows that a record counts what nothing
// confirms. This package judges that what the servers take as confirmed is true:
//
//   - A drain has the outcome complete only if no task runs of an allocation that had to leave.
//     These are the allocations that the node had at the beginning of the drain or at its end,
//     except those that the request excludes, and on a node with the real client also those of
//     which the servers have no row. With the policy marked a drain does not wait for
//     their end.
//   - The record of a drain with another outcome counts at least the allocations that had to leave and
//     of which a task runs at the end. It counts none only when no task of them runs, or when an
//     operator has confirmed the drain. A cancelled drain and one whose node was deleted are not judged,
//     nor are storage plugins if the drain ignores system jobs.
//   - When time confirms the end of an allocation, none of its tasks runs. If a clock of a server
//     was wrong, this is not judged: the servers compare times of two clocks.
//
// An allocation that a scenario ended in the state only is not judged, and nothing that an operator
// has confirmed.
package ended
