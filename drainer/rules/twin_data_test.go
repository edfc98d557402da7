package rules

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

func stateOf(m *cluster.DataMove) cluster.DataState {
	if m == nil {
		return "none"
	}
	return m.State
}

// waitsForData: it does not start before its data has come or was given up.
func waitsForData(a *cluster.Allocation) bool {
	s := stateOf(a.DataIn)
	return s == "waiting" || s == "copying"
}

func keepsData(a *cluster.Allocation) bool {
	return (a.ClientStatus == "complete" || a.ClientStatus == "failed") && stateOf(a.DataOut) == "kept"
}

// getsData: a replacement of the allocation would get its data.
func (w rows) getsData(a *cluster.Allocation) bool {
	g, job := w.groupOf(a), w.jobOf(a)
	return g != nil && g.EphemeralDisk.Migrate && !job.Stop && (g.Count > 0 || job.Type == "system" || job.Type == "sysbatch")
}

// chain is the allocation and those that replace it, one after the other.
func (w rows) chain(a *cluster.Allocation) (chain []*cluster.Allocation, complete bool) {
	chain = []*cluster.Allocation{a}
	for a.NextAllocation != "" {
		if a = w.Alloc(a.NextAllocation); a == nil {
			return chain, false
		}
		chain = append(chain, a)
	}
	return chain, true
}

// moves: the data that the client of an allocation keeps may still move, to the taker or to one that is
// not placed.
func (w rows) moves(a *cluster.Allocation) (taker *cluster.Allocation, may bool) {
	if n := w.nodeOf(a); n == nil || n.Status == "down" {
		return nil, false
	}
	chain, complete := w.chain(a)
	for _, next := range chain[1:] {
		switch s := stateOf(next.DataIn); {
		case s == "copied" || s == "given up":
			return nil, false
		case !hasEnded(next) && !toStop(next):
			return next, waitsForData(next) || s == "none" && next.ClientStatus != "running"
		}
	}
	last := chain[len(chain)-1]
	done := typeOf(last) != "service" && last.ClientStatus == "complete"
	evals := len(w.evalsOf(last, "pending")) + len(w.evalsOf(last, "blocked"))
	return nil, complete && w.getsData(last) && !last.DesiredTransition.MigrateDisablePlacement && !done && (evals > 0 || w.retried(last))
}

// retried: the policy of its group has the scheduler replace it later, although no evaluation is open.
func (w rows) retried(a *cluster.Allocation) bool {
	g, job := w.groupOf(a), w.jobOf(a)
	if g == nil || g.Reschedule == nil || toStop(a) || !hasEnded(a) || a.Job != nil && a.Job.Type != job.Type {
		return false
	}
	switch {
	case job.Type == "system" || job.Type == "sysbatch", job.Type == "batch" && a.ClientStatus == "complete":
		return false
	case g.Reschedule.Unlimited, a.DesiredTransition.Migrate, a.DesiredTransition.ForceReschedule:
		return true
	}
	attempts := 0
	for now := a.EndedAt; ; attempts++ {
		began := a.CreateTime
		a = w.Alloc(a.PreviousAllocation)
		if a == nil || !toStop(a) || a.EndedAt.IsZero() || a.DesiredTransition.Migrate || now.Sub(began) >= g.Reschedule.Interval {
			return attempts < g.Reschedule.Attempts
		}
	}
}

// onlyCopy: the data that the client of an allocation keeps may still move, or its slot was given up.
func (w rows) onlyCopy(a *cluster.Allocation) bool {
	if _, may := w.moves(a); may {
		return true
	}
	chain, complete := w.chain(a)
	for _, next := range chain[1:] {
		if s := stateOf(next.DataIn); s == "copied" || s == "given up" || !hasEnded(next) && !toStop(next) {
			return false
		}
	}
	last, n := chain[len(chain)-1], w.nodeOf(a)
	done := typeOf(last) != "service" && last.ClientStatus == "complete"
	return complete && n != nil && n.Status != "down" && w.getsData(last) && !last.DesiredTransition.MigrateDisablePlacement && !done && !toStop(last)
}

// awaited are the ended allocations for whose data the drain of a node waits.
func (w *twin) awaited(n *cluster.Node) (awaited []*cluster.Allocation) {
	if w.deadlineMet(n) || w.policy.Completion == CompletionMarked {
		return nil
	}
	for _, a := range w.Allocs {
		if _, may := w.moves(a); a.NodeID == n.ID && keepsData(a) && may && w.mustLeave(a) {
			awaited = append(awaited, a)
		}
	}
	return awaited
}

// notCopiedOn returns what the record of a node's drain counts as not copied.
func (w *twin) notCopiedOn(n *cluster.Node) *cluster.DataNotCopied {
	var ids []cluster.AllocID
	for _, a := range w.Allocs {
		lost := stateOf(a.DataOut) == "kept" || stateOf(a.DataOut) == "given up" ||
			a.DataOut == nil && (a.ClientStatus == "lost" || !hasEnded(a))
		stays := n.Drain.Strategy.IgnoreSystemJobs && turnOf(a) == 1
		switch {
		case a.DesiredTransition.Drain == n.Drain.ID:
			if lost && w.getsData(a) {
				ids = append(ids, a.ID)
			}
		case a.NodeID == n.ID && keepsData(a) && w.onlyCopy(a) && !stays:
			ids = append(ids, a.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	return &cluster.DataNotCopied{Count: len(ids), Allocs: ids[:min(len(ids), 20)]}
}
