package statestore

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// DrainUpdate is a request to start, update or end the drain of a node.
type DrainUpdate struct {
	Node cluster.NodeID
	// Spec is what the operator asks for, or nil to end the drain.
	Spec *cluster.DrainSpec
	// Drain is the id of the drain if the request starts one; it must be new.
	// A request that updates or ends a drain does not use it.
	Drain cluster.DrainID
	// MarkEligible makes the node eligible if the request leaves it not draining.
	MarkEligible bool
	// At is the proposer's time. A deadline counts from it.
	At time.Time
	// Key is the request's idempotency key, or empty.
	Key string
	// Meta and UpdatedBy are what the operator says of the request, or empty:
	// then what was said before stays.
	Meta      map[string]string
	UpdatedBy string
}

// DrainResult says what a [DrainUpdate] did.
type DrainResult struct {
	// Drain is the drain that the request started, updated or ended, or that its
	// key was seen in; empty if the node was not draining and does not.
	Drain cluster.DrainID
	// Repeated says that the request's key was seen before: nothing changed.
	Repeated bool
	// Withdrawn counts the marks that ending the drain withdrew.
	Withdrawn int
	// Stopping are, by id, the allocations whose mark could not be withdrawn:
	// they are to stop already, and have not yet.
	Stopping []cluster.AllocID
}

// UpdateNodeDrain starts, updates or ends the drain of a node. Everything it
// writes follows from the request and the state it is applied in. The error is
// [ErrNodeNotFound], or says that the id for a new drain is missing or taken.
func (t *Txn) UpdateNodeDrain(u DrainUpdate) (DrainResult, error) {
	n := t.Node(u.Node)
	if n == nil {
		return DrainResult{}, ErrNodeNotFound
	}
	if seen := t.drainWithKey(n, u.Key); seen != nil {
		return DrainResult{Drain: seen.ID, Repeated: true}, nil
	}
	switch {
	case u.Spec == nil:
		return t.cancelDrain(n, u), nil
	case n.Draining():
		t.putNode(n, lifecycle.UpdateDrain(n, u.request(), t.written.index))
		return DrainResult{Drain: n.Drain.ID}, nil
	}
	if err := t.checkDrainID(u.Drain); err != nil {
		return DrainResult{}, err
	}
	t.putNode(n, lifecycle.StartDrain(n, u.Drain, u.request(), t.written.index))
	return DrainResult{Drain: u.Drain}, nil
}

// request is what the update says, whatever it does.
func (u DrainUpdate) request() lifecycle.Request {
	r := lifecycle.Request{MarkEligible: u.MarkEligible, At: u.At, Key: u.Key, Meta: u.Meta, UpdatedBy: u.UpdatedBy}
	if u.Spec != nil {
		r.Spec = *u.Spec
	}
	return r
}

// drainWithKey returns the node's drain, running or kept as a record, that a
// request with the key made what it is, or nil.
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

// cancelDrain ends the node's drain because the operator said so.
func (t *Txn) cancelDrain(n *cluster.Node, u DrainUpdate) DrainResult {
	c := lifecycle.CancelDrain(t, n, u.request(), t.written.index)
	before := make([]*cluster.Allocation, len(c.Withdrawn))
	for i, a := range c.Withdrawn {
		before[i] = t.Alloc(a.ID)
	}
	for i, a := range c.Withdrawn {
		t.putAlloc(before[i], a)
	}
	result := DrainResult{Withdrawn: len(c.Withdrawn), Stopping: c.Stopping}
	if c.Record != nil {
		result.Drain = c.Record.ID
		t.recordDrain(c.Record)
	}
	t.putNode(n, c.Node)
	return result
}

// CompleteDrains ends drains whose end has been judged true in this state, see
// [rules.RecheckCompletions]. One whose node is gone, does not drain, or is in
// another drain by now changes nothing. The nodes stay ineligible.
func (t *Txn) CompleteDrains(at time.Time, endings []rules.Ending) {
	for _, e := range endings {
		n := t.Node(e.Node)
		if after, record := lifecycle.EndDrain(n, e, at, t.written.index); after != nil {
			t.recordDrain(record)
			t.putNode(n, after)
		}
	}
}
