package shims

import (
	"errors"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// AllocUpdateDesiredTransition applies the marks that [rules.Recheck] accepts, and writes the
// evaluations that move the marked allocations.
type AllocUpdateDesiredTransition struct {
	rules.Marks
}

func (*AllocUpdateDesiredTransition) Type() MessageType     { return AllocUpdateDesiredTransitionType }
func (*AllocUpdateDesiredTransition) responds(MarksApplied) {}
func (m *AllocUpdateDesiredTransition) check() error        { return checkEvals(m.Evals) }

func (m *AllocUpdateDesiredTransition) needs() cluster.Version {
	if slices.ContainsFunc(m.Marks.Marks, func(m rules.Mark) bool { return m.Surge }) {
		return cluster.VersionOfSurge
	}
	return cluster.MinVersion
}

func (m *AllocUpdateDesiredTransition) apply(txn *statestore.Txn) Response {
	accepted, evals, refused := rules.Recheck(txn.State().DrainView(), &m.Marks)
	if err := txn.ApplyMarks(m.At, accepted, evals); err != nil {
		return Refused{Err: err}
	}
	statestore.NoteRefusals(txn, refused, m.At)
	ids := make([]cluster.EvalID, len(evals))
	for i, e := range evals {
		ids[i] = e.ID
	}
	return MarksApplied{Accepted: accepted, Evals: ids, Refused: refused}
}

// NodesDrainComplete ends the drains that [rules.RecheckCompletions] accepts.
type NodesDrainComplete struct {
	rules.Completions
}

func (*NodesDrainComplete) Type() MessageType           { return NodesDrainCompleteType }
func (*NodesDrainComplete) responds(CompletionsApplied) {}
func (*NodesDrainComplete) check() error                { return nil }

func (m *NodesDrainComplete) apply(txn *statestore.Txn) Response {
	ended, refused := rules.RecheckCompletions(txn.State().DrainView(), &m.Completions)
	for i, e := range ended {
		ended[i] = e.ForVersion(txn.State().ClusterVersion())
	}
	txn.CompleteDrains(m.At, ended)
	statestore.NoteRefusals(txn, refused, m.At)
	return CompletionsApplied{Ended: ended, Refused: refused}
}

// PauseDrains pauses or resumes one drain, or all.
type PauseDrains struct{ cluster.DrainPauseUpdate }

func (*PauseDrains) Type() MessageType          { return PauseDrainsType }
func (*PauseDrains) responds(DrainPauseApplied) {}
func (*PauseDrains) needs() cluster.Version     { return cluster.VersionOfPauses }

func (m *PauseDrains) check() error {
	if m.At.IsZero() {
		return errors.New("the time of a pause is missing")
	}
	return nil
}

func (m *PauseDrains) apply(txn *statestore.Txn) Response {
	result, err := statestore.PauseDrains(txn, m.DrainPauseUpdate)
	if err != nil {
		return Refused{Err: err}
	}
	return DrainPauseApplied{result}
}

// DrainPauseApplied answers [PauseDrains].
type DrainPauseApplied struct{ cluster.DrainPauseResult }

func (DrainPauseApplied) response() {}
