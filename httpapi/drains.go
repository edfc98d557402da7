package httpapi

import (
	"cmp"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/journal"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jsonbody"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/listing"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/shortage"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// This file is ours: the reference shows a drain only on its node.

// readDrain answers GET /v1/node/{id}/drain: the progress of the node's drain and why the
// allocations left have not moved, or the end of its last drain. A waiting reader is woken when the
// node, an allocation on it or a record of it changes. Reasons also change with time and with the
// leader's plans, so a reader that watches them should wait a few seconds at most.
//
// The node may be deleted while a record of its drain is kept.
func readDrain(q *request) error {
	for reads := 1; ; reads++ {
		var node *cluster.Node
		var records []*cluster.Drain
		got, err := q.await(func(s State) (now found) {
			now, node, records = readDrainRows(s, q.nodeID())
			return now
		})
		if err != nil {
			return err
		}
		if got.missing != "" {
			q.readHeaders(got.index)
			return failure.New(http.StatusNotFound, got.missing)
		}
		state, err := q.state()
		if err != nil {
			return err
		}
		answer := describe(q.nodeID(), node, records, pauseOfAll(state))
		err = explain(q, answer, node, state)
		if errors.Is(err, rules.ErrNotDraining) && reads < maxReads {
			continue // it has ended since
		}
		if err != nil {
			return err
		}
		answer.ControllerCalls = controllerCalls(q, ofDrain(state, q.nodeID(), answer.Allocs))
		q.readHeaders(got.index)
		return q.answer(answer)
	}
}

// maxReads bounds how often readDrain reads again because a drain ended while it was explained.
const maxReads = 5

// readDrainRows reads the node, and the records of its drains, newest first. The index is
// of the newest of them and of the allocations on the node. A record that counted unconfirmed
// allocations changes after its end, and does not hold the index of that change: the index is then at
// least that of the table.
func readDrainRows(s State, id cluster.NodeID) (f found, n *cluster.Node, records []*cluster.Drain) {
	records = slices.Collect(s.DrainsByNode(id))
	slices.Reverse(records)
	n = s.Node(id)
	if n == nil && len(records) == 0 {
		return found{index: max(s.TableIndex(TableNodes), s.TableIndex(TableDrains)), missing: nodeNotFound}, nil, nil
	}
	if n != nil {
		f.index, f.rows = n.ModifyIndex, 1
	}
	if n.Draining() {
		f.addPause(s, n.Drain)
	}
	for _, d := range records {
		f.index, f.rows = max(f.index, d.EndIndex), f.rows+1
		if d.Unconfirmed != nil {
			f.index = max(f.index, s.TableIndex(TableDrains))
		}
	}
	for a := range s.AllocsByNode(id) {
		f.index, f.rows = max(f.index, a.ModifyIndex), f.rows+1
	}
	return f, n, records
}

// describe returns the part of the answer that the state holds. all is the pause of all drains, or nil.
func describe(id cluster.NodeID, n *cluster.Node, records []*cluster.Drain, all *cluster.DrainPause) *wire.NodeDrain {
	w := &wire.NodeDrain{NodeID: string(id), State: wire.StateNone, Recent: []*wire.Drain{}}
	if n != nil {
		w.NodeName = n.Name
	}
	switch {
	case n.Draining():
		w.State, w.Drain = wire.StateDraining, wire.NewDrain(n.Drain, all)
	case len(records) > 0:
		w.State, w.Drain = wire.StateEnded, wire.NewDrain(records[0], nil)
		w.NodeName = cmp.Or(w.NodeName, records[0].NodeName)
		records = records[1:]
	}
	for _, d := range records {
		w.Recent = append(w.Recent, wire.NewDrain(d, nil))
	}
	return w
}

// explain adds the part that only the drainer has. A server that does not lead leaves it out of
// stale answers.
func explain(q *request, w *wire.NodeDrain, n *cluster.Node, s State) error {
	if !n.Draining() {
		return nil
	}
	report, err := q.backend.Drains.Explain(n.ID)
	switch {
	case err == nil:
		w.Drain = wire.NewDrain(report.Drain, report.PauseOfAll)
		w.Progress = wire.NewDrainProgress(&report.Status)
		if !q.author.Write {
			for i := range report.Allocs {
				report.Allocs[i] = report.Allocs[i].WithoutTexts()
			}
		}
		w.Allocs = wire.NewDrainAllocs(n.ID, report.Allocs)
		addShortageLines(s, w.Allocs)
		addUnhealthy(s, w.Allocs)
		addWaits(s, w.Allocs)
		addSurge(s, n, w.Allocs)
		return nil
	case q.params.stale && errors.Is(err, rules.ErrNotEnabled):
		return nil
	}
	return err
}

// maxShortageLines bounds the evaluations of one answer whose shortages are computed: each costs a look at
// every node.
const maxShortageLines = 8

// addShortageLines adds to the causes that name a blocked evaluation why it places nothing, by the present
// state.
func addShortageLines(s State, left []wire.DrainAlloc) {
	failed := map[string]map[string]*wire.AllocationMetric{}
	for i := range left {
		a := &left[i]
		if a.EvalStatus != string(cluster.EvalBlocked) {
			continue
		}
		found, known := failed[a.EvalID]
		if !known && len(failed) < maxShortageLines {
			if e := s.Eval(cluster.EvalID(a.EvalID)); e != nil {
				found = shortage.Of(s, e)
			}
			failed[a.EvalID] = found
		}
		if line := shortage.Line(found, a.TaskGroup); line != "" {
			a.Cause += ": " + line
		}
	}
}

// addUnhealthy adds to the causes that name an unhealthy allocation what its client reports of it.
func addUnhealthy(s State, left []wire.DrainAlloc) {
	for i := range left {
		if c := left[i].Culprit; c != nil && c.State == rules.CulpritUnhealthy.String() {
			if why := unhealthyBecause(s.Alloc(cluster.AllocID(c.AllocID))); why != "" {
				left[i].Cause += ": " + why
			}
		}
	}
}

// addWaits adds what the tasks of stopping allocations wait for, as far as their clients report it.
func addWaits(s State, left []wire.DrainAlloc) {
	for i := range left {
		if a := s.Alloc(cluster.AllocID(left[i].ID)); a != nil && !a.ClientTerminal() {
			left[i].Waiting = wire.NewTaskWaits(a.TaskStates)
		}
	}
}

// addSurge adds max_surge as it is for the drain, to the allocations of services.
func addSurge(s State, n *cluster.Node, left []wire.DrainAlloc) {
	for i := range left {
		a := &left[i]
		j := s.Job(cluster.JobKey{Namespace: cluster.Namespace(a.Namespace), ID: cluster.JobID(a.JobID)})
		g := j.Group(a.TaskGroup)
		if g == nil || j.Type != cluster.JobService {
			continue
		}
		pace, _ := cluster.PaceOf(j, a.TaskGroup)
		a.MaxSurge = pace.SurgeOn(n)
		if pace.MaxSurge > 0 || n.Drain.Strategy.MaxSurge > 0 {
			a.StopsFirst = cluster.StopsFirst(g)
		}
	}
}

// listDrains answers GET /v1/drains: running drains by node, then records of ended drains, newest
// first, in pages over both. The progress of running drains depends on allocations.
func listDrains(q *request) error {
	return q.read(func(s State) found {
		index := max(s.TableIndex(TableNodes), s.TableIndex(TableDrains))
		nodes, all := s.Draining() // a change of the pause wakes the reader
		for range nodes {
			index = max(index, s.TableIndex(TableAllocs))
			break
		}
		return found{index: index, body: func() (any, error) { return drainList(q, s, all) }}
	})
}

func drainList(q *request, s State, all *cluster.DrainPause) (*wire.DrainList, error) {
	rows, next, err := listing.Page(q.Context(), q.params.page, listing.List[*cluster.Drain]{
		Rows:    allDrains(s),
		Token:   drainToken,
		Compare: compareDrainToken,
		Full:    func(d *cluster.Drain) any { return wire.NewDrain(d, all) },
	})
	if err != nil {
		return nil, err
	}
	progress, err := progress(q)
	if err != nil {
		return nil, err
	}
	q.next = next
	w := &wire.DrainList{Active: []wire.ActiveDrain{}, Recent: []*wire.Drain{}}
	for _, d := range rows {
		if d.Outcome != cluster.OutcomeNone {
			w.Recent = append(w.Recent, wire.NewDrain(d, nil))
			continue
		}
		w.Active = append(w.Active, wire.ActiveDrain{Drain: wire.NewDrain(d, all), Progress: progress[d.ID]})
	}
	return w, nil
}

// progress is how far running drains are, by id; nil from a server that does not lead.
func progress(q *request) (map[cluster.DrainID]*wire.DrainProgress, error) {
	statuses, err := q.backend.Drains.Status()
	if q.params.stale && errors.Is(err, rules.ErrNotEnabled) {
		return nil, nil
	}
	byID := make(map[cluster.DrainID]*wire.DrainProgress, len(statuses))
	for i := range statuses {
		byID[statuses[i].Drain.ID] = wire.NewDrainProgress(&statuses[i])
	}
	return byID, err
}

// allDrains yields running drains by node, then records, newest first.
func allDrains(s State) iter.Seq[*cluster.Drain] {
	return func(yield func(*cluster.Drain) bool) {
		nodes, _ := s.Draining()
		for n := range nodes {
			if !yield(n.Drain) {
				return
			}
		}
		records := slices.Collect(s.Drains())
		for _, d := range slices.Backward(records) {
			if !yield(d) {
				return
			}
		}
	}
}

// A token names a drain by its place in the list: a running one by "node.ID", a record by
// "end.INDEX.ID".
const (
	activeToken = "node."
	recordToken = "end."
)

func drainToken(d *cluster.Drain) string {
	if d.Outcome == cluster.OutcomeNone {
		return activeToken + string(d.NodeID)
	}
	return recordToken + strconv.FormatUint(d.EndIndex, 10) + "." + string(d.ID)
}

// compareDrainToken compares in the order of allDrains. An invalid token comes first.
func compareDrainToken(d *cluster.Drain, token string) int {
	running := d.Outcome == cluster.OutcomeNone
	if node, ok := strings.CutPrefix(token, activeToken); ok {
		if !running {
			return 1
		}
		return d.NodeID.Compare(cluster.NodeID(node))
	}
	end, ok := strings.CutPrefix(token, recordToken)
	if !ok {
		return 1
	}
	if running {
		return -1
	}
	number, id, _ := strings.Cut(end, ".")
	index, _ := strconv.ParseUint(number, 10, 64)
	return -cmp.Or(cmp.Compare(d.EndIndex, index), cmp.Compare(d.ID, cluster.DrainID(id)))
}

// maxDrainMeta bounds the Meta of a drain, in bytes: the node and the drain's record keep it.
const maxDrainMeta = 64 << 10

// maxDrainBody bounds the body that holds it, in bytes, with every byte escaped.
const maxDrainBody = 8 * maxDrainMeta

// updateDrain answers PUT /v1/node/{id}/drain, which starts, updates or ends the drain of a node.
// The path names the node; the body's NodeID is ignored. As in the reference, a body without a
// DrainSpec ends the drain, and one without an object is refused.
func updateDrain(q *request) error {
	var body wire.DrainRequest
	if err := jsonbody.Decode(q.body, &body); err != nil {
		return err
	}
	key, err := idempotencyToken(q)
	if err != nil {
		return err
	}
	if err := checkDrain(q.body, &body); err != nil {
		return err
	}
	done, err := q.backend.Writer.UpdateDrain(q.Context(), cluster.DrainUpdate{
		Node: q.nodeID(), Spec: body.Spec(), MarkEligible: body.MarkEligible, Undo: body.Undo, Key: key, Meta: body.Meta, UpdatedBy: q.author.Name, Plan: body.Plan.Foretold(),
	})
	if err != nil {
		return orNotFound(err, http.StatusInternalServerError, nodeNotFound)
	}
	index, err := drainIndex(q, done)
	if err != nil {
		return err
	}
	return q.written(index, wire.DrainResponse{
		EvalCreateIndex: done.EvalIndex(), EvalIDs: wire.IDs(done.Evals), Index: index, NodeModifyIndex: index,
		DrainID: string(done.Drain), Repeated: done.Repeated, Withdrawn: done.Withdrawn, StillStopping: wire.IDs(done.Stopping),
		Moved: wire.NewMovedAllocs(done.Moved),
	})
}

// drainIndex is the index of the answer, never zero. A repeated request gets the index of the
// first: a monitor that starts there reads the changes since then, and does not wait for new ones.
func drainIndex(q *request, done cluster.DrainWritten) (uint64, error) {
	index := done.Index
	if done.Repeated || index == 0 {
		s, err := q.state()
		if err != nil {
			return 0, err
		}
		if d := findDrain(s, q.nodeID(), done.Drain); d != nil {
			index = uint64(d.Revision)
		}
	}
	return max(1, index), nil
}

// confirmDrain answers PUT /v1/drain/{id}/confirm: an operator confirms that no task of an ended drain
// runs on its node. It ignores the body. If the record counts no unconfirmed allocation, nothing
// changes.
func confirmDrain(q *request) error {
	done, err := q.backend.Writer.ConfirmDrain(q.Context(), cluster.DrainID(q.PathValue("id")), q.author.Name)
	if err != nil {
		return orNotFound(err, http.StatusNotFound, drainNotFound)
	}
	return q.written(done.Index, wire.DrainConfirmResponse{Index: done.Index})
}

// pauseDrain answers PUT /v1/node/{id}/drain/pause, and resumeDrain PUT /v1/node/{id}/drain/resume. They ignore the
// body.
func pauseDrain(q *request) error  { return changePause(q, q.nodeID(), true) }
func resumeDrain(q *request) error { return changePause(q, q.nodeID(), false) }

// pauseAllDrains answers PUT /v1/drains/pause, and resumeAllDrains PUT /v1/drains/resume. They ignore the body.
func pauseAllDrains(q *request) error  { return changePause(q, "", true) }
func resumeAllDrains(q *request) error { return changePause(q, "", false) }

// changePause pauses or resumes the drain of a node, or all drains if the node is empty.
func changePause(q *request, node cluster.NodeID, pause bool) error {
	done, err := q.backend.Writer.PauseDrains(q.Context(), cluster.DrainPauseUpdate{Node: node, Pause: pause, By: q.author.Name})
	if err != nil {
		return orNotFound(err, http.StatusNotFound, nodeNotFound)
	}
	s, err := q.state()
	if err != nil {
		return err
	}
	name := func(id cluster.NodeID) string {
		if n := s.Node(id); n != nil {
			return n.Name
		}
		return "" // deleted since
	}
	return q.written(done.Index, wire.NewDrainPauseResponse(done, name))
}

// pauseOfAll returns the pause of all drains, or nil.
func pauseOfAll(s State) *cluster.DrainPause {
	_, all := s.Draining()
	return all
}

// readPause answers GET /v1/drains/pause: the pause of all drains, or null.
func readPause(q *request) error {
	return q.read(func(s State) found {
		all := wire.NewDrainPause(pauseOfAll(s))
		return found{index: s.TableIndex(TableNodes), body: func() (any, error) { return all, nil }}
	})
}

// addPause adds the pause of all drains to the rows of an answer about a drain. It has no index, and its end may write no
// row of a paused drain: the index of the nodes' table is at least as new.
func (f *found) addPause(s State, d *cluster.Drain) {
	all := pauseOfAll(s)
	if d.Outcome != cluster.OutcomeNone || d.PausedSince(all).IsZero() {
		return
	}
	f.index = max(f.index, s.TableIndex(TableNodes))
	if all.Holds(d) {
		f.rows++
	}
}

// readStory answers GET /v1/drain/{id}: a drain, running or ended, and its journal. A waiting reader is woken when
// one of them changes.
func readStory(q *request) error {
	id := cluster.DrainID(q.PathValue("id"))
	var answer wire.DrainStory
	got, err := q.await(func(s State) found {
		d, j := s.Story(id)
		if d == nil {
			return found{index: max(s.TableIndex(TableNodes), s.TableIndex(TableDrains)), missing: drainNotFound}
		}
		answer = wire.DrainStory{Drain: wire.NewDrain(d, pauseOfAll(s)), Journal: wire.NewJournal(j)}
		f := found{index: storyIndex(s, d, j), rows: 1}
		f.addPause(s, d)
		return f
	})
	if err != nil {
		return err
	}
	q.readHeaders(got.index)
	if got.missing != "" {
		return failure.New(http.StatusNotFound, got.missing)
	}
	return q.answer(answer)
}

// storyIndex is the index of the newest change of a drain or its journal.
func storyIndex(s State, d *cluster.Drain, j *journal.Journal) uint64 {
	index := max(uint64(d.Revision), d.EndIndex)
	if d.Unconfirmed != nil {
		index = max(index, s.TableIndex(TableDrains)) // the record changes after its end
	}
	if j != nil && len(j.Events) > 0 {
		index = max(index, j.Events[len(j.Events)-1].Index)
	}
	return index
}

// findDrain returns the node's drain of that id, running or ended, or nil.
func findDrain(s State, node cluster.NodeID, id cluster.DrainID) *cluster.Drain {
	if n := s.Node(node); n.Draining() && n.Drain.ID == id {
		return n.Drain
	}
	return s.DrainRecord(id)
}
