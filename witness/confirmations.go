package witness

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// maxNames bounds the allocations that a record names. It repeats the contract.
const maxNames = 20

// counted are the allocations that a record counts because nothing confirms their end.
type counted struct {
	// rows are those with a row. The others were purged while they might run.
	rows map[cluster.AllocID]bool
	// count is the count of the record, which also contains the purged and the unlisted ones.
	count int
	// unlisted are those that the node had reported as unlisted.
	unlisted opinion.Unlisted
}

// counts reports whether records in the state count unconfirmed allocations: the cluster version
// has this count, or the state has no versions.
func counts(s State) bool {
	versioned, has := s.(opinion.Versioned)
	return !has || versioned.ClusterVersion() >= opinion.CountsUnconfirmed
}

// unconfirmed yields the allocations that the record of an ended drain has to count in the state.
func unconfirmed(s State, record *cluster.Drain) iter.Seq[*cluster.Allocation] {
	return func(yield func(*cluster.Allocation) bool) {
		for a := range s.AllocsByNode(record.NodeID) {
			if opinion.Counted(a, record) && !yield(a) {
				return
			}
		}
	}
}

// confirmations judges what one entry does to the counts of unconfirmed allocations.
type confirmations struct {
	w *Witness
	e Entry
}

// judgeUnconfirmed judges what the record of a drain counts at the end of the drain. It returns the
// correct count.
func (c confirmations) judgeUnconfirmed(d *drain, running, record *cluster.Drain) int {
	var names []cluster.AllocID
	if counts(c.e.Before) {
		for a := range unconfirmed(c.e.After, record) {
			names = append(names, a.ID)
		}
		d.counted.unlisted = opinion.UnlistedOn(c.e.Before.Node(running.NodeID), c.e.After.Alloc)
		d.counted.count = len(names) + running.PurgedRunning + d.counted.unlisted.Count
	}
	d.counted.rows = make(map[cluster.AllocID]bool, len(names))
	for _, id := range names {
		d.counted.rows[id] = true
	}
	slices.Sort(names)
	f := Finding{Kind: MiscountedUnconfirmed, Drain: record.ID, Node: record.NodeID}
	expected := &cluster.UnconfirmedAllocs{Count: d.counted.count, Allocs: names[:min(len(names), maxNames)]}
	switch got := record.Unconfirmed; {
	case expected.Count == 0 && got == nil:
	case got == nil || got.Count != expected.Count || !slices.Equal(got.Allocs, expected.Allocs) || !got.ConfirmedAt.IsZero() || got.ConfirmedBy != "":
		f.Why = fmt.Sprintf("the record has %s, but nothing confirms %d allocations, %v", textOf(got), expected.Count, expected.Allocs)
		c.w.find(c.e, f)
	case !d.counted.unlisted.Same(got.Unlisted):
		f.Why = fmt.Sprintf("the record has %s, but the node reported %v as unlisted", textOf(got), d.counted.unlisted)
		c.w.find(c.e, f)
	}
	d.counted.count = countOf(record)
	d.Unconfirmed = d.counted.count
	c.followCount(record)
	return expected.Count
}

func textOf(u *cluster.UnconfirmedAllocs) string {
	if u == nil {
		return "no count of unconfirmed allocations"
	}
	text := fmt.Sprintf("the count %d of unconfirmed allocations, %v", u.Count, u.Allocs)
	if u.Unlisted != nil {
		text += fmt.Sprintf(", unlisted %v", *u.Unlisted)
	}
	if !u.ConfirmedAt.IsZero() || u.ConfirmedBy != "" {
		text += fmt.Sprintf(", confirmed at %s by %q", u.ConfirmedAt, u.ConfirmedBy)
	}
	return text
}

// followCount follows the count of an ended drain, if it is not zero.
func (c confirmations) followCount(record *cluster.Drain) {
	if u := record.Unconfirmed; u != nil && u.Count > 0 {
		c.w.counting[record.NodeID] = append(c.w.counting[record.NodeID], record.ID)
	}
}

