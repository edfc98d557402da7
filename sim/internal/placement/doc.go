// Package placement judges the plans of a scheduler in a simulated world. A [Judge] looks at the
// state after each plan and decides from its rows alone. It shares no code with package scheduler.
//
// The guarantee is S1, beside G1 to G12 of the drainer. After a plan:
//
//   - A node that got an allocation has room for all that it runs: CPU, memory, disk, GPU, and its
//     bound on allocations. An allocation uses its resources until its client reports its end.
//   - That node is ready and eligible, does not drain, and is in the pool, the datacenters and the
//     classes that the job and the group ask for.
//   - A new allocation is of the current version of its job, and asks for what that version says.
//   - A new allocation has a slot. A group has as many slots as its count; a group of a system or
//     sysbatch job has one on each node. Canaries have slots of their own. No two slots of a group
//     have the same name.
//   - An allocation has at most one replacement, and both name each other. A replaced allocation
//     has left its slot.
//   - A job without a pending evaluation has neither too many nor too few allocations. Its blocked
//     evaluation counts exactly what is missing.
//   - A job has at most one blocked evaluation.
//
// A scenario may place allocations past the scheduler, and beyond these bounds. The judge reports
// only what a plan does.
package placement
