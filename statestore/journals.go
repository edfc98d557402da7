package statestore

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/journal"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Story returns a drain, running or ended, and its journal. The drain is nil if it never existed or its record is
// gone. The journal is nil if nothing has happened in the drain since [cluster.VersionOfJournals]. That of a running
// drain has all groups of which the drain has marked allocations.
func (s State) Story(id cluster.DrainID) (*cluster.Drain, *journal.Journal) {
	d := s.DrainRecord(id)
	if n := nodeInDrain(s.tables, id); n != nil {
		d = n.Drain
	}
	j := first[journal.Journal](s.tables, tableJournals, indexID, lone(id))
	if d == nil || j == nil || !j.Running() {
		return d, j
	}
	j = j.Copy()
	for r := range scan[journal.Running](s.tables, tableJournalGroups, indexID, newKey(id)) {
		j.Groups = append(j.Groups, r.Group)
	}
	return d, j
}

// NoteRefusals adds the marks and ends of drains that the servers refused to the journals of the drains of their nodes.
func NoteRefusals(t *Txn, refused []rules.Refusal, at time.Time) {
	w := journalWriter{&t.rows}
	for _, r := range refused {
		if n := t.State().Node(r.Node); n.Draining() {
			w.journal(n.Drain.ID).Add(journal.Event{Kind: journal.Refused, At: at, Index: w.rows.written.index, Allocs: 1, Why: r.Why})
		}
	}
}

// journalWriter writes the journals of one transaction.
type journalWriter struct{ rows *rowWrites }

// journals are what a transaction adds to journals. The commit writes each row once.
type journals struct {
	// at is the proposer's time of the entry, or zero if the entry has none.
	at time.Time
	// pausing means that the entry pauses or resumes drains, and adds its events itself.
	pausing bool
	// edited are the journals that change.
	edited map[cluster.DrainID]*journal.Journal
	// marked are the allocations that drains have marked, after the mark.
	marked []*cluster.Allocation
	// left are the nodes that an allocation has left.
	left map[cluster.NodeID]bool
	// ended are the drains that end.
	ended []*cluster.Drain
}

// read returns the journal of a drain, with the events that the transaction has added. The caller does not change it.
func (w journalWriter) read(id cluster.DrainID) *journal.Journal {
	if j := w.rows.written.journals.edited[id]; j != nil {
		return j
	}
	if row := first[journal.Journal](w.rows.tables, tableJournals, indexID, lone(id)); row != nil {
		return row
	}
	return &journal.Journal{Drain: id}
}

// journal returns the journal of a drain. The caller adds events to it, and the commit writes it.
func (w journalWriter) journal(id cluster.DrainID) *journal.Journal {
	noted := &w.rows.written.journals
	if j := noted.edited[id]; j != nil {
		return j
	}
	if noted.edited == nil {
		noted.edited = make(map[cluster.DrainID]*journal.Journal)
	}
	noted.edited[id] = w.read(id).Copy()
	return noted.edited[id]
}

// node adds the requests of operators to the journal of a node's drain.
func (w journalWriter) node(before, after *cluster.Node) {
	if w.rows.written.journals.pausing || !after.Draining() || before.Draining() && before.Drain.Revision == after.Drain.Revision {
		return
	}
	d, kind := after.Drain, journal.Requested
	if before.Draining() {
		kind = journal.Changed
	}
	spec := d.Strategy.DrainSpec
	w.journal(d.ID).Add(journal.Event{Kind: kind, At: d.UpdatedAt, Index: w.rows.written.index, By: d.UpdatedBy, Strategy: &spec})
}

// alloc notes a mark, and an allocation that leaves its node.
func (w journalWriter) alloc(before, after *cluster.Allocation) {
	noted := &w.rows.written.journals
	if is := markOf(after); is != (markRow{}) && is != markOf(before) {
		noted.marked = append(noted.marked, after)
	}
	if live(before) && !live(after) && w.rows.written.changes.drains(before.NodeID) {
		if noted.left == nil {
			noted.left = make(map[cluster.NodeID]bool)
		}
		noted.left[before.NodeID] = true
	}
}

