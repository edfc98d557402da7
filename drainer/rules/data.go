package rules

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// awaitedData yields, by id, the ended allocations of a draining node whose data the drain waits for: their
// client keeps it, and a replacement may still take it. After the deadline there are none.
func (s *Planner) awaitedData(n *cluster.Node) iter.Seq[*cluster.Allocation] {
	return func(yield func(*cluster.Allocation) bool) {
		if passed(s, n) || s.policy.Completion == CompletionMarked {
			return
		}
		for a := range s.view.KeptData(n.ID) {
			if !s.leaves(a, n) {
				continue
			}
			if _, may := takerOf(s.view, a); may && !yield(a) {
				return
			}
		}
	}
}

// takerOf returns the replacement that may still take the data that the client of an allocation keeps, and
// whether there is one or may be one later. A node that is down cannot send its data.
func takerOf(v View, a *cluster.Allocation) (taker *cluster.Allocation, may bool) {
	if n := v.Node(a.NodeID); n == nil || n.Status == cluster.NodeDown {
		return nil, false
	}
	taker, last := cluster.DataTaker(a, v.Alloc)
	return taker, taker != nil || last != nil && mayGetReplacement(v, last)
}

// mayGetReplacement reports whether a scheduler may still place a replacement that takes the data of an
// allocation.
func mayGetReplacement(v View, a *cluster.Allocation) bool {
	return lacksReplacement(v, a) && (hasOpenEval(v, a.JobKey()) || rescheduling(v, a) != nil)
}

// rescheduling returns when the reschedule policy of its group replaces an allocation that ended by itself, or
// nil if it does not. The scheduler creates the evaluation at that time.
func rescheduling(v View, a *cluster.Allocation) *cluster.Rescheduling {
	r := v.Job(a.JobKey()).ReschedulingOfWork(a, v.Alloc)
	if r != nil && r.Spent {
		return nil
	}
	return r
}

// lacksReplacement reports whether a later evaluation would place a replacement of an allocation that has
// none, with its data.
func lacksReplacement(v View, a *cluster.Allocation) bool {
	if !needsData(v, a) || a.DesiredTransition.MigrateDisablePlacement {
		return false
	}
	done := a.JobType() != cluster.JobService && a.ClientStatus == cluster.ClientComplete
	return !done
}

// dataLeft reports whether the data that the client of an ended allocation keeps is the only copy. A
// replacement may still take it. Or the scheduler has given up the group's slot after many failures, and a
// new version of the job would get the data.
func dataLeft(v View, a *cluster.Allocation) bool {
	if n := v.Node(a.NodeID); n == nil || n.Status == cluster.NodeDown {
		return false
	}
	taker, last := cluster.DataTaker(a, v.Alloc)
	return taker != nil || last != nil && lacksReplacement(v, last) && (last.DesiredStatus == cluster.DesiredRun || hasOpenEval(v, last.JobKey()))
}

// needsData reports whether a replacement of the allocation would get its data. A stopped job has no replacements, and a
// group of count 0 has none.
func needsData(v View, a *cluster.Allocation) bool {
	job := v.Job(a.JobKey())
	if job.Stopped() {
		return false
	}
	g := job.Group(a.TaskGroup)
	return g.MovesData() && (g.Count > 0 || job.Type.EveryNode())
}

// DataNotCopied returns the allocations of the drain of a draining node whose data no replacement has in
// the view, or nil: the data was given up, or is not copied, or may be lost with its allocation. They are
// those that the drain has marked, and those that ended before and whose data is the only copy. Data that no
// replacement would get does not count.
func DataNotCopied(v View, n *cluster.Node) *cluster.DataNotCopied {
	var ids []cluster.AllocID
	for a := range v.DrainAllocs(n.Drain.ID) {
		if needsData(v, a) && lacksCopy(a) {
			ids = append(ids, a.ID)
		}
	}
	for a := range v.KeptData(n.ID) {
		if !a.MarkedBy(n.Drain.ID) && n.Drain.Leaves(a.Stage()) && dataLeft(v, a) {
			ids = append(ids, a.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	return &cluster.DataNotCopied{Count: len(ids), Allocs: slices.Clip(ids[:min(len(ids), cluster.MaxUnconfirmedNames)])}
}

// lacksCopy reports whether the data of an allocation that had to leave, or a part of it, is on no other node. The client of
// an ended allocation that reported no move had no data, or is of an older build.
func lacksCopy(a *cluster.Allocation) bool {
	if a.DataOut == nil {
		return !a.ClientTerminal() || a.ClientStatus == cluster.ClientLost
	}
	return !a.DataOut.Copied()
}

// explainData gives the reason of an ended allocation whose data the drain waits for.
func explainData(e *Explainer, r *AllocExplanation, a *cluster.Allocation, n *cluster.Node) {
	since := Since{At: latest(a.ModifyTime, n.Drain.Strategy.StartedAt)}
	taker, _ := takerOf(e.view, a)
	detail := "its data waits for a replacement"
	if taker == nil {
		if _, last := cluster.DataTaker(a, e.view.Alloc); last != nil {
			if r := rescheduling(e.view, last); r.Waits(e.now) {
				detail = "its data waits for a replacement, which is due at " + r.DueAt.UTC().Format(time.RFC3339)
			}
		}
		for eval := range e.view.OpenEvals(a.JobKey()) {
			r.Eval = eval
			detail = fmt.Sprintf("its data waits for a replacement, evaluation %s is %s", eval.ID, eval.Status)
			break
		}
		r.set(ReasonWaitingForData, since, detail)
		return
	}
	node := e.Node(taker.NodeID)
	r.Culprit = &Culprit{Alloc: taker.ID, Node: taker.NodeID, State: CulpritWithoutData, Since: taker.CreateTime}
	if node != nil {
		r.Culprit.NodeName = node.Name
	}
	if !canReport(taker, node) {
		r.Culprit.State, r.Culprit.Since = CulpritSilent, silentSince(taker, node)
	}
	to := fmt.Sprintf("allocation %s on %s", taker.ID, cmp.Or(r.Culprit.NodeName, string(taker.NodeID)))
	detail = "its data waits for " + to
	if taker.DataIn.StateOf() == cluster.DataCopying {
		detail = fmt.Sprintf("its data moves to %s, %d bytes so far", to, taker.DataIn.Bytes)
	}
	r.set(ReasonWaitingForData, since, detail)
}
