package invariant

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

// witnessJudge lets a witness judge each entry: the changes of rows of G2, G5 and G6, and once more
// the marks and ends. The judge itself must compute which marks and ends the contract allows,
// because it also judges refusals, reasons and plans.
type witnessJudge struct {
	*facts
	witness *witness.Witness
}

// load starts a witness that begins with the state of the tables.
func (j *witnessJudge) load() {
	p := j.options.Policy
	j.witness = witness.Resume(witness.Options{
		StopMargin: p.StopMargin, PluginsAfterStop: p.PluginsAfterDeadline == rules.PluginsAfterStop,
		MarkedIsComplete: p.Completion == rules.CompletionMarked, MarksOnly: true, MaxFindings: 1, OnFinding: j.report,
	}, state{j.tables})
}

// observe passes an entry to the witness. The tables hold the state after it.
func (j *witnessJudge) observe(e *entry) {
	now := state{j.tables}
	j.witness.Observe(witness.Entry{
		Index: e.Index, At: e.at, Before: before{now, e}, After: now,
		Touched: e.ids.Touched, Source: e.source, Planned: e.planned,
	})
}

// report records a finding of the witness as a violation, unless the judge has found the same.
func (j *witnessJudge) report(f witness.Finding) {
	check := checkOf(f.Kind)
	ofMark := f.Alloc != "" && (f.Kind <= witness.Excluded || f.Kind == witness.OutOfTurn || f.Kind == witness.WrongRequest)
	for _, v := range slices.Backward(j.kept) {
		if v.Index != j.index {
			break
		}
		if v.Alloc == f.Alloc && ofMark || v.Check == check.Rule() && v.Node == f.Node && (v.Alloc == f.Alloc || v.Alloc == "") {
			return
		}
	}
	subject := Violation{Drain: f.Drain, Node: f.Node, Alloc: f.Alloc, Group: f.Group}
	if f.Kind == witness.BelowLimit {
		j.find(check, subject, "%s: healthy %d, limit %d", f.Why, f.Healthy, f.Limit)
		return
	}
	j.find(check, subject, "%s", f.Why)
}

// checkOf returns the check that a finding fails.
func checkOf(k witness.Kind) Check {
	switch k {
	case witness.NoLimit, witness.NotDue, witness.NotFree:
		return WrongClass
	case witness.MiscountedStopping:
		return MiscountedLeft
	case witness.Unseen:
		return Unnamed
	}
	return Check(k.Guarantee() + " " + k.String()) // the others have the same names
}

// state is the state of the tables, for a witness. Of allocations and evaluations by another row it
// yields only those that count: allocations of a node that are live or unconfirmed or
// that a record may count, live ones of a job, and open evaluations.
type state struct{ *tables }

var _ witness.World = state{}

func (s state) Node(id cluster.NodeID) *cluster.Node {
	if n := s.nodes[id]; n != nil {
		return n.row
	}
	return nil
}

func (s state) Job(key cluster.JobKey) *cluster.Job { return s.job(key).row }

func (s state) Alloc(id cluster.AllocID) *cluster.Allocation {
	if a := s.allocs[id]; a != nil {
		return a.row
	}
	return nil
}

// DrainRecord returns also a record that an entry does not name.
func (s state) DrainRecord(id cluster.DrainID) *cluster.Drain { return s.volumes.DrainRecord(id) }

func (s state) AllocsByJob(key cluster.JobKey) iter.Seq[*cluster.Allocation] {
	return func(yield func(*cluster.Allocation) bool) {
		for _, g := range s.job(key).groups {
			for _, a := range g.members {
				if !yield(a.row) {
					return
				}
			}
		}
	}
}

func (s state) AllocsByNode(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return func(yield func(*cluster.Allocation) bool) {
		n := s.node(id)
		for _, list := range [...][]*alloc{n.live, n.lost, n.ended} {
			for _, a := range list {
				if !yield(a.row) {
					return
				}
			}
		}
	}
}

func (s state) ClusterVersion() cluster.Version { return s.volumes.ClusterVersion() }

func (s state) EvalsByJob(key cluster.JobKey) iter.Seq[*cluster.Evaluation] {
	return slices.Values(s.job(key).open)
}

// Nodes yields the draining nodes.
func (s state) Nodes() iter.Seq[*cluster.Node] {
	return func(yield func(*cluster.Node) bool) {
		for _, n := range s.draining {
			if !yield(n.row) {
				return
			}
		}
	}
}

func (s state) Drains() iter.Seq[*cluster.Drain] {
	return slices.Values(slices.SortedFunc(maps.Values(s.records), func(a, b *cluster.Drain) int { return cmp.Compare(a.ID, b.ID) }))
}

// Allocs yields nothing: only an audit of the witness reads it, and the judge has its own audits.
func (s state) Allocs() iter.Seq[*cluster.Allocation] { return func(func(*cluster.Allocation) bool) {} }

func (s state) Volume(key cluster.VolumeKey) *cluster.Volume { return s.volumes.Volume(key) }

func (s state) ClaimsOnNode(id cluster.NodeID) iter.Seq[*cluster.VolumeClaim] {
	return s.volumes.ClaimsOnNode(id)
}

// before is the state before an entry, while the tables hold the state after it.
type before struct {
	state
	e *entry
}

func (s before) Node(id cluster.NodeID) *cluster.Node {
	for _, c := range s.e.nodes {
		if newest(c).ID == id {
			return c.before
		}
	}
	return s.state.Node(id)
}

func (s before) Alloc(id cluster.AllocID) *cluster.Allocation {
	if c := s.e.change(id); c != nil {
		return c.before
	}
	return s.state.Alloc(id)
}

func (s before) AllocsByNode(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return func(yield func(*cluster.Allocation) bool) {
		for a := range s.state.AllocsByNode(id) {
			if s.e.change(a.ID) == nil && !yield(a) {
				return
			}
		}
		for _, c := range s.e.allocs {
			if c.before != nil && c.before.NodeID == id && !yield(c.before) {
				return
			}
		}
	}
}

func (s before) ClusterVersion() cluster.Version { return s.e.Before.ClusterVersion() }

// DrainRecord returns also a record that the entry deleted.
func (s before) DrainRecord(id cluster.DrainID) *cluster.Drain { return s.e.Before.DrainRecord(id) }

func (s before) Volume(key cluster.VolumeKey) *cluster.Volume { return s.e.Before.Volume(key) }

func (s before) ClaimsOnNode(id cluster.NodeID) iter.Seq[*cluster.VolumeClaim] {
	return volumes{s.e.Before}.ClaimsOnNode(id)
}
