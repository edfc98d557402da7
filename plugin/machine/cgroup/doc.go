// Package cgroup starts the processes of one task in a control group, kills all of them, waits for
// their end, and lists the remaining ones. The client and the raw_exec driver use it.
//
// A Group is one name in several hierarchies. Cgroup v2 is preferred, also where it is mounted
// beside v1 and has no controllers: cgroup.kill reaches processes that fork at that moment, and
// "populated" reports the end of the last one. Where v1 is mounted too, the group has folders in
// its freezer, memory and cpu hierarchies, since released plugins use these and since the limits
// need controllers. Kill, Populated, Wait and Remove always treat all folders together, so it does
// not matter in which of them a driver put its task.
//
// The parents have the names that released plugins expect: nomad.slice/share.slice in v2, and
// nomad in each hierarchy of v1. A task with cores of its own is in nomad.slice/reserve.slice, and
// with v1 also in a cpuset of its own below nomad. All other tasks share the cores that none of these
// has: they are in share.slice, and with v1 in the cpuset nomad/share.
//
// Membership is judged by "populated", or by the threads of v1, never by an empty list of pids: the
// kernel empties the list before the last thread has ended. An error of a read is returned. It does
// not mean that the group is empty.
//
// A group can have an owner: a text that the kernel keeps with the folders. It shows which of several
// programs with the same parents has created the group.
//
// The package has no state. It reads mountinfo below a root folder that the caller names.
package cgroup
