package httpapi

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// listNodeChanges answers GET /v1/node/{id}/allocations?changes={cluster}&index={index}: what the
// servers have changed of a node's allocations since the index of an earlier answer of the cluster.
// The node's client reads it. A reader waits for such a change; reports of the client are none.
//
// The answer is complete if the server does not know what has happened since: for an index of
// another cluster, and for one from before the snapshot from which the server was restored. This
// includes all indexes from before an operator restored a saved state.
func listNodeChanges(q *request) error {
	since, cluster := q.params.index, q.backend.Peers.Cluster()
	known := since > 0 && q.URL.Query().Get("changes") == cluster
	return q.read(func(s State) (found, error) {
		c := changes{state: s, cluster: cluster, complete: !known || since < s.HistoryFrom()}
		c.read(q.nodeID(), since)
		f := found{index: since, body: func() (any, error) { return c.answer(q), nil }}
		if c.any() {
			f.index++
		}
		return f, nil
	})
}

// changes are what a node's client has to learn of one state.
type changes struct {
	state   State
	cluster string
	// complete says that rows are all allocations that are not client-terminal. Otherwise they are
	// those that the servers have changed.
	complete bool
	rows     []*cluster.Allocation
	// live are the ids of all allocations that are not client-terminal. It is nil if the client needs no
	// list of them.
	live []string
}

// read reads the node's allocations. It walks all of them, which costs little beside encoding one.
func (c *changes) read(id cluster.NodeID, since uint64) {
	if !c.complete && c.state.RemovedAt() > since {
		c.live = []string{}
	}
	for a := range c.state.AllocsByNode(id) {
		if c.live != nil && !a.ClientTerminal() {
			c.live = append(c.live, string(a.ID))
		}
		if c.complete && !a.ClientTerminal() || !c.complete && a.AllocModifyIndex > since {
			c.rows = append(c.rows, a)
		}
	}
}

// any reports whether the client has to learn something.
func (c *changes) any() bool { return c.complete || len(c.rows) > 0 || c.live != nil }

// answer returns the answer, and sets its index: that of the state, so that the client does not ask
// again about entries that do not concern it.
func (c *changes) answer(q *request) wire.AllocChanges {
	index := max(1, c.state.Index())
	q.indexHeader(index)
	slices.Sort(c.live)
	return wire.AllocChanges{
		ClusterID: c.cluster, Index: index, Complete: c.complete,
		Allocs: wire.NewNodeAllocations(slices.Collect(byID(c.rows)), q.options.Region), Live: c.live,
	}
}
