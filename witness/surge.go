package witness

import (
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// Surge: in a group with a max_surge, a paced mark is applied only in a state in which the replacement of its
// allocation is healthy. The drain requests the replacement before. It stands by, and counts for nothing, as long as
// its original is in place. So a mark leaves as many healthy allocations as it found.
//
// At each time a group has at most one live standby allocation for each of its allocations in place, and only such as
// were requested, or whose request a cancel has withdrawn until the next plan. Requests are at most max_surge when they
// are made. So a group never has more than count + max_surge allocations on account of drains: an edit may lower both,
// and the next plan stops the surplus.

// observeStandby judges whether the allocation stands by exactly while its original is in place. Only the plan that
// places an allocation makes it stand by.
func observeStandby(w *Witness, e Entry, f Finding, before, after *cluster.Allocation) {
	f.Kind = WrongStandby
	was, is := before != nil && before.Standby, after.Standby
	original := opinion.OriginalOf(after, e.After.Alloc)
	switch {
	case before != nil && is && !was:
		f.Why = "it did not stand by and does now"
	case is && original == nil:
		f.Why = "it stands by, and the allocation beside which it was placed has left or ended"
	case was && !is && original != nil && !opinion.Stopping(after):
		f.Why = fmt.Sprintf("it stands by no more, and %s is in place", original.ID)
	case before == nil && is && original.DesiredTransition.Surge == "":
		f.Why = fmt.Sprintf("it was placed beside %s, for which no drain requested it", original.ID)
	case is && opinion.Live(after) && !opinion.Leaving(after) && after.NextAllocation == "" && !replaces(after, original, e.After):
		f.Why = fmt.Sprintf("it stands by, and is not the replacement of %s", original.ID)
	default:
		return
	}
	w.find(e, f)
}

// replaces reports whether an allocation is the last replacement of another.
func replaces(a, original *cluster.Allocation, s State) bool {
	last := opinion.LastSuccessor(original, s.Alloc)
	return last != nil && last.ID == a.ID
}

// observeRequest judges a change of the request for a replacement of an allocation. A drain makes it in an entry of
// marks, and its cancel withdraws it. A mark keeps it.
func observeRequest(w *Witness, e Entry, f Finding, was cluster.DesiredTransition, after *cluster.Allocation) {
	is := after.DesiredTransition
	f.Kind, f.Drain = WrongRequest, is.Surge
	switch {
	case is.Surge == was.Surge && is.SurgeAt.Equal(was.SurgeAt):
		return
	case is.Surge != "":
		judgeRequest(w, e, f, was, after)
		return
	}
	f.Drain = was.Surge
	if record := e.After.DrainRecord(was.Surge); record != nil && record.Outcome == cluster.OutcomeCancelled && drainOn(e.Before, after.NodeID, was.Surge) != nil {
		return
	}
	if was.Migrate && !is.Migrate {
		return // the cancel of another drain withdrew its mark, and all that was left of an earlier request
	}
	f.Why = "the request for its replacement was withdrawn, and its drain was not cancelled"
	w.find(e, f)
}

// judgeRequest judges a new request by the state before the entry.
func judgeRequest(w *Witness, e Entry, f Finding, was cluster.DesiredTransition, a *cluster.Allocation) {
	t, before, d := a.DesiredTransition, e.Before.Alloc(a.ID), drainOn(e.Before, a.NodeID, a.DesiredTransition.Surge)
	pace, exists := opinion.PaceOf(e.Before.Job(f.Group.Job), f.Group.Name)
	unplanned := !slices.ContainsFunc(e.Planned, func(p Planned) bool { return p.Alloc == a.ID && p.Surge })
	switch {
	case e.Source != UnknownSource && unplanned:
		f.Why = "an entry without this request requested a replacement"
	case was.Surge == t.Surge:
		f.Why = "its replacement was requested again"
	case t.Migrate || withoutRequest(t) != withoutRequest(was):
		f.Why = fmt.Sprintf("the request changed more than its own fields: %+v became %+v", was, t)
	case !e.At.IsZero() && !t.SurgeAt.Equal(e.At):
		f.Why = fmt.Sprintf("the request has the time %s and its entry %s", t.SurgeAt, e.At)
	case d == nil:
		f.Why = "its node was not in the drain that requested a replacement"
	case before == nil || !healthy(before, e.Before) || opinion.TypeOf(before) != cluster.JobService || !exists:
		f.Why = "a replacement was requested of an allocation that is no healthy one of a service"
	case opinion.Passed(d, t.SurgeAt):
		f.Why = "a replacement was requested after the deadline"
	case pace.Surge(d) == 0 || pace.MaxParallel == 0 || opinion.ReplacedFromElsewhere(before, e.Before.Alloc):
		f.Why = "a replacement was requested of an allocation that needs none"
	}
	if f.Why != "" {
		w.find(e, f)
		return
	}
	if e.Planned != nil && !evaluates(e, f.Group.Job) {
		f.Kind, f.Why = NoEvaluation, "a replacement was requested without an evaluation of its job in the same entry"
		w.find(e, f)
	}
	if held := countRequests(e, f.Group, a.ID); held > pace.Surge(d) {
		f.Kind, f.Why = TooManySurges, fmt.Sprintf("%d allocations of the group hold a request, max_surge is %d", held, pace.Surge(d))
		w.find(e, f)
	}
}

// countRequests counts the allocations of a group that hold a request, after the request of one of them. Those of the
// entry are made in the order of their ids.
func countRequests(e Entry, key cluster.GroupKey, of cluster.AllocID) (held int) {
	for a := range e.After.AllocsByJob(key.Job) {
		before := e.Before.Alloc(a.ID)
		later := a.ID > of && (before == nil || before.DesiredTransition.Surge == "")
		if a.TaskGroup == key.Name && opinion.HoldsSurge(a) && !later {
			held++
		}
	}
	return held
}

// countUnanswered counts the allocations of a group that are marked after a request and that no plan has stopped.
func countUnanswered(s State, key cluster.GroupKey) (n int) {
	for a := range s.AllocsByJob(key.Job) {
		if a.TaskGroup == key.Name && opinion.HoldsSurge(a) && a.DesiredTransition.Migrate {
			n++
		}
	}
	return n
}

// surges reports whether a paced mark of an allocation needs a healthy replacement beside it.
func surges(e Entry, a *cluster.Allocation) bool {
	before, d := e.Before.Alloc(a.ID), drainOn(e.Before, a.NodeID, a.DesiredTransition.Drain)
	pace, exists := opinion.PaceOf(e.Before.Job(groupOf(a).Job), a.TaskGroup)
	if v, has := e.Before.(opinion.Versioned); has && v.ClusterVersion() < opinion.PlacesBeside {
		return false
	}
	if before == nil || d == nil || !exists {
		return false
	}
	if next := opinion.LastSuccessor(before, e.Before.Alloc); opinion.RequestedBy(before, d) && next != nil && opinion.TakesOver(next, e.Before.Node(next.NodeID)) {
		return true // also if max_surge is zero since
	}
	return pace.Surge(d) > 0 && !opinion.ReplacedFromElsewhere(before, e.Before.Alloc)
}

// activated counts the standby allocations beside an allocation that its mark has made healthy.
func activated(e Entry, a *cluster.Allocation) (n int) {
	for _, next := range opinion.Successors(a, e.After.Alloc) {
		if was := e.Before.Alloc(next.ID); was != nil && was.Standby && healthy(next, e.After) {
			n++
		}
	}
	return n
}

// judgeReplaced judges a paced mark that needs a healthy replacement, and reports whether it has one. later are the marks
// of the entry in the group after it.
func judgeReplaced(w *Witness, e Entry, f Finding, a *cluster.Allocation, later []*cluster.Allocation) bool {
	before := e.Before.Alloc(a.ID)
	next := opinion.LastSuccessor(before, e.Before.Alloc)
	switch f.Kind = NotReplaced; {
	case before.DesiredTransition.Surge != a.DesiredTransition.Drain:
		f.Why = "paced mark without a request for its replacement"
	case next == nil:
		f.Why = "paced mark before its replacement was placed"
	case !opinion.TakesOver(next, e.Before.Node(next.NodeID)):
		f.Why = fmt.Sprintf("paced mark while its replacement %s is not healthy", next.ID)
	}
	if f.Why != "" {
		w.find(e, f)
		return false
	}
	pace, _ := opinion.PaceOf(e.Before.Job(f.Group.Job), f.Group.Name)
	marked := countUnanswered(e.After, f.Group)
	for _, other := range later {
		if opinion.HoldsSurge(other) {
			marked--
		}
	}
	if marked > pace.MaxParallel {
		f.Kind, f.Why = TooManySurges, fmt.Sprintf("%d allocations of the group are marked after a request and not stopped, max_parallel is %d", marked, pace.MaxParallel)
		w.find(e, f)
	}
	return true
}

// fewer is how many healthy allocations fewer a paced mark with a healthy replacement may leave: none if the replacement
// stands by. If the original was unknown for a time, the replacement counts already.
func fewer(e Entry, a *cluster.Allocation) int {
	if next := opinion.LastSuccessor(e.Before.Alloc(a.ID), e.Before.Alloc); next != nil && !next.Standby {
		return 1
	}
	return 0
}
