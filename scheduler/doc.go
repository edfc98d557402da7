// Package scheduler is a small reference scheduler: evaluations in, plans out. It does only what a
// drain needs of a scheduler, for every type of job. Package server runs a [Scheduler] on the
// leader.
//
// # Words
//
// An evaluation requests a comparison of a job with its allocations. A plan is the answer:
// allocations to stop, allocations to place, and the new status of the evaluation. [Schedule] makes
// a plan from a view, [Check] checks it again in the state in which it is applied, and a
// [Scheduler] proposes plans while its server leads.
//
// A slot is one of the Count places of a group. An allocation holds one from its
// placement until a plan stops it, or it ends when it should not have. Work that
// is done holds its slot for good: batch that has completed, and batch that was
// stopped with [cluster.DesiredTransition].MigrateDisablePlacement, unless it was
// stopped as surplus.
//
// # What moves an allocation
//
// A draining node by itself moves nothing, the mark on the allocation does. What
// becomes of an allocation is decided in this order, the first that matches:
//
//   - the servers stop it: nothing, but if its node is down or gone it
//     becomes lost, since no client will report that it has stopped;
//   - it has ended: batch and sysbatch that completed are done, service and
//     system allocations and failed batch are placed again, as often and after
//     the delay that the reschedule policy of the group permits, or at once and
//     at most [cluster.MaxReschedules] times in a row if it has none. Only ends
//     with the tasks and the disk of the present version count;
//   - its node is disconnected: it becomes unknown and another takes its slot,
//     until Disconnect.LostAfter has passed since the node went, and then it is
//     lost; one that was still pending, or of a group without LostAfter, is lost
//     at once;
//   - its node is back and its client has not reported it yet: nothing;
//   - it is marked: it is stopped and, except for batch marked with
//     MigrateDisablePlacement, replaced under its name;
//   - its node is down or gone: it is lost, and replaced.
//
// With Disconnect.NoReplace nothing replaces an unknown allocation, and nothing
// replaces a lost one before its end is confirmed, unless it is marked.
//
// If the node of an unknown allocation returns, its client first reports it. Then
// the replacement is stopped. The original is stopped instead, as soon as the
// replacement runs, if its node drains or is ineligible or the group has
// Disconnect.KeepReplacement. See reconcile.go.
//
// A group with more than Count gives up marked allocations first, and stops them
// without replacement. Then it gives up the ones that are worth least: pending,
// unhealthy or unknown, without a verdict, healthy; of equals first those that
// came back while their replacement runs, then the one with the highest index. A
// stop never waits for a placement.
//
// System and sysbatch jobs have one slot for each group on every node that is
// ready and fits, for every Count. A marked allocation of theirs is stopped
// and not placed again on its node until the node is ready. A sysbatch job runs
// once on a node, however it ended, until its work changes. The parts of a job
// that are work are its tasks and its disk: an edit of anything else runs nothing
// again.
//
// # Delays
//
// An allocation whose replacement is delayed holds its slot. Nothing is written when the wait begins: it
// follows from the rows, by [cluster.Job.Rescheduling]. When it is over, the leader creates an evaluation of
// the job, as it does for a disconnected allocation that becomes lost. A new leader reads the rows of all jobs
// with a policy once. [Check] refuses a replacement before its time. A marked allocation that ends before its
// stop is moved, and not a failure.
//
// A marked canary is replaced by a canary of the same deployment, and so is one
// that ended or was lost. Canaries are outside Count.
//
// # Placement
//
// A node takes allocations if it is ready, is in the job's pool and datacenters
// and the group's classes, meets the constraints, has healthy drivers for the
// tasks, and has the resources, the devices, the ports and the volumes free. An
// allocation that is being stopped holds its resources until its client reports
// that it has ended. The node chosen has the fewest allocations of the group, then the least
// left after the placement, then the lowest id. A replacement returns to the node
// its predecessor left only if no other fits, except that a failed allocation of
// a group with a sticky disk returns there first.
//
// What fits nowhere is counted in the evaluation's Queued and waits in one
// blocked evaluation of the job, which is planned again when capacity has come.
//
// # What it is not
//
// It has no deployments: a new version of a job replaces what runs at the pace of
// its update block, as the rows show it (see rollout); canaries are kept but never
// created nor promoted. It does not preempt: priority is only the order of the queue. It
// has no affinities beyond those of devices, no spread beyond the rule above, and
// no networks but those of the nodes. It deletes nothing that has ended: [Needs] returns why
// it is still needed.
package scheduler
