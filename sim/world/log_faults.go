package world

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// decide returns the fate of a write, and its delay if the fate is late.
func (l *RaftLog) decide(p *proposal) (fate Fate, late time.Duration) {
	if l.fate != nil {
		if f := l.fate(p.Write); f != Apply {
			return f, l.lateDelay(f, 0)
		}
	}
	faults := l.world.Faults
	if len(faults.armed) == 0 {
		return Apply, 0
	}
	about := target{Words: p.Words()}
	fate, delay, strikes := Struck(func(name scenario.FaultName) (time.Duration, bool) { return faults.strike(name, about) })
	if strikes {
		return fate, l.lateDelay(fate, delay)
	}
	if p.Source == FromDrainer && p.Message != nil {
		if delay, strikes := faults.strike(scenario.LeaderLoseMidBatch, target{}); strikes {
			p.deposes = true
			l.world.Servers.loseLeaderIn(delay, scenario.LeaderLoseMidBatch)
		}
	}
	return Apply, 0
}

// lateDelay returns the delay of a late write: the fault's, or a drawn one if the fault has none.
func (l *RaftLog) lateDelay(f Fate, delay time.Duration) time.Duration {
	if delay > 0 || !f.Late() {
		return delay
	}
	return l.world.chance.draw("late", l.world.options.Late)
}

// Struck returns the fate that faults give to a write, and the delay of the fault. It calls
// strike for each kind of fault until one strikes. If none does, strikes is false.
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

// failGroupMember makes one allocation of a marked group fail, if a fault strikes. The FSM then
// refuses a mark that the failure makes invalid.
func (l *RaftLog) failGroupMember(m shims.Message) error {
	w := l.world
	entry, is := m.(*shims.AllocUpdateDesiredTransition)
	if !is || !w.Faults.armedAny(scenario.ApplyPartialRefuse) {
		return nil
	}
	var groups []cluster.GroupKey // the marks are ordered by group
	for _, mark := range entry.Marks.Marks {
		groups = append(groups, mark.Group)
	}
	for _, group := range slices.Compact(groups) {
		victim := victim(w.Truth(), group, entry.Marks.Marks)
		if victim == nil {
			continue
		}
		if _, strikes := w.Faults.strike(scenario.ApplyPartialRefuse, target{Group: &group}); strikes {
			return w.Setup.Commit(w.Operator.Requests.Exit(victim, cluster.ClientFailed))
		}
	}
	return nil
}

// victim returns the running allocation of a group whose failure is most likely to make a mark
// invalid, or nil if none runs. Its first choice is a healthy allocation that stays, because its
// failure reduces the group's budget. Its second choice is any allocation that stays, and its
// last choice is one that the entry marks.
func victim(state *statestore.Snapshot, group cluster.GroupKey, marks []rules.Mark) *cluster.Allocation {
	marked := map[cluster.AllocID]bool{}
	for _, m := range marks {
		marked[m.Alloc] = true
	}
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
