package statestore

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// UpdateNodeDrain starts, updates or ends the drain of a node. The error is
// [ErrNodeNotFound], or says that the id of a new drain is missing or taken.
func (t *Txn) UpdateNodeDrain(u cluster.DrainUpdate) (cluster.DrainResult, error) {
	n := t.Node(u.Node)
	if n == nil {
		return cluster.DrainResult{}, ErrNodeNotFound
	}
	if d := t.drainWithKey(n, u.Key); d != nil {
		return cluster.DrainResult{Drain: d.ID, Repeated: true}, nil
	}
	switch {
	case u.Spec == nil:
		return t.cancelDrain(n, u), nil
	case n.Draining():
		t.putNode(n, lifecycle.UpdateDrain(n, u, t.written.index))
		return cluster.DrainResult{Drain: n.Drain.ID}, nil
	}
	if err := t.checkDrainID(u.Drain); err != nil {
		return cluster.DrainResult{}, err
	}
	t.putNode(n, lifecycle.StartDrain(n, u, t.written.index))
	return cluster.DrainResult{Drain: u.Drain}, nil
}

// drainWithKey returns the node's drain, running or recorded, that a request with the key
// has started or updated, or nil.
func (t *Txn) drainWithKey(n *cluster.Node, key string) *cluster.Drain {
	if n.Draining() && n.Drain.HasKey(key) {
		return n.Drain
	}
	for d := range t.DrainsByNode(n.ID) {
		if d.HasKey(key) {
			return d
		}
	}
	return nil
}

func (t *Txn) checkDrainID(id cluster.DrainID) error {
	if id == "" {
		return errors.New("starting a drain without an id")
	}
	if t.DrainRecord(id) != nil || t.DrainingNode(id) != nil {
		return fmt.Errorf("starting a drain: the id %s is taken", id)
	}
	return nil
}

// cancelDrain ends the node's drain on the operator's request.
func (t *Txn) cancelDrain(n *cluster.Node, u cluster.DrainUpdate) cluster.DrainResult {
	c := lifecycle.CancelDrain(t, n, u, t.written.index)
	before := make([]*cluster.Allocation, len(c.Withdrawn))
	for i, a := range c.Withdrawn {
		before[i] = t.Alloc(a.ID)
	}
	for i, a := range c.Withdrawn {
		t.putAlloc(before[i], a)
	}
	result := cluster.DrainResult{Withdrawn: len(c.Withdrawn), Stopping: c.Stopping}
	if c.Record != nil {
		result.Drain = c.Record.ID
		t.recordDrain(c.Record)
	}
	t.putNode(n, c.Node)
	return result
}

// CompleteDrains ends drains that [rules.RecheckCompletions] has accepted in this state. An ending
// is ignored if its node does not exist or is not in that drain. The nodes stay ineligible.
func (t *Txn) CompleteDrains(at time.Time, endings []rules.Ending) {
	for _, e := range endings {
		n := t.Node(e.Node)
		if n.Draining() {
			e.VolumesLeft = volumesLeft(t, n.Drain)
		}
		if after, record := lifecycle.EndDrain(n, e, at, t.written.index); after != nil {
			t.recordDrain(record)
			t.putNode(n, after)
		}
	}
}
