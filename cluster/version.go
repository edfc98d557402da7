package cluster

import (
	"errors"
	"fmt"
)

// Version is a cluster version. It names the raft entries, their fields, and the form of the
// snapshots that the servers of a cluster may write. The state holds the version. An entry raises
// it when every server of the cluster understands the next one. It never decreases.
//
//	1  the format from before cluster versions (commit 3dc2024). The state holds no version
//	2  the entry that raises the version, and snapshots that begin with it. Batch work that a
//	   deadline marked, and that a plan then stopped as surplus, gives its slot up. A plan
//	   places nothing under a name whose allocation was stopped or away in its snapshot and
//	   holds a slot when the plan is applied
//	3  the entry that deletes ended allocations, evaluations and jobs
//	4  what real clients need: drivers, configs, environments, lifecycle, restarts and
//	   constraints of jobs; drivers and the longest kill timeout of nodes; states of tasks.
//	   A registration of a job that holds only at a modify index of the job
//	5  the entry with which an operator stops one allocation
//	6  devices of nodes, requests of tasks for devices, and the devices of an allocation
//	7  volumes, claims, storage plugins of nodes, and what a group requests of volumes
//	8  allocations whose end nothing confirms: since when they are away, when time or an operator
//	   confirmed them, how many of them the record of a drain counts, and the outcome unconfirmed.
//	   Since when a healthy allocation is unhealthy, the time of an entry of reports, and the entry
//	   that appends an event to a node. The status disconnected of nodes whose allocations are
//	   awaited, and what the scheduler does when such a node returns. A purge that keeps the
//	   allocations that may run, with its time
//	9  the moves of the data of ephemeral disks. What identifies the history of a state. The update
//	   block of a group, and rollouts of new versions. Jobs that may run in every node pool. Ports of
//	   groups, tasks and allocations, and the networks of nodes. When an allocation ended by itself,
//	   and the policy by which it is replaced. The most memory of a task,
//	   cores of its own, and how long an allocation may run. How long the allocations of a group take
//	   to run, to become healthy and to stop. Pauses of drains. Replacements that are placed before the
//	   allocation that they replace is marked
type Version uint64

// The oldest and the newest cluster version that this build understands.
const (
	MinVersion Version = 1
	MaxVersion Version = 9
)

// VersionOfDrivers is the first cluster version with the fields of real clients.
const VersionOfDrivers Version = 4

// VersionOfStops is the first cluster version in which an operator can stop one allocation.
const VersionOfStops Version = 5

// VersionOfDevices is the first cluster version with devices.
const VersionOfDevices Version = 6

// VersionOfVolumes is the first cluster version with volumes.
const VersionOfVolumes Version = 7

// VersionOfConfirmation is the first cluster version in which the record of a drain counts the
// allocations whose end nothing confirms.
const VersionOfConfirmation Version = 8

// VersionOfData is the first cluster version in which the data of ephemeral disks moves.
const VersionOfData Version = 9

// VersionOfHistory is the first cluster version in which a state identifies the entries that led to it.
const VersionOfHistory Version = 9

// VersionOfRollouts is the first cluster version in which a new version of a job replaces the allocations
// that run.
const VersionOfRollouts Version = 9

// VersionOfRescheduling is the first cluster version in which a group may have a policy for the replacement of
// allocations that ended by themselves.
const VersionOfRescheduling Version = 9

// VersionOfAllNodePools is the first cluster version in which a job may run in every node pool.
const VersionOfAllNodePools Version = 9

// VersionOfPorts is the first cluster version in which the scheduler gives ports of nodes to allocations.
const VersionOfPorts Version = 9

// VersionOfStopIndex is the first cluster version in which a stop moves the JobModifyIndex of its job. So a change
// of the job that was decided before the stop does not start it again.
const VersionOfStopIndex Version = 9

// VersionOfLateMarks is the first cluster version in which a plan that gives up an allocation as lost is refused
// if a drain has marked the allocation since, and the group then permits a replacement.
const VersionOfLateMarks Version = 9

// VersionOfConfirmingReports is the first cluster version in which a report of an allocation that keeps its slot
// while its end is not confirmed requires an evaluation only if the report confirms the end.
const VersionOfConfirmingReports Version = 9

// VersionOfJournals is the first cluster version in which the state has the journals of drains.
const VersionOfJournals Version = 9

// VersionOfLearnedTimes is the first cluster version in which the state learns how long the allocations of a
// group take.
const VersionOfLearnedTimes Version = 9

// VersionOfPauses is the first cluster version in which drains can be paused, and in which a cancel can restore the
// eligibility of a node.
const VersionOfPauses Version = 9

// VersionOfSurge is the first cluster version in which a drain can request a replacement before it marks an
// allocation.
const VersionOfSurge Version = 9

// VersionOfLimits is the first cluster version with memory_max, with cores that a task has for itself,
// and with max_run_duration.
const VersionOfLimits Version = 9

// VersionOfServices is the first cluster version in which jobs have services and checks.
const VersionOfServices Version = 9

// An entry holds a version in one byte.
const _ = uint8(MaxVersion)

// ErrVersion is wrapped by errors that refuse an entry, a snapshot or a server because of its
// cluster version. Upgrade the server that the error names.
var ErrVersion = errors.New("cluster version is not understood")

// Versions is a range of cluster versions, with both ends.
type Versions struct{ Min, Max Version }

// Understood is the range that this build understands.
func Understood() Versions { return Versions{Min: MinVersion, Max: MaxVersion} }

// Contains reports whether the range holds the version.
func (r Versions) Contains(v Version) bool { return r.Min <= v && v <= r.Max }

// String returns a text such as "1 to 2".
func (r Versions) String() string { return fmt.Sprintf("%d to %d", r.Min, r.Max) }

// Require returns an error that names the version and the remedy if this build does not
// understand the version. It wraps [ErrVersion].
func Require(v Version) error {
	understood := Understood()
	switch {
	case v > understood.Max:
		return fmt.Errorf("%w: it needs version %d, and this server understands %s: upgrade this server to a build that understands cluster version %d or later",
			ErrVersion, v, understood, v)
	case v < understood.Min:
		return fmt.Errorf("%w: it has version %d, and this server understands %s: start a build that understands both, and upgrade to this one after it has raised the version",
			ErrVersion, v, understood)
	}
	return nil
}
