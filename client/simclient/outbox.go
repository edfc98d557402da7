package simclient

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// batch is the reports that were sent together.
type batch struct{ lines []line }

// line is one report of a batch.
type line struct {
	node  cluster.NodeID
	alloc cluster.AllocID
}

// outbox holds the clients with something to report, in the order in which they were added.
type outbox struct{ clients []*client }

func (o *outbox) add(c *client) {
	if !c.listed {
		c.listed = true
		o.clients = append(o.clients, c)
	}
}

// fill takes out reports, up to the limit. A client with more reports than that stays the
// first. A client whose node is unreachable is removed: it is added again when the node is
// back.
func (o *outbox) fill(limit int, now time.Time) (b *batch, reports []cluster.AllocReport) {
	b = &batch{}
	for len(o.clients) > 0 {
		c := o.clients[0]
		for _, t := range c.order {
			if c.unreachable || !t.unreported() {
				continue
			}
			if len(reports) == limit {
				return b, reports
			}
			t.acknowledged = t.actual // a failure resets it
			b.lines = append(b.lines, line{node: c.node, alloc: t.alloc.ID})
			reports = append(reports, t.report(now))
		}
		c.listed = false
		o.clients[0] = nil // the slice outlives the client
		o.clients = o.clients[1:]
	}
	return b, reports
}
