package invariant

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// G3 order: consumers leave first, then system allocations, then storage plugins. The end of
// the drain follows, which G5 judges. Batch and sysbatch work runs until the deadline. Deadline
// and force drop the budget, not the order. The state before an entry decides whether the turn
// of its marks has come. That is safe, because marks never delay a turn.

// checkTurn judges whether the turn of an allocation has come.
func (m *snapshot) checkTurn(a *alloc, r ruling) verdict {
	switch r.hold {
	case rules.ReasonWaitingForStage:
		return fails(OutOfTurn, fmt.Sprintf("%s has not left", m.waitsFor(a.node, a.stage).id()))
	case rules.ReasonBatchRunning:
		return fails(BatchEarly, "batch work may run until the deadline")
	}
	return allowed()
}