// judgeConfirmations judges which allocations the entry confirms, and the records that count them.
func (c confirmations) judgeConfirmations(nodes []cluster.NodeID, allocs []cluster.AllocID) {
	ended := map[cluster.NodeID][]cluster.AllocID{}
	for _, id := range allocs {
		before, after := c.e.Before.Alloc(id), c.e.After.Alloc(id)
		switch {
		case before == nil || !opinion.MayRun(before):
			c.judgeConfirmedAtOnce(before, after)
		case after == nil:
			c.judgeDeleted(before)
		case opinion.Unconfirmed(before) && !opinion.Unconfirmed(after):
			c.judgeConfirmed(before, after)
			ended[before.NodeID] = append(ended[before.NodeID], id)
		default:
			c.judgeConfirmedAtOnce(before, after)
			if !opinion.MayRun(after) {
				ended[before.NodeID] = append(ended[before.NodeID], id)
			}
		}
		if before != nil {
			nodes = append(nodes, before.NodeID)
		}
	}
	for _, id := range sorted(nodes) {
		c.judgeRecords(id, ended[id])
	}
}

// judgeConfirmedAtOnce finds an allocation that is confirmed although it was not unconfirmed.
func (c confirmations) judgeConfirmedAtOnce(before, after *cluster.Allocation) {
	if after != nil && !after.ConfirmedAt.IsZero() && (before == nil || before.ConfirmedAt.IsZero()) {
		c.w.find(c.e, Finding{Kind: ConfirmedEarly, Node: after.NodeID, Alloc: after.ID, Why: "an allocation was confirmed that was not lost"})
	}
}

// judgeConfirmed judges why the end of an allocation is confirmed. A status that its client may
// report confirms it; otherwise enough time has passed, or an operator has confirmed a drain that
// counts it.
func (c confirmations) judgeConfirmed(before, after *cluster.Allocation) {
	f := Finding{Kind: ConfirmedEarly, Node: before.NodeID, Alloc: before.ID}
	reported := after.ClientStatus == "complete" || after.ClientStatus == "failed"
	switch at := opinion.StoppedByItself(before, c.e.Before.Node(before.NodeID)); {
	case after.ConfirmedAt.IsZero() && reported:
		return
	case after.ConfirmedAt.IsZero() || after.ClientStatus != before.ClientStatus:
		f.Why = fmt.Sprintf("a lost allocation has the status %s, and no client reports this", after.ClientStatus)
	case !c.e.At.IsZero() && !after.ConfirmedAt.Equal(c.e.At):
		f.Why = fmt.Sprintf("the entry of %s confirmed it at %s", c.e.At, after.ConfirmedAt)
	case c.e.Source == Operator && c.confirmedByOperator(before), c.e.Source == UnknownSource:
		return
	case at.IsZero():
		f.Why = "no time confirms its end"
	case c.e.Source != Other:
		f.Why = "time confirmed it in an entry with the clock of the leader, which may be set forward"
	case after.ConfirmedAt.Before(at):
		f.Why = fmt.Sprintf("it was confirmed at %s, and its node has stopped it only at %s", after.ConfirmedAt, at)
	default:
		return
	}
	c.w.find(c.e, f)
}

// confirmedByOperator reports whether the entry is an operator's confirmation of a drain that
// counts the allocation.
func (c confirmations) confirmedByOperator(a *cluster.Allocation) bool {
	return slices.ContainsFunc(c.w.counting[a.NodeID], func(id cluster.DrainID) bool {
		before, after := c.e.Before.DrainRecord(id), c.e.After.DrainRecord(id)
		return c.w.drains[id].counted.rows[a.ID] && before != nil && after != nil && before.Unconfirmed != after.Unconfirmed && after.Unconfirmed != nil && after.Unconfirmed.ConfirmedBy != ""
	})
}

