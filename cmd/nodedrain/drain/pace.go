package drain

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// leaving counts the allocations that a drain moves. Its zero value has counted nothing.
type leaving struct {
	left int
	// most is how many there were to leave: those that left and those that are left.
	most int
}

// saw records the number of allocations left. If it grew, new allocations have come.
func (l *leaving) saw(left int) {
	l.most += max(0, left-l.left)
	l.left = left
}

// roundsLeft returns the minimum number of rounds until the node is empty. A group of a service
// leaves max_parallel allocations in a round; each other stage leaves in one. Groups leave side by
// side, and the stages one after the other. There may be more rounds, because allocations on other
// nodes share the pace. A time would be a guess: how long a round takes is known only afterwards.
func roundsLeft(allocs []wire.DrainAlloc, s *wire.DrainStrategy, now time.Time) (rounds int) {
	atOnce := s != nil && (s.Deadline < 0 || s.Deadline > 0 && !now.Before(s.ForceDeadline.Time))
	groups := map[[3]string]int{} // by namespace, job and group
	byStage := map[string]int{}
	for _, a := range allocs {
		if a.Reason == rules.ReasonLeftByRequest.String() {
			continue
		}
		needs := 1
		if a.Stage == cluster.StageConsumers.String() && a.MaxParallel > 0 && !atOnce {
			key := [3]string{a.Namespace, a.JobID, a.TaskGroup}
			groups[key]++
			needs = (groups[key] + a.MaxParallel - 1) / a.MaxParallel
		}
		byStage[a.Stage] = max(byStage[a.Stage], needs)
	}
	for _, needs := range byStage {
		rounds += needs
	}
	return rounds
}
