package cases_test

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// promises are by when drains were said to end, by drain and what they were then
// asked for.
type promises map[promised]time.Time

type promised struct {
	drain    cluster.DrainID
	revision cluster.Revision
}

// check says which drain runs on beyond the last time by which it was said to end.
// A drain may promise later and later times while allocations arrive on its node.
// It must not outlast all its promises, with any one fault.
func (p promises) check(clock time.Time, reports []rules.Report) error {
	for i := range reports {
		report := &reports[i]
		if report.EndsBy.IsZero() {
			continue
		}
		key := promised{report.Drain.ID, report.Drain.Revision}
		if report.EndsBy.After(p[key]) {
			p[key] = report.EndsBy
		}
		if late := clock.Sub(p[key]); late > 0 {
			return fmt.Errorf("the drain of %s was to end %s ago", report.Drain.NodeID, late)
		}
	}
	return nil
}
