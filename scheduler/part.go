package scheduler

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// firstPart returns the first n stops and placements of the plan, n >= 2: stops with their
// replacements, then other placements. The evaluation of a part stays pending, so that the
// scheduler plans the rest next.
func firstPart(p *cluster.Plan, n int) *cluster.Plan {
	if len(p.Stops)+len(p.Places) <= n {
		return p
	}
	part := &cluster.Plan{At: p.At, Eval: p.Eval.Copy(), SnapshotIndex: p.SnapshotIndex, Answers: p.Answers}
	part.Eval.Status = cluster.EvalPending
	part.Eval.BlockedEval = ""
	follows := make(map[cluster.AllocID]*cluster.Allocation, len(p.Places))
	for _, a := range p.Places {
		if a.PreviousAllocation != "" {
			follows[a.PreviousAllocation] = a
		}
	}
	paired := make(map[cluster.AllocID]bool) // replacements of stopped allocations
	for _, s := range p.Stops {
		replacement := follows[s.Alloc]
		if replacement != nil {
			paired[replacement.ID] = true
		}
		switch {
		case replacement == nil && n >= 1:
			part.Stops = append(part.Stops, s)
			n--
		case replacement != nil && n >= 2:
			part.Stops = append(part.Stops, s)
			part.Places = append(part.Places, replacement)
			n -= 2
		}
	}
	for _, a := range p.Places {
		if n > 0 && !paired[a.ID] {
			part.Places = append(part.Places, a)
			n--
		}
	}
	return part
}
