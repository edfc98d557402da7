package demo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// drainRun is one drain of the run.
type drainRun struct {
	node cluster.NodeID
	name string
	// deadline is in real time from the drain's start; zero is none.
	deadline time.Duration
	// total is the most allocations that had to leave at one time. It grows while other
	// drains have not started yet: their replacements may be placed here.
	total int

	id   cluster.DrainID
	last DrainLook
}

// choose picks n nodes to drain. Of the nodes that run a service or batch allocation, ordered
// by id, it takes every k-th, so that there are n, and starts at the seed's remainder. Nodes
// with batch work get the deadline, and so does every other one of the others. If no chosen
// node has batch work, the first node that has some replaces the last one. Sysbatch does not
// count: it ends by itself.
func choose(s *statestore.Snapshot, n int, deadline time.Duration, seed uint64) ([]*drainRun, error) {
	var busy, batch []*cluster.Node
	for node := range s.Nodes() {
		switch kinds := consumers(s, node.ID); {
		case kinds[cluster.JobBatch]:
			batch = append(batch, node)
			fallthrough
		case kinds[cluster.JobService]:
			busy = append(busy, node)
		}
	}
	if len(busy) < n {
		return nil, fmt.Errorf("cannot drain %d nodes: only %d run allocations", n, len(busy))
	}
	byID := func(a, b *cluster.Node) int { return cmp.Compare(a.ID, b.ID) }
	slices.SortFunc(busy, byID)
	slices.SortFunc(batch, byID)
	step := len(busy) / n
	chosen := make([]*cluster.Node, n)
	for i := range chosen {
		chosen[i] = busy[i*step+int(seed%uint64(step))]
	}
	if len(batch) > 0 && !slices.ContainsFunc(chosen, func(c *cluster.Node) bool { return consumers(s, c.ID)[cluster.JobBatch] }) {
		chosen[n-1] = batch[0]
	}
	runs := make([]*drainRun, n)
	others := 0
	for i, node := range chosen {
		runs[i] = &drainRun{node: node.ID, name: node.Name, total: s.Usage(node.ID).Live}
		if !consumers(s, node.ID)[cluster.JobBatch] {
			others++
			if others%2 == 1 {
				continue
			}
		}
		runs[i].deadline = deadline
	}
	return runs, nil
}

// consumers are the types of the jobs that may run on the node, without system jobs and
// storage plugins.
func consumers(s *statestore.Snapshot, id cluster.NodeID) map[cluster.JobType]bool {
	kinds := make(map[cluster.JobType]bool)
	for a := range s.WorkView().LiveAllocsByNode(id) {
		if a.Stage() == cluster.StageConsumers {
			kinds[a.JobType()] = true
		}
	}
	return kinds
}

// start starts the drain.
func (r *drainRun) start(ctx context.Context, g *server.Group) error {
	update := cluster.DrainUpdate{
		Node: r.node,
		Spec: &cluster.DrainSpec{Deadline: r.deadline},
		Key:  "demo " + string(r.node), // a repeated request is the same drain
		Meta: map[string]string{"message": "drained by the demo"},
	}
	err := g.Do(ctx, func(ctx context.Context, s *server.Server) error {
		updated, err := s.Requests().UpdateDrain(ctx, update)
		r.id = updated.Drain
		return err
	})
	if err != nil {
		return fmt.Errorf("draining %s: %w", r.node, err)
	}
	r.last = DrainLook{Node: r.name, Total: r.total, Left: r.total}
	return nil
}

// setLeft notes how many allocations still have to leave, by stage.
func (r *drainRun) setLeft(left [cluster.StageCount]int) {
	r.last.Left = 0
	for _, n := range left {
		r.last.Left += n
	}
	r.total = max(r.total, r.last.Left)
	r.last.Total = r.total
}
