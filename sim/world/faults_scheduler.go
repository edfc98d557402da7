package world

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// failEvals has evaluations of drains fail that the scheduler was about to look at.
// Each is an opportunity once.
func (w *World) failEvals() error {
	if !w.faults.armedAny(scenario.SchedFailEval) {
		return nil
	}
	for e := range w.Truth().PendingEvals() {
		if e.TriggeredBy != cluster.TriggerNodeDrain || w.faults.evals[e.ID] {
			continue
		}
		w.faults.evals[e.ID] = true
		if _, strikes := w.strike(scenario.SchedFailEval, target{Group: &cluster.GroupKey{Job: e.JobKey()}}); !strikes {
			continue
		}
		failed := e.Copy()
		failed.Status, failed.StatusDescription = cluster.EvalFailed, "simulated: too many attempts"
		if err := w.Commit(&shims.EvalUpdate{Evals: []*cluster.Evaluation{failed}}); err != nil {
			return err
		}
	}
	return nil
}
