package invariant

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// drain is the judge's record of the requests for one drain.
type drain struct {
	node cluster.NodeID
	// keys are the idempotency keys of all requests for the drain, oldest first.
	keys []string
	// eligible means that the node was eligible when the drain began.
	eligible bool
}

// requestJudge judges the requests of operators for drains: G2, and the deadlines of G4.
type requestJudge struct{ *facts }

// judge judges the effect of an operator's request. A repeated request changes nothing. A new
// strategy equals the requested one, and its deadline counts from the request. A cancel withdraws
// the marks of its drain, and no others.
func (j *requestJudge) judge(e *entry, m *shims.NodeUpdateDrain) {
	updated, ok := e.Response.(shims.DrainRequestApplied)
	if !ok {
		return // the FSM refused the request
	}
	n := j.tables.node(m.Node)
	subject := on(n)
	if keyed := j.keyedDrain(n, m.Key); keyed != "" || updated.Repeated {
		if keyed == "" || !updated.Repeated || j.changed(e) {
			j.find(RepeatedActed, subject, "a request with key %q, of drain %q, was answered with repeated %t and changed %d rows",
				m.Key, keyed, updated.Repeated, len(e.nodes)+len(e.allocs)+len(e.evals)+len(e.records))
		}
		return
	}
	if m.Spec != nil {
		j.judgeStrategy(e, m, subject)
		return
	}
	if n.drain() != nil {
		j.judgeCancel(n.drain(), updated.DrainResult)
		j.judgeUndo(e, n, m)
		j.noteKey(e, n.drain().ID, m)
	}
}

// keyedDrain returns the node's drain with the key, or the empty id. The drain runs, or its
// record is kept.
func (j *requestJudge) keyedDrain(n *node, key string) cluster.DrainID {
	if key == "" {
		return ""
	}
	keyed := cluster.DrainID("")
	for id, d := range j.drains { //lint:order the lowest is the same in every order
		kept := j.tables.records[id] != nil || n.drain() != nil && n.drain().ID == id
		if kept && d.node == n.id && slices.Contains(d.newestKeys(), key) && (keyed == "" || id < keyed) {
			keyed = id
		}
	}
	return keyed
}

// newestKeys are the keys that the drain still keeps.
func (d *drain) newestKeys() []string { return d.keys[max(0, len(d.keys)-cluster.MaxDrainKeys):] }

// noteKey records the key of a new request, and compares the keys of the drain's row with the
// recorded ones.
func (j *requestJudge) noteKey(e *entry, id cluster.DrainID, m *shims.NodeUpdateDrain) {
	d := j.drains[id]
	if d == nil {
		d = &drain{node: m.Node}
		j.drains[id] = d
	}
	if m.Key != "" {
		d.keys = append(d.keys, m.Key)
	}
	row := e.After.DrainRecord(id)
	if n := e.After.Node(m.Node); n != nil && n.Drain != nil && n.Drain.ID == id {
		row = n.Drain
	}
	if row != nil && !slices.Equal(row.Keys, d.newestKeys()) {
		j.find(RepeatedActed, Violation{Drain: id, Node: m.Node}, "the drain keeps the keys %q, but its newest requests have %q", row.Keys, d.newestKeys())
	}
}

// changed reports whether the entry changed the content of a row.
func (j *facts) changed(e *entry) bool {
	d := &j.dump
	return anyDiffers(d, e.nodes) || anyDiffers(d, e.allocs) || anyDiffers(d, e.evals) || anyDiffers(d, e.records)
}

func anyDiffers[T any](d *dump, changes []change[T]) bool {
	return slices.ContainsFunc(changes, func(c change[T]) bool { return !same(d, c.before, c.after) })
}

// judgeStrategy judges the strategy after a request.
func (j *requestJudge) judgeStrategy(e *entry, m *shims.NodeUpdateDrain, subject Violation) {
	n := e.After.Node(m.Node)
	if n == nil || n.Drain == nil {
		j.find(DeadlineMoved, subject, "the FSM accepted a request for a drain, but the node does not drain")
		return
	}
	starts := subject.Drain == ""
	subject.Drain = n.Drain.ID
	if m.Spec.Deadline < 0 {
		delete(j.tables.pauses.Own, n.Drain.ID) // a forced drain is not paused
	}
	j.noteKey(e, n.Drain.ID, m)
	if before := e.Before.Node(m.Node); starts && before != nil {
		j.drains[n.Drain.ID].eligible = before.SchedulingEligibility == "eligible"
	}
	deadline := time.Time{}
	if m.Spec.Deadline > 0 {
		deadline = m.At.Add(m.Spec.Deadline)
	}
	s := n.Drain.Strategy
	if n.Drain.Revision != cluster.Revision(e.Index) || starts && !s.StartedAt.Equal(m.At) {
		j.find(RevisionMoved, subject, "a request wrote the strategy at index %d, %s, but the drain has revision %d, start %s", e.Index, m.At, n.Drain.Revision, s.StartedAt)
	}
	if s.DrainSpec != *m.Spec || !s.ForceDeadline.Equal(deadline) || !n.Drain.UpdatedAt.Equal(m.At) {
		j.find(DeadlineMoved, subject, "the request has %+v at %s, but the strategy is %+v with the deadline %s", *m.Spec, m.At, s.DrainSpec, s.ForceDeadline)
	}
}

// judgeCancel compares the answer to a cancel with the marks of its drain. The witness judges
// whether the cancel withdrew them.
func (j *requestJudge) judgeCancel(d *cluster.Drain, answer cluster.DrainResult) {
	withdrawn, stopping := 0, []cluster.AllocID{}
	for _, a := range j.tables.marked[d.ID] {
		switch {
		case j.tables.allocs[a.id()] != a || !a.markedBy(d.ID) || !a.live():
		case a.stopping():
			stopping = append(stopping, a.id())
		default:
			withdrawn++
		}
	}
	for _, a := range j.tables.node(d.NodeID).live {
		if opinion.RequestedBy(a.row, d) {
			withdrawn++
		}
	}
	slices.Sort(stopping)
	if answer.Drain != d.ID || answer.Withdrawn != withdrawn || !slices.Equal(answer.Stopping, slices.Compact(stopping)) {
		j.find(NotWithdrawn, Violation{Drain: d.ID, Node: d.NodeID}, "the answer counts %d withdrawn marks and %v that already stop, but it must be %d and %v",
			answer.Withdrawn, answer.Stopping, withdrawn, stopping)
	}
}

// judgeUndo judges the eligibility of a node after a cancel with undo.
func (j *requestJudge) judgeUndo(e *entry, n *node, m *shims.NodeUpdateDrain) {
	d, after := j.drains[n.drain().ID], e.After.Node(m.Node)
	if !m.Undo || d == nil || after == nil {
		return
	}
	if is, must := after.SchedulingEligibility == "eligible", d.eligible || m.MarkEligible; is != must {
		j.find(WrongUndo, on(n), "the node is eligible: %t, and it was eligible before the drain: %t", is, must)
	}
}
