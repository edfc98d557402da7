package statestore

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
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

// DrainUpdated says what a [DrainUpdate] did.
type DrainUpdated struct {
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
func (t *Txn) UpdateNodeDrain(u DrainUpdate) (DrainUpdated, error) {
	u.At = u.At.UTC()
	n := t.Node(u.Node)
	if n == nil {
		return DrainUpdated{}, ErrNodeNotFound
	}
	if seen := t.drainWithKey(n, u.Key); seen != nil {
		return DrainUpdated{Drain: seen.ID, Repeated: true}, nil
	}
	switch {
	case u.Spec != nil:
		return t.setDrain(n, u)
	case n.Draining():
		return t.cancelDrain(n, u), nil
	}
	after := t.touchNode(n, u.At)
	markEligible(after, u)
	t.putNode(n, after)
	return DrainUpdated{}, nil
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

// setDrain starts the node's drain, or gives the one that runs another strategy.
func (t *Txn) setDrain(n *cluster.Node, u DrainUpdate) (DrainUpdated, error) {
	message, d := cluster.EventDrainUpdated, n.Drain.Copy()
	if d == nil {
		if err := t.checkDrainID(u.Drain); err != nil {
			return DrainUpdated{}, err
		}
		message = cluster.EventDrainSet
		d = &cluster.Drain{ID: u.Drain, NodeID: n.ID, CreateIndex: t.written.index}
		d.Strategy.StartedAt = u.At
	}
	d.Strategy.DrainSpec = *u.Spec
	d.Strategy.ForceDeadline = time.Time{}
	if u.Spec.Deadline > 0 {
		d.Strategy.ForceDeadline = u.At.Add(u.Spec.Deadline)
	}
	d.Revision = cluster.Revision(t.written.index)
	d.NodeName = n.Name
	noteRequest(d, u)

	after := t.touchNode(n, u.At)
	after.Drain = d
	after.SchedulingEligibility = cluster.NodeIneligible
	after.LastDrain = lastDrain(n, cluster.DrainStatusDraining, u.At, u.Meta, u.UpdatedBy)
	after.AppendEvent(event(cluster.SubsystemDrain, message, u.At), t.written.index)
	t.putNode(n, after)
	return DrainUpdated{Drain: d.ID}, nil
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

// noteRequest writes down in the drain what made it what it is.
func noteRequest(d *cluster.Drain, u DrainUpdate) {
	d.UpdatedAt = u.At
	if u.Key != "" {
		d.Keys = append(d.Keys, u.Key)
		d.Keys = d.Keys[max(0, len(d.Keys)-cluster.MaxDrainKeys):]
	}
	if len(u.Meta) > 0 {
		d.Meta = maps.Clone(u.Meta)
	}
	if u.UpdatedBy != "" {
		d.UpdatedBy = u.UpdatedBy
	}
}

// cancelDrain ends the node's drain because the operator said so.
func (t *Txn) cancelDrain(n *cluster.Node, u DrainUpdate) DrainUpdated {
	result := DrainUpdated{Drain: n.Drain.ID}
	result.Withdrawn, result.Stopping = t.withdrawMarks(n.Drain.ID, u.At)

	t.recordDrain(n, drainEnd{outcome: cluster.OutcomeCancelled, at: u.At, stillStopping: len(result.Stopping), request: &u})
	after := t.touchNode(n, u.At)
	after.Drain = nil
	after.LastDrain = lastDrain(n, cluster.DrainStatusCanceled, u.At, u.Meta, u.UpdatedBy)
	after.AppendEvent(event(cluster.SubsystemDrain, cluster.EventDrainDisabled, u.At), t.written.index)
	markEligible(after, u)
	t.putNode(n, after)
	return result
}

// withdrawMarks takes back the drain's marks on allocations that are still meant
// to run, and returns how many, and the ones that stop already and go on. Marks
// that others made stay.
func (t *Txn) withdrawMarks(id cluster.DrainID, at time.Time) (withdrawn int, stopping []cluster.AllocID) {
	edits := t.editAllocs()
	for a := range t.DrainAllocs(id) {
		switch {
		case a.ClientTerminal():
		case a.ServerTerminal():
			stopping = append(stopping, a.ID)
		default:
			c := edits.edit(a, at)
			c.AllocModifyIndex = t.written.index
			withdraw(&c.DesiredTransition)
			withdrawn++
		}
	}
	edits.write()
	return withdrawn, stopping
}

// withdraw takes back a drain's mark, and leaves what others asked for.
func withdraw(d *cluster.DesiredTransition) {
	d.Migrate, d.MigrateDisablePlacement = false, false
	d.Drain, d.Class, d.MarkedAt = "", cluster.MarkNone, time.Time{}
}

// markEligible does what the request says of a node that does not drain.
func markEligible(n *cluster.Node, u DrainUpdate) {
	if u.MarkEligible {
		n.SchedulingEligibility = cluster.NodeEligible
	}
}

// CompleteDrains ends drains whose end has been judged true in this state, see
// [drainer.RecheckCompletions]. One whose node is gone, does not drain, or is in
// another drain by now changes nothing. The nodes stay ineligible.
func (t *Txn) CompleteDrains(at time.Time, endings []drainer.Ending) {
	at = at.UTC()
	for _, e := range endings {
		n := t.Node(e.Node)
		if !n.Draining() || n.Drain.ID != e.Drain {
			continue
		}
		done := event(cluster.SubsystemDrain, cluster.EventDrainComplete, at)
		if e.Outcome == cluster.OutcomeDeadlineReached || e.Outcome == cluster.OutcomeForced {
			done.Details = map[string]string{cluster.EventDetailDeadlineReached: "true"}
		}
		t.recordDrain(n, drainEnd{outcome: e.Outcome, at: at, stillStopping: e.StillStopping})
		after := t.touchNode(n, at)
		after.Drain = nil
		after.LastDrain = lastDrain(n, cluster.DrainStatusComplete, at, nil, "")
		after.AppendEvent(done, t.written.index)
		t.putNode(n, after)
	}
}

// lastDrain is the compatible API's account of a node's last drain after a write
// to the drain of n.
func lastDrain(n *cluster.Node, s cluster.DrainStatus, at time.Time, meta map[string]string, by string) *cluster.DrainMetadata {
	at = at.Truncate(time.Second)
	last := n.LastDrain.Copy()
	switch {
	case !n.Draining(): // the drain before this one is forgotten here
		last = &cluster.DrainMetadata{StartedAt: at}
	case last == nil:
		last = &cluster.DrainMetadata{StartedAt: n.Drain.Strategy.StartedAt.Truncate(time.Second)}
	}
	last.UpdatedAt, last.Status = at, s
	if len(meta) > 0 {
		last.Meta = maps.Clone(meta)
	}
	if by != "" {
		last.AccessorID = by
	}
	return last
}
