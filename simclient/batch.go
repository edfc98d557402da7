package simclient

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// batch is what was reported at once.
type batch struct{ lines []line }

// line is one report of a batch.
type line struct {
	node  cluster.NodeID
	alloc cluster.AllocID
	said  words
}

// outbox are the clients with something to report, first come first served.
type outbox struct{ clients []*client }

func (o *outbox) add(c *client) {
	if !c.listed {
		c.listed = true
		o.clients = append(o.clients, c)
	}
}

// fill takes reports out, up to a number of them. A client that has more to say
// than there is room for stays the first; one out of touch comes back by itself.
func (o *outbox) fill(limit int, now time.Time) (*batch, []cluster.AllocReport) {
	b := &batch{}
	var reports []cluster.AllocReport
	for len(o.clients) > 0 {
		c := o.clients[0]
		for _, t := range c.order {
			if c.mute || !t.unsaid() {
				continue
			}
			if len(reports) == limit {
				return b, reports
			}
			t.acked = t.is // unless it turns out otherwise
			b.lines = append(b.lines, line{node: c.node, alloc: t.alloc.ID, said: t.is})
			reports = append(reports, t.report(now))
		}
		c.listed = false
		o.clients[0] = nil // the slice outlives the client
		o.clients = o.clients[1:]
	}
	return b, reports
}
