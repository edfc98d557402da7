package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// Write is one write that a drainer proposed: marks, ends of drains, or a barrier.
type Write struct {
	// Term is the drainer's term. N is the write's number in the term.
	Term, N int
	// Message is the proposed message, or nil for a barrier.
	Message shims.Message
	// Bytes is the size of the entry, or zero for a barrier.
	Bytes int
}

// write is a proposed write.
type write struct {
	Write
	sequence int
	barrier  bool
	// seen is the index of the state that the drainer planned from, and clock the time on its
	// clock. Both are set at the end of the step.
	seen  uint64
	clock time.Time
}

// items returns the items of a drainer's write, without evaluations.
func items(m shims.Message) (marks []rules.Mark, reevaluate []cluster.GroupKey, ends []rules.Completion) {
	switch m := m.(type) {
	case *shims.AllocUpdateDesiredTransition:
		return m.Marks.Marks, m.Reevaluate, nil
	case *shims.NodesDrainComplete:
		return nil, nil, m.Completions.Completions
	}
	return nil, nil, nil
}
