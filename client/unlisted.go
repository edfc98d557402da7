package client

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// list records whether the servers list the allocation, and publishes a change at once. Otherwise a drain of
// the node could be complete while tasks run, or unconfirmed although they are listed and have ended.
func (a *allocRunner) list(listed bool) {
	if a.listed != listed && !a.rec.Ended {
		a.core.publisher.noteUrgent()
	}
	a.listed = listed
}

// relist records which allocations a complete answer lists. known are those that are not client-terminal.
// A lost one is listed if the answer contains its row.
func relist(c *Core, w Changes, known map[cluster.AllocID]bool) {
	listed := map[cluster.AllocID]bool{}
	for _, alloc := range w.Allocs {
		listed[alloc.ID] = alloc.Listed()
	}
	for _, u := range w.Unreadable {
		listed[u.Alloc.ID] = u.Alloc.Listed()
	}
	for _, a := range c.allocs {
		a.list(known[a.id()] || listed[a.id()])
	}
}

// unlisted returns the allocations whose tasks may run and that the servers do not list.
func (c *Core) unlisted() *cluster.UnlistedAllocs {
	var ids []cluster.AllocID
	for _, rec := range c.options.Records { // before the first step
		if !rec.Ended {
			ids = append(ids, rec.Alloc.ID)
		}
	}
	for _, a := range c.allocs {
		if !a.listed && !a.rec.Ended {
			ids = append(ids, a.id())
		}
	}
	return cluster.NewUnlistedAllocs(ids)
}