// judgeGone finds a row that was deleted although its tasks may run: a later drain of the node would not
// wait for them. The collection may delete one that was given up. A state without cluster versions may
// count it in the running drain instead.
func (c confirmations) judgeGone(a *cluster.Allocation) {
	_, versioned := c.e.Before.(opinion.Versioned)
	if versioned && counts(c.e.Before) && (opinion.Live(a) || c.e.Source != Collection) {
		c.w.find(c.e, Finding{Kind: DeletedRunning, Node: a.NodeID, Alloc: a.ID, Group: groupOf(a),
			Why: fmt.Sprintf("its row was deleted with the status %s, and nothing confirms its end", a.ClientStatus)})
	}
}

// judgeDeleted finds a row that the collection deleted although the record of a drain counts it and
// its node exists: then the node may still report the end.
func (c confirmations) judgeDeleted(a *cluster.Allocation) {
	for _, id := range c.w.counting[a.NodeID] {
		d := c.w.drains[id]
		if d.counted.rows[a.ID] && c.e.Source == Collection && c.e.Before.Node(a.NodeID) != nil && c.e.Before.DrainRecord(id) != nil {
			c.w.find(c.e, Finding{Kind: CollectedCounted, Drain: id, Node: a.NodeID, Alloc: a.ID, Why: "its row was deleted, and the record of the drain counts it as unconfirmed"})
		}
		delete(d.counted.rows, a.ID) // only an operator confirms it now
	}
}

// judgeRecords judges the records of a node that count unconfirmed allocations. ended are the
// allocations that the entry confirms.
func (c confirmations) judgeRecords(node cluster.NodeID, ended []cluster.AllocID) {
	if len(c.w.counting[node]) == 0 {
		return
	}
	c.w.counting[node] = slices.DeleteFunc(slices.Clone(c.w.counting[node]), func(id cluster.DrainID) bool {
		record := c.e.After.DrainRecord(id)
		if record == nil { // deleted to make room
			c.w.drains[id].counted = counted{}
			return true
		}
		if c.w.drains[id].EndIndex != c.e.Index { // judged at the end of the drain
			c.judgeCount(c.w.drains[id], record, ended)
		}
		return c.w.drains[id].counted.count == 0
	})
	if len(c.w.counting[node]) == 0 {
		delete(c.w.counting, node)
	}
}

// judgeCount judges the change of one record. The witness continues with the count of the record.
func (c confirmations) judgeCount(d *drain, record *cluster.Drain, ended []cluster.AllocID) {
	f := Finding{Kind: MiscountedUnconfirmed, Drain: record.ID, Node: record.NodeID}
	expected, confirmed := d.counted.count, false
	for _, id := range ended {
		if d.counted.rows[id] {
			delete(d.counted.rows, id)
			expected--
		}
	}
	if n := c.e.After.Node(record.NodeID); n != nil {
		was := d.counted.unlisted.Count
		d.counted.unlisted = d.counted.unlisted.After(n.Unlisted)
		expected -= was - d.counted.unlisted.Count
	}
	got := record.Unconfirmed
	if got == nil {
		got = &cluster.UnconfirmedAllocs{}
	}
	if got.ConfirmedBy != "" {
		confirmed = c.e.Source == Operator || c.e.Source == UnknownSource
		expected = 0
		if confirmed {
			clear(d.counted.rows)
			d.counted.unlisted = opinion.Unlisted{}
		}
	}
	other := c.otherConfirmation(record)
	switch {
	case record.Outcome != d.Outcome:
		f.Kind, f.Why = UntrueOutcome, fmt.Sprintf("the outcome changed from %q to %q", d.Outcome, record.Outcome)
	case got.ConfirmedBy != "" && !confirmed:
		f.Why = fmt.Sprintf("the record is confirmed by %q, but no operator requests this", got.ConfirmedBy)
	case got.Count != expected:
		f.Why = fmt.Sprintf("the count was %d, and the entry confirms %d of these allocations, but it is %d", d.counted.count, d.counted.count-expected, got.Count)
	case got.ConfirmedAt.IsZero() != (got.Count > 0):
		f.Why = fmt.Sprintf("the count is %d, but the record has the time of confirmation %s", got.Count, got.ConfirmedAt)
	case !d.counted.unlisted.Same(got.Unlisted):
		f.Why = fmt.Sprintf("the record has %s, but the node reports %v of these as unlisted", textOf(got), d.counted.unlisted)
	case !d.counted.contains(got):
		f.Why = fmt.Sprintf("the record names %v, and counts %v", got.Allocs, slices.Sorted(maps.Keys(d.counted.rows)))
	}
	if f.Why == "" {
		f.Why = other
	}
	if f.Why != "" {
		c.w.find(c.e, f)
	}
	d.counted.count, d.Unconfirmed = got.Count, got.Count
}

