package client

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// ErrOtherCluster means that an answer is of another cluster than those before. The node keeps what it
// runs, and joins the other cluster when it runs nothing.
var ErrOtherCluster = errors.New("the servers belong to another cluster")

// ErrOlder means that an answer is older than those before: the server lacks writes that another one
// has shown. Repeat the request later. If the next answer is as old, the servers have lost these writes.
var ErrOlder = errors.New("the state of the server is older than one that was read before")

// NodeAllocs holds the allocations of a node that are not client-terminal, as its client has them
// from [Changes] and from its own reports. The zero value holds none. It belongs to one goroutine at
// a time.
type NodeAllocs struct {
	// known is the state that the next request names; zero is for all allocations.
	known Since
	// newest is the newest state that was merged, of a server that names its cluster.
	newest Since
	// rows are never nil after the first merge, and are never written to.
	rows map[cluster.AllocID]*cluster.Allocation
	// reported are the reports that the newest merged state may lack.
	reported map[cluster.AllocID]reported
	// replaced: the servers may have lost the state of the rows, so a row of theirs with the same indexes may
	// be another one.
	replaced bool
	// unreadable are allocations without a row, which the client must report as failed.
	unreadable map[cluster.AllocID]Unreadable
}

// reported is a report that the servers have taken.
type reported struct {
	cluster.AllocReport
	index uint64
}

// Since returns the state to name in the next request.
func (n *NodeAllocs) Since() Since { return n.known }

// All returns the allocations by id. The caller does not write to the rows. A row that has not
// changed is the same in two calls.
func (n *NodeAllocs) All() []*cluster.Allocation {
	return slices.SortedFunc(maps.Values(n.rows), func(a, b *cluster.Allocation) int { return cmp.Compare(a.ID, b.ID) })
}

// Merge takes in the answer to a request with Since, and returns whether it changed something. An
// allocation that All no longer returns has ended, or must be stopped. Only a change that names it, or
// an answer of the same cluster that is not older than those before, removes one. If All is empty, an
// answer with all allocations may be of another cluster. The error wraps [ErrOtherCluster] or
// [ErrOlder], and then only Since has changed: the next request is for all. So it is without an error
// if the servers may have lost reports of this client.
func (n *NodeAllocs) Merge(c Changes) (changed bool, err error) {
	since := n.known
	n.known = Since{}
	named := c.ClusterID != ""
	lost := named && c.Complete && since.Index > 0 && since.ClusterID == c.ClusterID
	switch {
	case named && n.newest.ClusterID != "" && c.ClusterID != n.newest.ClusterID && c.Complete && len(n.rows) == 0:
		n.reported = nil // nothing of the other cluster is left
	case named && n.newest.ClusterID != "" && c.ClusterID != n.newest.ClusterID:
		return false, fmt.Errorf("%w: %s, before %s", ErrOtherCluster, c.ClusterID, n.newest.ClusterID)
	case named && c.Index < n.newest.Index:
		err = fmt.Errorf("%w: index %d, before %d", ErrOlder, c.Index, n.newest.Index)
		if c.Complete {
			n.newest.Index, n.reported, n.replaced = 0, nil, true
		}
		return false, err
	case !c.Complete && (since.Index == 0 || since.ClusterID != c.ClusterID):
		return false, errors.New("the answer has only changes, but the request was for all allocations")
	}
	maps.DeleteFunc(n.reported, func(_ cluster.AllocID, r reported) bool { return r.index <= c.Index })
	n.replaced = n.replaced || lost
	if lost && len(n.reported) > 0 {
		n.reported = nil
		return false, nil
	}
	n.known = c.Since
	if named {
		n.newest = c.Since
	}
	if n.rows == nil {
		n.rows = make(map[cluster.AllocID]*cluster.Allocation)
	}
	for _, a := range c.Allocs {
		changed = n.set(n.overlaid(a)) || changed
	}
	for _, u := range c.Unreadable {
		changed = n.setUnreadable(u) || changed
	}
	n.replaced = n.replaced && !c.Complete
	return n.keep(c.Live) || changed, nil
}

