// Package rolled checks rollouts in a simulated world: the replacement of running allocations when a job
// gets other tasks. A [Judge] reads the rows of the state after each plan. It shares no code with package
// scheduler.
//
// The guarantee is S5. For each plan that stops allocations because of a newer version:
//
//   - Each of them had other tasks than the present version of its job.
//   - A group of a service job has at most as many slots without a healthy allocation of the present
//     version and without an outdated one as its update block permits. A group of a system job has at
//     most so many allocations that are not healthy yet, or that the plan stops, and nodes that a rollout
//     has vacated and on which no allocation has started since.
//   - Such a group keeps as many healthy allocations as its count without that number, if the plan stops
//     a healthy one.
//   - No allocation of the present version is unhealthy.
//
// When the effects of all faults have ended and nothing happens:
//
//   - No outdated allocation runs, if the group permits its replacement. One of a system job may stay on
//     a node that takes no other, or that lacks what the group requests.
//
// Batch and sysbatch jobs have no health, and an update block of zero permits everything.
package rolled

import "github.com/seed-f9cf0b39/nodedrain/sim/invariant"

// The checks of S5, the guarantee of rollouts.
const (
	NotOutdated  invariant.Check = "S5 not outdated"    // a rollout stopped an allocation of the present tasks
	TooMany      invariant.Check = "S5 too many"        // more slots of a group wait for health than its update permits
	BelowLimit   invariant.Check = "S5 below the limit" // a rollout took a healthy allocation that the group needs
	AfterFailure invariant.Check = "S5 after a failure" // a rollout went on beside an unhealthy allocation of the present version
	LeftOutdated invariant.Check = "S5 left outdated"   // nothing happens, and an allocation that may be replaced is outdated
)

// Checks returns all checks.
func Checks() []invariant.Check {
	return []invariant.Check{NotOutdated, TooMany, BelowLimit, AfterFailure, LeftOutdated}
}
