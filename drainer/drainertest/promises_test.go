package drainertest_test

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// promises are by when drains were said to end, by drain and what they were then
// asked for.
type promises map[promised]time.Time

type promised struct {
	drain    cluster.DrainID
	revision cluster.Revision
}

// check says which drain runs on beyond the last time by which it was said to end.
// A drain may say later and later times while things land on its node, but never
// be past all that it has said.
func (p *promises) check(w *world.World) error {
	if *p == nil {
		*p = promises{}
	}
	for n := range w.State().DrainingNodes() {
		report, _ := w.Explain(n.ID)
		if report.EndsBy.IsZero() {
			continue
		}
		key := promised{n.Drain.ID, n.Drain.Revision}
		if report.EndsBy.After((*p)[key]) {
			(*p)[key] = report.EndsBy
		}
		if late := w.Clock().Sub((*p)[key]); late > 0 {
			return fmt.Errorf("the drain of %s was to end %s ago", n.ID, late)
		}
	}
	return nil
}