// Unreadable returns the allocations, by id, that the client cannot read and does not run. The client
// reports them as failed, and calls Reported. All does not return them.
func (n *NodeAllocs) Unreadable() []Unreadable {
	return slices.SortedFunc(maps.Values(n.unreadable), func(a, b Unreadable) int { return cmp.Compare(a.Alloc.ID, b.Alloc.ID) })
}

// setUnreadable handles a row that the client cannot read. A row that the client has stays, with the newer
// desired status.
func (n *NodeAllocs) setUnreadable(u Unreadable) (changed bool) {
	if before := n.rows[u.Alloc.ID]; before != nil {
		newer := before.Copy()
		newer.DesiredStatus, newer.DesiredDescription = cmp.Or(u.Alloc.DesiredStatus, before.DesiredStatus), u.Alloc.DesiredDescription
		newer.DesiredTransition, newer.ClientStatus = u.Alloc.DesiredTransition, u.Alloc.ClientStatus
		newer.AllocModifyIndex, newer.ModifyIndex = u.Alloc.AllocModifyIndex, u.Alloc.ModifyIndex
		return n.set(n.overlaid(newer))
	}
	_, ended := n.reported[u.Alloc.ID]
	if u.Alloc.ClientTerminal() || ended {
		return false
	}
	if n.unreadable == nil {
		n.unreadable = make(map[cluster.AllocID]Unreadable)
	}
	n.unreadable[u.Alloc.ID] = u
	return true
}

// keep removes all allocations but those with the ids; nil removes none.
func (n *NodeAllocs) keep(live []cluster.AllocID) (changed bool) {
	if live == nil {
		return false
	}
	kept := make(map[cluster.AllocID]bool, len(live))
	for _, id := range live {
		kept[id] = true
	}
	before := len(n.rows)
	maps.DeleteFunc(n.unreadable, func(id cluster.AllocID, _ Unreadable) bool { return !kept[id] })
	maps.DeleteFunc(n.rows, func(id cluster.AllocID, _ *cluster.Allocation) bool { return !kept[id] })
	return len(n.rows) < before
}

// set replaces a row, or removes it if it is client-terminal. It returns whether that changed
// something.
func (n *NodeAllocs) set(a *cluster.Allocation) (changed bool) {
	before := n.rows[a.ID]
	delete(n.unreadable, a.ID)
	if a.ClientTerminal() {
		delete(n.rows, a.ID)
		return before != nil
	}
	if !n.replaced && before != nil && before.AllocModifyIndex == a.AllocModifyIndex && before.ModifyIndex == a.ModifyIndex {
		return false
	}
	n.rows[a.ID] = a
	return true
}

// Reported takes in reports that the servers have taken with the entry of the index. The servers
// do not send a client its own reports.
func (n *NodeAllocs) Reported(reports []cluster.AllocReport, index uint64) {
	if n.reported == nil {
		n.reported = make(map[cluster.AllocID]reported)
	}
	for _, r := range reports {
		delete(n.unreadable, r.Alloc)
		if index > n.newest.Index {
			n.reported[r.Alloc] = reported{r, index}
		}
		if a := n.rows[r.Alloc]; a != nil {
			n.set(withReport(a, reported{r, index}))
		}
	}
}

// overlaid returns the row with the report that it may lack.
func (n *NodeAllocs) overlaid(a *cluster.Allocation) *cluster.Allocation {
	if r, is := n.reported[a.ID]; is {
		return withReport(a, r)
	}
	return a
}

// withReport returns the row as the servers have it after the report, as far as a client needs it.
// The servers ignore a report about an allocation that has ended, but for one that was lost, which
// must stop in any case.
func withReport(a *cluster.Allocation, r reported) *cluster.Allocation {
	if a.ClientTerminal() {
		return a
	}
	c := a.Copy()
	c.ClientStatus, c.ClientDescription, c.ModifyIndex = r.ClientStatus, r.ClientDescription, max(a.ModifyIndex, r.index)
	if r.Healthy != nil {
		if c.DeploymentStatus == nil {
			c.DeploymentStatus = new(cluster.DeploymentStatus)
		}
		healthy := *r.Healthy
		c.DeploymentStatus.Healthy, c.DeploymentStatus.Timestamp, c.DeploymentStatus.ModifyIndex = &healthy, r.HealthyAt, r.index
	}
	return c
}