// otherConfirmation returns why the confirmation of another drain that a record names is wrong, or empty. An
// entry of an operator lowers the count only by such a confirmation, or by that of the drain itself.
func (c confirmations) otherConfirmation(record *cluster.Drain) string {
	old := c.e.Before.DrainRecord(record.ID)
	if c.e.Source == UnknownSource || old == nil || old.Unconfirmed == nil || record.Unconfirmed == nil {
		return ""
	}
	want, got := old.Unconfirmed.Other, record.Unconfirmed.Other
	fell := old.Unconfirmed.Count - record.Unconfirmed.Count
	if state, has := c.e.Before.(opinion.Versioned); c.e.Source == Operator && fell > 0 && record.Unconfirmed.ConfirmedBy == "" && has && state.ClusterVersion() >= opinion.NamesConfirmations {
		want = c.confirmedNow(record)
		if want == nil {
			return fmt.Sprintf("an operator lowered the count by %d, and no other record of the node was confirmed", fell)
		}
		want.Allocs = fell
		if old.Unconfirmed.Other != nil {
			want.Allocs += old.Unconfirmed.Other.Allocs
		}
	}
	if (got == nil) == (want == nil) && (got == nil || got.Drain == want.Drain && got.By == want.By && got.At.Equal(want.At) && got.Allocs == want.Allocs) {
		return ""
	}
	return fmt.Sprintf("the record names the confirmation %+v of another drain, want %+v", got, want)
}

// confirmedNow returns the confirmation of another drain of the record's node in this entry, or nil.
func (c confirmations) confirmedNow(record *cluster.Drain) *cluster.OtherConfirmation {
	for _, id := range c.w.counting[record.NodeID] {
		before, after := c.e.Before.DrainRecord(id), c.e.After.DrainRecord(id)
		if id != record.ID && before != nil && after != nil && before.CountUnconfirmed() > 0 && after.Unconfirmed.ConfirmedBy != "" {
			return &cluster.OtherConfirmation{Drain: id, By: after.Unconfirmed.ConfirmedBy, At: c.e.At}
		}
	}
	return nil
}

// contains reports whether the record names counted rows. It may also name purged ones.
func (c *counted) contains(u *cluster.UnconfirmedAllocs) bool {
	without := 0
	for _, id := range u.Allocs {
		if !c.rows[id] {
			without++
		}
	}
	return without <= u.Count-c.unlisted.Count-len(c.rows)
}

// adoptCount records what the record of an ended drain counts, from the state.
func (c confirmations) adoptCount(s State, d *drain, record *cluster.Drain) {
	if record.Unconfirmed == nil || record.Unconfirmed.Count == 0 {
		return
	}
	d.counted = counted{rows: map[cluster.AllocID]bool{}, count: record.Unconfirmed.Count, unlisted: opinion.UnlistedIn(record.Unconfirmed.Unlisted)}
	for a := range unconfirmed(s, record) {
		d.counted.rows[a.ID] = true
	}
	d.Unconfirmed = d.counted.count
	c.followCount(record)
}
