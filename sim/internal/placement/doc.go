// Package placement checks the plans of a scheduler in a simulated world. A [Judge] reads the rows
// of the state after each plan. It shares no code with package scheduler.
//
// The guarantee is S1. The drainer's guarantees are G1 to G12. After each plan:
//
//   - A node that got an allocation has enough CPU, memory, disk and GPU for all its allocations,
//     and not more allocations than its limit. An allocation uses its resources until its client
//     reports its end.
//   - A new allocation has as many devices of the node as its tasks request, of the requested
//     kinds. Each device is healthy, and no other allocation on the node has it.
//   - That node is ready and eligible, does not drain, is in the pool, the datacenters and the classes
//     of the job and the group, and has as many cores as the group needs.
//   - A new allocation belongs to the current version of its job, and has the resources that this
//     version specifies.
//   - A new allocation has a slot. A group has as many slots as its count; a group of a system or
//     sysbatch job has one on each node. Canaries have slots of their own. No two slots of a group
//     have the same name.
//   - An allocation has at most one replacement, and each of the two names the other. A replaced
//     allocation has left its slot.
//   - A replacement stands by beside an allocation that keeps its slot only if a drain requests it. It has the
//     same name, and no slot. A group has at most as many of them as requests. When none requests it any more, it is
//     stopped. A blocked evaluation counts those that are requested and missing.
//   - An allocation that ended by itself is replaced as often and not before the time that the policy of
//     its group permits. It holds its slot until then. What a drain or a lost node moves does not wait.
//   - A job without a pending evaluation has neither too many nor too few allocations. Its blocked
//     evaluation counts exactly the missing allocations. No allocation of a system or sysbatch job
//     runs outside of the pool, the datacenters and the classes.
//   - A job has at most one blocked evaluation.
//
// When the effects of all faults have ended and nothing happens:
//
//   - No replacement is overdue.
//   - No group with a blocked evaluation has room on a node, if it requests resources only.
//
// A scenario may place allocations without the scheduler, and break these rules. The judge reports
// only what a plan breaks.
package placement
