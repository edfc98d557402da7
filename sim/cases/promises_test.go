package cases_test

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// promises are the latest ends that a drain has reported, by drain and revision.
type promises map[promised]time.Time

type promised struct {
	drain    cluster.DrainID
	revision cluster.Revision
}

// check returns an error if a drain runs longer than its latest reported end. A drain may report
// later ends while allocations arrive on its node. It must keep the latest, with any one fault.
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
			return fmt.Errorf("the drain of %s should have ended %s ago", report.Drain.NodeID, late)
		}
	}
	return nil
}
