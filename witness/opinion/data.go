package opinion

import (
	"iter"
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
	taker, last := successors(a, s)
	if taker != nil {
		return taker, notStarted(taker)
	}
	return nil, last != nil && wouldBeReplaced(last, s) && (hasOpenEval(last, s) || replacesLater(last, s))
}

// OnlyCopy reports whether the data that the client of an ended allocation keeps is the only copy of data that
// a replacement may still get. The data of a group whose slot the scheduler has given up after many failures
// goes to an allocation of the job's next version.
func OnlyCopy(a *cluster.Allocation, s Replacements) bool {
	taker, last := successors(a, s)
	if taker != nil {
		return notStarted(taker)
	}
	return last != nil && wouldBeReplaced(last, s) && (last.DesiredStatus == "run" || hasOpenEval(last, s))
}

// successors follows the replacements of an ended allocation that had no data. It returns the one that runs or
// will run, or the last one if all have ended or stop. Both are nil if the data is of no use.
func successors(a *cluster.Allocation, s Replacements) (taker, last *cluster.Allocation) {
	if n := s.Node(a.NodeID); n == nil || n.Status == "down" {
		return nil, nil
	}
	last = a
	for length := 0; last.NextAllocation != ""; length++ {
		next := s.Alloc(last.NextAllocation)
		if next == nil || dataCame(next) || length == longestChain {
			return nil, nil
		}
		if last = next; Live(last) && !Stopping(last) {
			return last, nil
		}
	}
	return nil, last
}

func notStarted(a *cluster.Allocation) bool {
	return WaitsForData(a) || a.DataIn == nil && a.ClientStatus != "running"
}

// wouldBeReplaced reports whether the job needs a replacement of an allocation that has none.
func wouldBeReplaced(a *cluster.Allocation, s Replacements) bool {
	done := TypeOf(a) != "service" && a.ClientStatus == "complete"
	return !done && !a.DesiredTransition.MigrateDisablePlacement && NeedsData(a, s.Job(cluster.JobKey{Namespace: a.Namespace, ID: a.JobID}))
}

// replacesLater reports whether the reschedule policy of its group still permits a replacement of an allocation
// that ended by itself.
func replacesLater(a *cluster.Allocation, s Replacements) bool {
	j := s.Job(cluster.JobKey{Namespace: a.Namespace, ID: a.JobID})
	g := groupOf(j, a.TaskGroup)
	if g == nil || g.Reschedule == nil || Stopping(a) || a.Job != nil && a.Job.Type != j.Type || j.Type == "system" || j.Type == "sysbatch" {
		return false
	}
	if g.Reschedule.Unlimited || a.DesiredTransition.Migrate || a.DesiredTransition.ForceReschedule {
		return true
	}
	used, last := 0, a
	for used < g.Reschedule.Attempts && a.EndedAt.Sub(last.CreateTime) < g.Reschedule.Interval {
		if last = s.Alloc(last.PreviousAllocation); last == nil || !Failed(last) {
			break
		}
		used++
	}
	return used < g.Reschedule.Attempts
}

// Failed reports whether the scheduler stopped an allocation because it had ended by itself, in a cluster
// version with policies for that.
func Failed(a *cluster.Allocation) bool {
	return Stopping(a) && !a.EndedAt.IsZero() && !a.DesiredTransition.Migrate
}

func hasOpenEval(a *cluster.Allocation, s Replacements) bool {
	for e := range s.EvalsByJob(cluster.JobKey{Namespace: a.Namespace, ID: a.JobID}) {
		if e.Status == "pending" || e.Status == "blocked" {
			return true
		}
	}
	return false
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
	return a.DataOut.State != "copied" || a.DataOut.Why != "" // something was left out
}
