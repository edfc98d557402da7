package invariant

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// G3 order: consumers first; then system allocations; then storage plugins; then
// the end, which G5 judges. Batch and sysbatch run on until the deadline. Deadline
// and force drop the budget, not the order. The turn of a mark is judged by the
// state before its entry: marks bring turns nearer, never further away.

// checkTurn judges whether the turn of an allocation has come.
func (m *snapshot) checkTurn(a *alloc, r ruling) verdict {
	switch r.hold {
	case rules.ReasonWaitingForStage:
		return fails(OutOfTurn, fmt.Sprintf("%s has not left", m.waitsFor(a.node, a.turn).id()))
	case rules.ReasonBatchRunning:
		return fails(BatchEarly, "it runs until it is done, or the deadline")
	}
	return held()
}
