package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// Write is one write that a drainer proposed: marks, ends of drains, or a barrier.
type Write struct {
	// Term is the drainer's term, N tells the write from the term's others.
	Term, N int
	// Message is what was proposed, nil for a barrier.
	Message shims.Message
	// Bytes is the size of the entry; zero for a barrier.
	Bytes int
}

// write is one that was proposed.
type write struct {
	Write
	sequence int
	barrier  bool
	// seen is the index of the state that it was planned from, known once the step
	// has ended.
	seen uint64
	// clock is the drainer's time of the step, known once the step has ended.
	clock time.Time
}

// items are what a write of a drainer carries, besides evaluations.
func items(m shims.Message) (marks []rules.Mark, reevaluate []cluster.GroupKey, ends []rules.Completion) {
	switch m := m.(type) {
	case *shims.AllocUpdateDesiredTransition:
		return m.Marks.Marks, m.Reevaluate, nil
	case *shims.NodesDrainComplete:
		return nil, nil, m.Completions.Completions
	}
	return nil, nil, nil
}
