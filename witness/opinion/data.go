package opinion

import (
	"iter"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// MovesData is the first cluster version in which the data of ephemeral disks moves.
const MovesData cluster.Version = 9

// Replacements are the rows that decide whether the data of an ended allocation may still move.
type Replacements interface {
	// Node returns the node, Job the current version of the job, and Alloc the allocation; or nil.
	Node(cluster.NodeID) *cluster.Node
	Job(cluster.JobKey) *cluster.Job
	Alloc(cluster.AllocID) *cluster.Allocation
	// EvalsByJob yields the open evaluations of the job, and perhaps others.
	EvalsByJob(cluster.JobKey) iter.Seq[*cluster.Evaluation]
}

// never is later than all times of a cluster.
func never() time.Time { return time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC) }

// WaitsForData reports whether the allocation does not start before it has its data.
func WaitsForData(a *cluster.Allocation) bool {
	return a.DataIn != nil && (a.DataIn.State == "waiting" || a.DataIn.State == "copying" || a.DataIn.State == "kept")
}

// dataCame reports whether the wait of the allocation for its data has ended, with the data or without.
func dataCame(a *cluster.Allocation) bool {
	return a.DataIn != nil && (a.DataIn.State == "copied" || a.DataIn.State == "given up")
}

// KeepsData reports whether the client has ended the allocation and keeps its data.
func KeepsData(a *cluster.Allocation) bool {
	return (a.ClientStatus == "complete" || a.ClientStatus == "failed") && a.DataOut != nil && a.DataOut.State == "kept"
}

// NeedsData reports whether a replacement of the allocation would get its data, by the current version of
// its job.
func NeedsData(a *cluster.Allocation, j *cluster.Job) bool {
	g := groupOf(j, a.TaskGroup)
	return g != nil && !j.Stop && g.EphemeralDisk.Migrate && (g.Count > 0 || j.Type == "system" || j.Type == "sysbatch")
}

// longestChain bounds a chain of allocations that replace each other without data.
const longestChain = 64

// MayMove returns whether the data that the client of an ended allocation keeps may still move: to the
// taker, or to a replacement that is not placed. Then the taker is nil.
func MayMove(a *cluster.Allocation, s Replacements) (taker *cluster.Allocation, may bool) {
	if n := s.Node(a.NodeID); n == nil || n.Status == "down" {
		return nil, false
	}
	last := a
	for length := 0; last.NextAllocation != ""; length++ {
		next := s.Alloc(last.NextAllocation)
		if next == nil || dataCame(next) || length == longestChain {
			return nil, false
		}
		if last = next; Live(last) && !Stopping(last) {
			return last, WaitsForData(last) || last.DataIn == nil && last.ClientStatus != "running"
		}
	}
	switch t := TypeOf(last); {
	case !NeedsData(last, s.Job(cluster.JobKey{Namespace: last.Namespace, ID: last.JobID})), last.DesiredTransition.MigrateDisablePlacement:
		return nil, false
	case t != "service" && last.ClientStatus == "complete":
		return nil, false
	}
	open := func(e *cluster.Evaluation) bool { return e.Status == "pending" || e.Status == "blocked" }
	evals := slices.Collect(s.EvalsByJob(cluster.JobKey{Namespace: last.Namespace, ID: last.JobID}))
	return nil, slices.ContainsFunc(evals, open)
}

// Uncopied reports whether the record of the drain that marked the allocation counts its data as not
// copied: a replacement would get it, and the allocation may have had some that no replacement has.
func Uncopied(a *cluster.Allocation, s Replacements) bool {
	if !NeedsData(a, s.Job(cluster.JobKey{Namespace: a.Namespace, ID: a.JobID})) {
		return false
	}
	if a.DataOut == nil {
		return a.ClientStatus != "complete" && a.ClientStatus != "failed"
	}
	return a.DataOut.State != "copied"
}
