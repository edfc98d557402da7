package world

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// String returns the source as scenarios name it.
func (s Source) String() string {
	names := [sourceCount]string{"drainer", "scheduler", "clients", "operator"}
	if s >= sourceCount {
		return "unknown source"
	}
	return names[s]
}

// words are what scenarios call a write: by its source, or by its kind.
func (w Write) words() []string {
	kind := string(EntryKindOf(w.Message))
	if w.Message == nil {
		kind = "barrier"
	}
	return []string{w.Source.String(), kind}
}

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

// loseLeader ends the term before the answer to the write that it is about.
func (w *World) loseLeader() {
	delay, strikes := w.strike(scenario.LeaderLoseMidBatch, target{})
	if !strikes {
		return
	}
	term := w.terms
	survive := w.streams.of("survive").IntN(2) == 0
	w.At(w.now.Add(delay), func() error {
		if w.terms != term {
			return nil // it has ended by itself
		}
		return w.Elect(survive)
	})
}

// flap ends a term that begins while the leader is to flap.
func (w *World) flap() {
	delay, strikes := w.strike(scenario.LeaderFlap, target{})
	if !strikes {
		return
	}
	term := w.terms
	survive := w.streams.of("survive").IntN(2) == 0
	w.At(w.now.Add(delay), func() error {
		if w.terms != term {
			return nil
		}
		return w.Elect(survive)
	})
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

// exit is the report of an allocation that has ended by itself.
func (w *World) exit(a *cluster.Allocation, as cluster.ClientStatus) *shims.AllocClientUpdate {
	reports := []cluster.AllocReport{{Alloc: a.ID, Node: a.NodeID, ClientStatus: as, At: w.now}}
	m := &shims.AllocClientUpdate{Reports: reports}
	m.Evals = scheduler.ReportEvals(w.Truth(), reports, w.Clock(), w.ids.eval)
	return m
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

// travel is how long a wake-up takes to the drainer, and whether it waits for
// another.
func (l *leadership) travel() (delay time.Duration, merges bool) {
	w := l.world
	delay = w.draw("wake", w.options.Wake)
	if len(w.faults.armed) == 0 {
		return delay, false
	}
	if later, strikes := w.strike(scenario.WatchSpurious, target{}); strikes {
		w.At(w.now.Add(later), func() error { l.drains.wake(); return nil })
	}
	if longer, strikes := w.strike(scenario.WatchDelay, target{}); strikes {
		delay += longer
	}
	if longer, strikes := w.strike(scenario.WatchCoalesce, target{}); strikes {
		return delay + longer, true
	}
	return delay, false
}

// attention is how long the scheduler takes to turn to what has come.
func (l *leadership) attention() (delay time.Duration, merges bool) {
	w := l.world
	delay = w.draw("schedule", w.options.Schedule)
	if longer, strikes := w.strike(scenario.SchedSlow, target{}); strikes {
		delay += longer
	}
	return delay, false
}
