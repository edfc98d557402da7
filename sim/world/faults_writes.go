package world

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// decide draws the fate of a write, and how late it is if it is late.
func (w *World) decide(p *proposal) (fate Fate, late time.Duration) {
	if w.fate != nil {
		if f := w.fate(p.Write); f != Apply {
			return f, w.lateness(f, 0)
		}
	}
	if len(w.faults.armed) == 0 {
		return Apply, 0
	}
	about := target{Words: p.Words()}
	fate, delay, strikes := Struck(func(name scenario.FaultName) (time.Duration, bool) { return w.strike(name, about) })
	if strikes {
		return fate, w.lateness(fate, delay)
	}
	w.mayLoseLeader(p)
	return Apply, 0
}

// lateness is how late a write of that fate is: as late as the fault says, or as late as
// writes are here.
func (w *World) lateness(f Fate, said time.Duration) time.Duration {
	if said > 0 || !f.Late() {
		return said
	}
	return w.draw("late", w.options.Late)
}

// Struck is the fate of a write that faults make of it, and how late it is by them; or
// false if none strikes. It asks of each in turn whether it does.
func Struck(strike func(scenario.FaultName) (delay time.Duration, strikes bool)) (fate Fate, late time.Duration, strikes bool) {
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
		if late, strikes := strike(f.name); strikes {
			return f.fate, late, true
		}
	}
	return Apply, 0, false
}

// refuseSome has an allocation fail that an entry of marks counts on.
func (w *World) refuseSome(m shims.Message) error {
	entry, is := m.(*shims.AllocUpdateDesiredTransition)
	if !is || !w.faults.armedAny(scenario.ApplyPartialRefuse) {
		return nil
	}
	var groups []cluster.GroupKey // in the order of the marks, which is that of groups
	for _, mark := range entry.Marks.Marks {
		groups = append(groups, mark.Group)
	}
	for _, group := range slices.Compact(groups) {
		victim := w.victim(group, entry.Marks.Marks)
		if victim == nil {
			continue
		}
		if _, strikes := w.strike(scenario.ApplyPartialRefuse, target{Group: &group}); strikes {
			return w.Commit(w.requests.Exit(victim, cluster.ClientFailed))
		}
	}
	return nil
}

// victim is an allocation of a group that runs, whose loss makes marks untrue: first
// one that is healthy and stays, without which there is less room; then any that
// stays; then one that is to be marked. It is nil if nothing of the group runs.
func (w *World) victim(group cluster.GroupKey, marks []rules.Mark) *cluster.Allocation {
	marked := map[cluster.AllocID]bool{}
	for _, m := range marks {
		marked[m.Alloc] = true
	}
	state := w.Truth()
	var best *cluster.Allocation
	least := 3
	for a := range state.GroupAllocs(group) {
		if a.DesiredStatus != cluster.DesiredRun || a.ClientStatus != cluster.ClientRunning {
			continue
		}
		rank := 1
		switch {
		case marked[a.ID]:
			rank = 2
		case a.JudgedHealthy() && !a.Leaving() && state.Node(a.NodeID).Reachable():
			rank = 0
		}
		if rank < least {
			best, least = a, rank
		}
		if least == 0 {
			break
		}
	}
	return best
}
