package live

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// decide draws the fate of a write, and how late it is if it is late. The caller holds
// mu.
func (l *contract) decide(p *proposal) (world.Fate, time.Duration) {
	about := target{Words: world.Write{Source: p.source, Message: p.message}.Words()}
	fate, delay, strikes := world.Struck(func(name scenario.FaultName) (time.Duration, bool) { return l.faults.strike(name, about) })
	if strikes {
		return fate, l.lateness(fate, delay)
	}
	if p.source == world.FromDrainer && p.message != nil {
		if delay, strikes := l.faults.strike(scenario.LeaderLoseMidBatch, target{}); strikes {
			l.endTerm(l.leader, delay)
		}
	}
	return world.Apply, 0
}

// lateness is how late a write of that fate is: as late as the fault says, or as late as
// writes are here.
func (l *contract) lateness(f world.Fate, said time.Duration) time.Duration {
	if said > 0 || !f.Late() {
		return said
	}
	late := l.scenario.Cluster.Late
	if late == (scenario.Range{}) {
		late = scenario.Range{Min: scenario.DefaultLate, Max: scenario.DefaultLate}
	}
	return l.chance.draw("late", late)
}

// endTerm ends a term after a while, unless it has ended by then.
func (l *contract) endTerm(led *leadership, after time.Duration) {
	survive := l.chance.pick("survive", 2) == 0
	time.AfterFunc(after, func() {
		l.do(func() error {
			if l.leader != led {
				return nil
			}
			return l.elect(survive)
		})
	})
}

// flap ends a term that begins while the leader is to flap.
func (l *contract) flap() error {
	if delay, strikes := l.faults.strike(scenario.LeaderFlap, target{}); strikes {
		l.endTerm(l.leader, delay)
	}
	return nil
}

// refuseSome has an allocation fail that an entry of marks counts on.
func (l *contract) refuseSome(m shims.Message) error {
	marks, is := m.(*shims.AllocUpdateDesiredTransition)
	if !is || len(marks.Marks.Marks) == 0 {
		return nil
	}
	group := marks.Marks.Marks[0].Group
	victim := l.victim(group, marks)
	if victim == nil {
		return nil
	}
	if _, strikes := l.faults.strike(scenario.ApplyPartialRefuse, target{Group: &group}); !strikes {
		return nil
	}
	return l.put(l.requests.Exit(victim, cluster.ClientFailed))
}

// victim is the first allocation of a group that runs and that the entry does not mark;
// or, if it marks all of them, the first that it marks; or nil.
func (l *contract) victim(group cluster.GroupKey, entry *shims.AllocUpdateDesiredTransition) *cluster.Allocation {
	marked := map[cluster.AllocID]bool{}
	for _, m := range entry.Marks.Marks {
		marked[m.Alloc] = true
	}
	var second *cluster.Allocation
	for a := range l.truth().GroupAllocs(group) {
		switch {
		case a.DesiredStatus != cluster.DesiredRun || a.ClientStatus != cluster.ClientRunning:
		case !marked[a.ID]:
			return a
		case second == nil:
			second = a
		}
	}
	return second
}

// failEvals has evaluations of a drain fail that an entry of marks has made.
func (l *contract) failEvals(m shims.Message) error {
	marks, is := m.(*shims.AllocUpdateDesiredTransition)
	if !is {
		return nil
	}
	for _, e := range marks.Evals {
		made := l.truth().Eval(e.ID)
		if made == nil || made.Status != cluster.EvalPending {
			continue
		}
		if _, strikes := l.faults.strike(scenario.SchedFailEval, target{Group: &cluster.GroupKey{Job: e.JobKey()}}); !strikes {
			continue
		}
		failed := made.Copy()
		failed.Status, failed.StatusDescription = cluster.EvalFailed, "simulated: too many attempts"
		if err := l.put(&shims.EvalUpdate{Evals: []*cluster.Evaluation{failed}}); err != nil {
			return err
		}
	}
	return nil
}

// put commits a message at once.
func (l *contract) put(m shims.Message) error {
	data, err := shims.Encode(m)
	if err != nil {
		return err
	}
	_, err = l.commit(data)
	return err
}
