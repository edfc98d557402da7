package witness

import (
	"fmt"
	"iter"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// judgeData judges which allocations the record of an ended drain counts because no replacement had their
// data: those that the drain marked, and others on the node whose client keeps the only copy.
func judgeData(w *Witness, e Entry, record *cluster.Drain) {
	var names []cluster.AllocID
	if versioned, has := e.After.(opinion.Versioned); !has || versioned.ClusterVersion() >= opinion.MovesData {
		moves := opinion.Replacements(e.After)
		if e.After.Node(record.NodeID) == nil {
			moves = movesBefore{e.After, e}
		}
		for a := range e.After.AllocsByNode(record.NodeID) {
			marked := a.DesiredTransition.Migrate && a.DesiredTransition.Drain == record.ID
			if marked && opinion.Uncopied(a, moves) || !marked && keepsForDrain(a, record) && opinion.OnlyCopy(a, moves) {
				names = append(names, a.ID)
			}
		}
	}
	slices.Sort(names)
	count, named := 0, []cluster.AllocID(nil)
	if got := record.DataNotCopied; got != nil {
		count, named = got.Count, got.Allocs
	}
	if want := names[:min(len(names), maxNames)]; count != len(names) || !slices.Equal(named, want) {
		w.find(e, Finding{Kind: MiscountedData, Drain: record.ID, Node: record.NodeID, Why: fmt.Sprintf(
			"the record counts the data of %d allocations as not copied, %v, but it was that of %d, %v", count, named, len(names), want)})
	}
}

// movesBefore is the state after an entry that deletes the node of a drain, with the node as it was before, and
// without the evaluations of the entry: they replace what is lost with the node, and their allocations get no data.
type movesBefore struct {
	State
	e Entry
}

func (s movesBefore) Node(id cluster.NodeID) *cluster.Node { return s.e.Before.Node(id) }

func (s movesBefore) EvalsByJob(k cluster.JobKey) iter.Seq[*cluster.Evaluation] {
	return func(yield func(*cluster.Evaluation) bool) {
		for eval := range s.State.EvalsByJob(k) {
			if eval.CreateIndex < s.e.Index && !yield(eval) {
				return
			}
		}
	}
}

// keepsForDrain reports whether the client of an ended allocation keeps data that concerns a drain of its node.
func keepsForDrain(a *cluster.Allocation, d *cluster.Drain) bool {
	return opinion.KeepsData(a) && (!d.Strategy.IgnoreSystemJobs || opinion.StageOf(a) != opinion.System)
}
