package world

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// decide draws the fate of a write, and how late it is if it is late.
func (w *World) decide(write Write, late time.Duration) (Fate, time.Duration) {
	if w.fate != nil {
		if f := w.fate(write); f != Apply {
			return f, late
		}
	}
	if len(w.faults.armed) == 0 {
		return Apply, late
	}
	for _, f := range [...]struct {
		name scenario.FaultName
		fate Fate
	}{
		{scenario.ApplyFull, NoRoom},
		{scenario.ApplyReject, Reject},
		{scenario.ApplyAmbiguousApplied, UnknownApplied},
		{scenario.ApplyAmbiguousLate, UnknownLate},
		{scenario.ApplyAmbiguousLost, UnknownLost},
		{scenario.ApplySlow, Slow},
	} {
		if delay, strikes := w.strike(f.name, target{words: write.words()}); strikes {
			if delay > 0 {
				late = delay
			}
			return f.fate, late
		}
	}
	if write.Source == FromDrainer && write.Message != nil {
		w.loseLeader()
	}
	return Apply, late
}

// refuseSome has an allocation fail that an entry of marks counts on.
func (w *World) refuseSome(m shims.Message) error {
	entry, is := m.(*shims.AllocUpdateDesiredTransition)
	if !is || len(entry.Marks.Marks) == 0 || len(w.faults.armed) == 0 {
		return nil
	}
	group := entry.Marks.Marks[0].Group
	victim := w.victim(group, entry)
	if victim == nil {
		return nil
	}
	if _, strikes := w.strike(scenario.ApplyPartialRefuse, target{group: &group}); !strikes {
		return nil
	}
	return w.Commit(w.exit(victim, cluster.ClientFailed))
}

// victim is the first allocation of a group that runs and is not marked by the
// entry; or, if it marks all of them, the first that it marks.
func (w *World) victim(group cluster.GroupKey, entry *shims.AllocUpdateDesiredTransition) *cluster.Allocation {
	marked := map[cluster.AllocID]bool{}
	for _, m := range entry.Marks.Marks {
		marked[m.Alloc] = true
	}
	var second *cluster.Allocation
	for a := range w.Truth().GroupAllocs(group) {
		if a.DesiredStatus != cluster.DesiredRun || a.ClientStatus != cluster.ClientRunning {
			continue
		}
		if !marked[a.ID] {
			return a
		}
		if second == nil {
			second = a
		}
	}
	return second
}

// failEval has an evaluation of a drain fail that the scheduler was to look at.
func (w *World) failEval() error {
	if len(w.faults.armed) == 0 {
		return nil
	}
	for e := range w.State().PendingEvals() {
		if e.TriggeredBy != cluster.TriggerNodeDrain {
			continue
		}
		if _, strikes := w.strike(scenario.SchedFailEval, target{group: &cluster.GroupKey{Job: e.JobKey()}}); strikes {
			failed := e.Copy()
			failed.Status, failed.StatusDescription = cluster.EvalFailed, "simulated: too many attempts"
			return w.Commit(&shims.EvalUpdate{Evals: []*cluster.Evaluation{failed}})
		}
		return nil
	}
	return nil
}
