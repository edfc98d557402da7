package rules

import (
	"iter"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Ending is an accepted completion, with the outcome of its drain.
type Ending struct {
	Completion
	Outcome cluster.Outcome
	// StillStopping counts allocations that had to leave and are not
	// client-terminal.
	StillStopping int
	// Unconfirmed is for the record ([cluster.Drain].Unconfirmed).
	Unconfirmed *cluster.UnconfirmedAllocs
	// VolumesLeft is for the record ([cluster.Drain].VolumesLeft). RecheckCompletions leaves it
	// nil; a store with volumes sets it.
	VolumesLeft *cluster.VolumeHolds
	// DataNotCopied is for the record ([cluster.Drain].DataNotCopied).
	DataNotCopied *cluster.DataNotCopied
}

// endState is whether a drain may end, and if not, what it waits for.
type endState struct {
	done bool
	// stage is the first stage that is not over, or StageCount.
	stage cluster.Stage
	// waitEnds is the earliest [stageState] waitEnds of the stages that are not over, or zero.
	waitEnds time.Time
	// waitsFor are the jobs whose replacements the drain waits for, or for whose data, in the order in
	// which awaitedJobs found them.
	waitsFor []cluster.JobKey
}

// judgeEnd returns whether the completion policy allows the end of a node's drain. A paused drain does not end.
func (s *Planner) judgeEnd(n *cluster.Node) endState {
	policy := s.policy.Completion
	if passed(s, n) && policy != CompletionMarked {
		policy = CompletionStopped
	}
	end := endState{stage: cluster.StageCount}
	for _, stage := range cluster.Stages() {
		state := s.stageOf(n, stage)
		if state.over {
			continue
		}
		end.waitEnds = earliest(end.waitEnds, state.waitEnds)
		if policy == CompletionMarked && !state.staying {
			continue
		}
		end.stage = stage
		return end
	}
	end.waitsFor = awaitedJobs(s, n, policy)
	end.done = len(end.waitsFor) == 0 && !paused(s, n)
	return end
}

// awaitedJobs returns the jobs of the allocations for whose data the drain waits, and of the marked
// allocations that do not meet the policy yet.
func awaitedJobs(s *Planner, n *cluster.Node, policy CompletionPolicy) (jobs []cluster.JobKey) {
	listed := map[cluster.JobKey]bool{}
	add := func(a *cluster.Allocation) {
		if key := a.JobKey(); !listed[key] {
			listed[key] = true
			jobs = append(jobs, key)
		}
	}
	for a := range s.awaitedData(n) {
		add(a)
	}
	if policy != CompletionReplaced && policy != CompletionMigrated {
		return jobs
	}
	for a := range s.view.DrainAllocs(n.Drain.ID) {
		if !isReplaced(s.view, a) || policy == CompletionMigrated && !hasMigrated(s.view, a) {
			add(a)
		}
	}
	return jobs
}

// isReplaced reports whether the allocation has a replacement, needs none, or waits for capacity
// with a blocked evaluation. Only service allocations of a drain are replaced.
func isReplaced(v View, a *cluster.Allocation) bool {
	if a.JobType() != cluster.JobService || a.NextAllocation != "" || a.DesiredTransition.MigrateDisablePlacement {
		return true
	}
	job := v.Job(a.JobKey())
	if job.Stopped() || job.Group(a.TaskGroup) == nil {
		return true
	}
	// While an evaluation is pending, a blocked one may be older than the mark. Then it does not
	// show that the scheduler cannot place this allocation.
	return !hasPendingEval(v, a.JobKey()) && (a.Terminal() || hasOpenEval(v, a.JobKey()))
}

// hasMigrated reports whether the allocation's ephemeral data has moved, or cannot move because
// there is none, it was lost, or the allocation gets no replacement. A replacement starts only when
// it has the data. For data that a client has kept, awaitedData decides.
func hasMigrated(v View, a *cluster.Allocation) bool {
	if !a.Job.Group(a.TaskGroup).MovesData() || a.ClientStatus == cluster.ClientLost || a.DataOut != nil {
		return true
	}
	if a.NextAllocation == "" {
		return isReplaced(v, a) && !hasOpenEval(v, a.JobKey())
	}
	next := v.Alloc(a.NextAllocation)
	return next == nil || next.ClientStatus != cluster.ClientPending
}

// CountLeft counts a node's allocations that have to leave and are not client-terminal. It uses a
// count of the consumers, of which there may be many.
func CountLeft(v View, n *cluster.Node) (left int) { return (&Planner{view: v}).countLeft(n) }

func (s *Planner) countLeft(n *cluster.Node) (left int) {
	for _, stage := range cluster.Stages() {
		switch {
		case !n.Drain.Leaves(stage):
		case stage == cluster.StageConsumers:
			left += s.view.Consumers(n.ID)
		default:
			for _, leaving := range [...]bool{false, true} {
				for a := range s.view.NodeAllocs(n.ID, stage, leaving) {
					if s.leaves(a, n) {
						left++
					}
				}
			}
		}
	}
	return left
}

// ForVersion returns the ending for a store of a cluster version, whose records may not count all
// allocations.
func (e Ending) ForVersion(v cluster.Version) Ending {
	if v < cluster.VersionOfData {
		e.DataNotCopied = nil
	}
	if v >= cluster.VersionOfConfirmation {
		return e
	}
	e.Unconfirmed = nil
	if e.Outcome == cluster.OutcomeUnconfirmed {
		e.Outcome = cluster.OutcomeComplete
	}
	return e
}

// Unconfirmed returns what the record of a node's drain counts as unconfirmed if the drain ends in the
// view with the outcome, or nil: the allocations that are given up or still stopping. Only a cancel
// depends on the outcome.
func Unconfirmed(v View, n *cluster.Node, o cluster.Outcome) *cluster.UnconfirmedAllocs {
	var ids []cluster.AllocID
	add := func(rows iter.Seq[*cluster.Allocation]) {
		for a := range rows {
			if n.Drain.LeavesUnconfirmed(a, o, a.Unconfirmed()) {
				ids = append(ids, a.ID)
			}
		}
	}
	add(v.Unconfirmed(n.ID))
	for _, stage := range cluster.Stages() {
		if n.Drain.Leaves(stage) {
			add(v.NodeAllocs(n.ID, stage, false))
			add(v.NodeAllocs(n.ID, stage, true))
		}
	}
	unlisted := unlistedOn(v, n)
	count := n.Drain.PurgedRunning + unlisted.Len() + len(ids)
	if count == 0 {
		return nil
	}
	slices.Sort(ids)
	return &cluster.UnconfirmedAllocs{Count: count, Allocs: slices.Clip(ids[:min(len(ids), cluster.MaxUnconfirmedNames)]), Unlisted: unlisted}
}

// countGivenUp counts the allocations of a draining node whose end nothing confirms, and for which the
// drain does not wait.
func countGivenUp(v View, n *cluster.Node) int {
	count := n.Drain.PurgedRunning + unlistedOn(v, n).Len()
	for a := range v.Unconfirmed(n.ID) {
		if n.Drain.Leaves(a.Stage()) {
			count++
		}
	}
	return count
}

// unlistedOn returns the allocations that the node has reported as unlisted, or nil. It leaves out those
// with a row that counts by itself, and those whose end the client has reported since: a client that has
// just started reports all that it runs. The state has no stage of an unlisted allocation, so the drain
// counts those of system jobs too.
func unlistedOn(v View, n *cluster.Node) *cluster.UnlistedAllocs {
	return n.Unlisted.Without(func(id cluster.AllocID) bool {
		a := v.Alloc(id)
		return a != nil && a.NodeID == n.ID && (a.ClientStatus != cluster.ClientLost || a.Unconfirmed())
	})
}
