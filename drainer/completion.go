package drainer

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Ending is a drain whose end has been judged true in the state it was judged in.
type Ending struct {
	Completion
	Outcome cluster.Outcome
	// StillStopping counts allocations that had to leave and are not
	// client-terminal.
	StillStopping int
}

// endState is whether a drain may end, and if not, what it waits for.
type endState struct {
	done bool
	// stage is the first stage that is not over, or StageCount.
	stage cluster.Stage
	// wait is the first wait of those stages to run out, or zero.
	wait stageWait
	// waitsFor are the jobs whose replacements the contract waits for, in the
	// order in which they were met.
	waitsFor []cluster.JobKey
}

// judgeEnd judges a node's drain by its completion contract.
func (m *moment) judgeEnd(n *cluster.Node) endState {
	contract := m.policy.Completion
	if n.Drain.Strategy.Passed(m.now) && contract != Asked {
		contract = Stopped
	}
	end := endState{stage: cluster.StageCount}
	for _, s := range cluster.Stages() {
		state := m.stageOf(n, s)
		if state.over {
			continue
		}
		if earliest(end.wait.ends, state.wait.ends) != end.wait.ends {
			end.wait = state.wait
		}
		if contract == Asked && !state.staying {
			continue
		}
		end.stage = s
		return end
	}
	if contract == Replaced || contract == Migrated {
		end.waitsFor = awaitedJobs(m.view, n.Drain, contract)
	}
	end.done = len(end.waitsFor) == 0
	return end
}

// awaitedJobs returns the jobs of the drain's marks that do not fulfil the
// contract yet.
func awaitedJobs(v View, d *cluster.Drain, contract Contract) []cluster.JobKey {
	var jobs []cluster.JobKey
	seen := map[cluster.JobKey]bool{}
	for a := range v.DrainAllocs(d.ID) {
		met := isReplaced(v, a) && (contract == Replaced || hasMigrated(v, a))
		if key := a.JobKey(); !met && !seen[key] {
			seen[key] = true
			jobs = append(jobs, key)
		}
	}
	return jobs
}

// isReplaced reports whether the allocation has a replacement, is to have none,
// or is waited for by a blocked evaluation. Only service allocations are
// replaced on account of a drain.
func isReplaced(v View, a *cluster.Allocation) bool {
	if a.JobType() != cluster.JobService || a.NextAllocation != "" || a.DesiredTransition.MigrateDisablePlacement {
		return true
	}
	job := v.Job(a.JobKey())
	if job.Stopped() || job.Group(a.TaskGroup) == nil {
		return true
	}
	// While an evaluation is pending, a blocked one may be of another day: the
	// scheduler has not said yet that it cannot place this one.
	return !hasPendingEval(v, a.JobKey()) && (a.Terminal() || hasOpenEval(v, a.JobKey()))
}

// hasMigrated reports whether the allocation's ephemeral data has moved, or
// cannot move: there is none to move, it was lost, or no replacement comes to
// take it. A replacement starts only once it has the data.
func hasMigrated(v View, a *cluster.Allocation) bool {
	g := a.Job.Group(a.TaskGroup)
	if g == nil || !g.EphemeralDisk.Migrate || a.ClientStatus == cluster.ClientLost {
		return true
	}
	if a.NextAllocation == "" {
		return isReplaced(v, a) && !hasOpenEval(v, a.JobKey())
	}
	next := v.Alloc(a.NextAllocation)
	return next == nil || next.ClientStatus != cluster.ClientPending
}

// migrationOf says what has become of an allocation that was on a draining node
// and is not there any more; a is its record, or nil if that is gone.
func migrationOf(v View, id cluster.AllocID, node cluster.NodeID, a *cluster.Allocation) Migration {
	m := Migration{Alloc: id, Node: node, Asked: true, Stopped: true, Replaced: true, Migrated: true}
	if a != nil {
		m.Asked, m.Stopped = a.Asked(), a.ClientTerminal()
		m.Replaced, m.Migrated = isReplaced(v, a), hasMigrated(v, a)
	}
	return m
}

// countLeft counts a node's allocations that have to leave and are not
// client-terminal, by stage.
func countLeft(v View, n *cluster.Node) (left [cluster.StageCount]int) {
	for _, s := range cluster.Stages() {
		if !n.Drain.Leaves(s) {
			continue
		}
		left[s] = countStage(v, n, s)
	}
	return left
}

// countStage counts a node's allocations of a stage that are not client-terminal.
func countStage(v View, n *cluster.Node, s cluster.Stage) (count int) {
	for _, asked := range [...]bool{false, true} {
		for range v.NodeAllocs(n.ID, s, asked) {
			count++
		}
	}
	return count
}
