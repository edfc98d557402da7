package cluster

// Collected counts the ended rows that were deleted.
type Collected struct {
	Allocs, Evals, Jobs int
}

// Total is the sum of all kinds.
func (c Collected) Total() int { return c.Allocs + c.Evals + c.Jobs }

// Plus adds the counts of o.
func (c Collected) Plus(o Collected) Collected {
	return Collected{Allocs: c.Allocs + o.Allocs, Evals: c.Evals + o.Evals, Jobs: c.Jobs + o.Jobs}
}