// flush writes the journals that the transaction changes.
func (w journalWriter) flush() {
	if versionIn(w.rows.tables) < cluster.VersionOfJournals {
		return
	}
	noted := &w.rows.written.journals
	w.marks()
	w.health()
	for _, id := range slices.Sorted(maps.Keys(noted.left)) {
		w.stages(w.rows.state().Node(id))
	}
	for _, d := range noted.ended {
		if w.rows.state().DrainRecord(d.ID) != nil { // it is not among the oldest, which the entry deleted
			w.end(d)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(noted.edited)) {
		w.rows.insert(tableJournals, noted.edited[id])
	}
}

// groupOfDrain names the row of a group in a drain.
type groupOfDrain struct {
	drain cluster.DrainID
	group cluster.GroupKey
}

// marks adds the marks of the entry to the journals of their drains. They make one event for each kind, and one row
// for each group.
func (w journalWriter) marks() {
	groups := make(map[groupOfDrain]*journal.Running)
	for _, a := range w.rows.written.journals.marked {
		m := a.DesiredTransition
		w.mark(a)
		k := groupOfDrain{m.Drain, a.GroupKey()}
		if groups[k] == nil {
			groups[k] = w.group(k, m.MarkedAt)
		}
		groups[k].Marked++
	}
	for _, r := range groups { //lint:order each writes a row of its own
		w.rows.insert(tableJournalGroups, r)
	}
}

// mark adds the events of a mark.
func (w journalWriter) mark(a *cluster.Allocation) {
	m, index := a.DesiredTransition, w.rows.written.index
	if s := a.Stage(); !w.read(m.Drain).Began(s) {
		w.journal(m.Drain).Add(journal.Event{Kind: journal.StageBegan, At: m.MarkedAt, Index: index, Stage: s})
	}
	if m.Class == cluster.MarkDeadline || m.Class == cluster.MarkForced {
		w.journal(m.Drain).Deadline(m.Class, m.MarkedAt, index)
	}
}

// group returns a copy of the row of a group in a drain, or a new one.
func (w journalWriter) group(k groupOfDrain, at time.Time) *journal.Running {
	if r := first[journal.Running](w.rows.tables, tableJournalGroups, indexID, runningGroup(k.drain, k.group)); r != nil {
		return new(*r)
	}
	healthy, needed := w.budget(k.group)
	return &journal.Running{Drain: k.drain, Group: journal.NewGroup(k.group, healthy, needed, at)}
}

// budget returns how many allocations of a group are healthy, and how many its budget requires.
func (w journalWriter) budget(g cluster.GroupKey) (healthy, needed int) {
	if h := healthOf(w.rows.tables, g); h != nil {
		healthy = h.Healthy
	}
	if p, exists := cluster.PaceOf(w.rows.state().Job(g.Job), g.Name); exists {
		needed = -p.Room(0)
	}
	return healthy, needed
}

// health adds changes of the health of groups to the journals of the drains that have marked allocations
// of them.
func (w journalWriter) health() {
	for _, g := range slices.SortedFunc(maps.Keys(w.rows.written.healthy), cluster.GroupKey.Compare) {
		was := 0
		if before := w.rows.written.healthy[g].before; before != nil {
			was = before.Healthy
		}
		healthy, needed := w.budget(g)
		if healthy == was {
			continue
		}
		for _, r := range slices.Collect(scan[journal.Running](w.rows.tables, tableJournalGroups, indexGroup, groupKey(g))) {
			c := *r
			c.Count(healthy, needed, w.timeFor(r.Drain))
			w.rows.insert(tableJournalGroups, &c)
		}
	}
}

// timeFor returns the time of the entry, or of the newest event of the drain's journal if the entry has none.
func (w journalWriter) timeFor(id cluster.DrainID) time.Time {
	at := w.rows.written.journals.at
	if !at.IsZero() {
		return at
	}
	if events := w.read(id).Events; len(events) > 0 {
		return events[len(events)-1].At
	}
	return at
}

// stages adds the stages that have ended on a draining node. The node may be nil.
func (w journalWriter) stages(n *cluster.Node) {
	if !n.Draining() {
		return
	}
	for _, s := range cluster.Stages() {
		if j := w.read(n.Drain.ID); j.Began(s) && !j.Over(s) && !w.leaves(n.ID, s) {
			w.journal(n.Drain.ID).Add(journal.Event{Kind: journal.StageEnded, At: w.timeFor(n.Drain.ID), Index: w.rows.written.index, Stage: s})
		}
	}
}

// leaves reports whether the node has an allocation of the stage that has not ended.
func (w journalWriter) leaves(id cluster.NodeID, s cluster.Stage) bool {
	for _, leaving := range []bool{true, false} {
		for range w.rows.state().DrainView().NodeAllocs(id, s, leaving) {
			return true
		}
	}
	return false
}

// end ends the journal of a drain.
func (w journalWriter) end(d *cluster.Drain) {
	j := w.journal(d.ID)
	e := journal.Event{Kind: journal.Ended, At: d.EndedAt, Index: d.EndIndex, Why: string(d.Outcome), Allocs: d.StillStopping}
	if d.Outcome == cluster.OutcomeCancelled {
		e.By = d.UpdatedBy
	}
	j.Add(e)
	var groups []journal.Group
	for _, r := range slices.Collect(scan[journal.Running](w.rows.tables, tableJournalGroups, indexID, newKey(d.ID))) {
		groups = append(groups, r.Group)
		w.rows.delete(tableJournalGroups, r)
	}
	j.End(groups, d.EndedAt, d.EndIndex)
}

// confirmed adds that nothing of an ended drain is unconfirmed any more.
func (w journalWriter) confirmed(before, after *cluster.Drain) {
	if before.CountUnconfirmed() > 0 && after.CountUnconfirmed() == 0 {
		u := after.Unconfirmed
		w.journal(after.ID).Add(journal.Event{Kind: journal.Confirmed, At: u.ConfirmedAt, Index: w.rows.written.index, By: u.ConfirmedBy})
	}
}

// drop deletes the journal of a record that is deleted.
func (w journalWriter) drop(id cluster.DrainID) {
	if row := first[journal.Journal](w.rows.tables, tableJournals, indexID, lone(id)); row != nil {
		w.rows.delete(tableJournals, row)
	}
	delete(w.rows.written.journals.edited, id)
}

func runningGroup(d cluster.DrainID, g cluster.GroupKey) key {
	return newKey(d).text(string(g.Job.Namespace)).text(string(g.Job.ID)).text(g.Name)
}

func journalID(j *journal.Journal) key { return idKey(j.Drain) }

func runningGroupID(r *journal.Running) key {
	if r.Drain == "" || cmp.Or(string(r.Key.Job.ID), r.Key.Name) == "" {
		return nil
	}
	return runningGroup(r.Drain, r.Key)
}

func runningGroupByGroup(r *journal.Running) key { return groupKey(r.Key) }
