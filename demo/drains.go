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
	// deadline is a real one, counted from the drain's start; zero is none.
	deadline time.Duration
	// total is the most allocations that had to leave at one time: replacements
	// of others may still land here until all drains have begun.
	total int

	id   cluster.DrainID
	last DrainLook
}

// choose picks n nodes to drain. Of the nodes that run a service or batch
// allocation, by id, it takes every k-th, k such that there are n, and begins
// with the seed's remainder. Those with batch work get the deadline, and so does
// every other one of the rest. If none of them has batch work, the last makes way
// for the first node that has. Sysbatch counts as none of it: it ends by itself.
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
		return nil, fmt.Errorf("%d nodes are to be drained and only %d run anything", n, len(busy))
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
		runs[i] = &drainRun{node: node.ID, name: node.Name, total: s.LiveCount(node.ID)}
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

// consumers are the types of the jobs, storage plugins aside, of which something
// may run on the node.
func consumers(s *statestore.Snapshot, id cluster.NodeID) map[cluster.JobType]bool {
	kinds := make(map[cluster.JobType]bool)
	for a := range s.LiveAllocsByNode(id) {
		if a.Stage() == cluster.StageConsumers {
			kinds[a.JobType()] = true
		}
	}
	return kinds
}

// start asks for the drain.
func (r *drainRun) start(ctx context.Context, g *server.Group) error {
	update := statestore.DrainUpdate{
		Node: r.node,
		Spec: &cluster.DrainSpec{Deadline: r.deadline},
		Key:  "demo " + string(r.node), // asked again it is the same drain
		Meta: map[string]string{"message": "drained by the demo"},
	}
	err := g.Do(ctx, func(ctx context.Context, s *server.Server) error {
		updated, err := s.UpdateDrain(ctx, update)
		r.id = updated.Drain
		return err
	})
	if err != nil {
		return fmt.Errorf("draining %s: %w", r.node, err)
	}
	r.last = DrainLook{Node: r.name, Total: r.total, Left: r.total}
	return nil
}

// setLeft notes how many allocations have to leave, by stage.
func (r *drainRun) setLeft(left [cluster.StageCount]int) {
	r.last.Left = 0
	for _, n := range left {
		r.last.Left += n
	}
	r.total = max(r.total, r.last.Left)
	r.last.Total = r.total
}
