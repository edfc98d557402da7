package swarm

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Observer counts the events of one run. It changes nothing in it.
type Observer struct {
	world *world.World // nil until Watch
	seen  map[Event]int

	// asked are the drainers' writes by term and number, named the same by what
	// tells one entry from another.
	asked map[writeKey]*write
	named map[string]*write
	// inFlight counts those of each term that are not answered.
	inFlight map[int]int

	// term is the term that began last, begun when it did, and looked whether its
	// drainer has seen a state.
	term   int
	begun  time.Time
	looked bool
	over   map[int]bool // terms that have ended
	// leader is the server of that term, and restored says that it ends for a snapshot.
	leader   int
	restored bool
	// clockOf is the last term whose clock is known, ahead how far that is ahead.
	clockOf int
	ahead   time.Duration

	// stages are the terms in which the stages of drains began.
	stages map[stageKey]int
}

// writeKey tells a drainer's write from others.
type writeKey struct{ term, n int }

// write is one write of a drainer.
type write struct {
	term int
	// applied says that it was applied. unknown says that its drainer got the answer "outcome
	// unknown".
	applied, unknown bool
}

// stageKey is one stage of one drain.
type stageKey struct {
	drain cluster.DrainID
	stage cluster.Stage
}

// NewObserver returns an observer of one run.
func NewObserver() *Observer {
	return &Observer{
		seen: map[Event]int{}, asked: map[writeKey]*write{}, named: map[string]*write{}, inFlight: map[int]int{},
		over: map[int]bool{}, stages: map[stageKey]int{},
	}
}

// Watch observes a world from now on. It is for [sim.Options], and called once.
func (o *Observer) Watch(w *world.World) {
	o.world, o.term, o.begun, o.leader, o.clockOf = w, w.Term(), w.Now(), w.Leader(), w.Term()
	w.Observe(world.Observer{
		Struck:    func(s world.Strike) { o.seen[faultEvent(s.Name)]++ },
		Applied:   o.applied,
		Elected:   o.elected,
		TermEnded: func(term int) { o.over[term] = true },
		Restored: func(_, restored *statestore.Snapshot) {
			o.restored = true
			o.count(RestoreInDrain, draining(restored) > 0)
		},
		ClockSet: o.clockSet,
		Proposed: o.proposed,
		Answered: o.answered,
		Stepped:  o.stepped,
	})
}

// Seen returns how often each event has happened. Those that have not are not in it.
func (o *Observer) Seen() map[Event]int { return o.seen }

// Reports counts the reasons that are given of draining nodes. It is for
// [sim.Options].
func (o *Observer) Reports(reports []rules.Report) {
	for i := range reports {
		for reason, n := range reports[i].Waiting {
			if n > 0 {
				o.seen[reasonEvent(rules.Reason(reason))]++
			}
		}
	}
}

// count counts an event if it has happened.
func (o *Observer) count(e Event, happened bool) {
	if happened {
		o.seen[e]++
	}
}

func (o *Observer) elected(server int) {
	o.count(TermForgets, server == o.leader && o.world.Servers.Count() > 1 && !o.restored && draining(o.world.Truth()) > 0)
	o.leader, o.restored = server, false
	o.count(TermBlind, !o.looked)
	o.term, o.begun, o.looked = o.world.Term(), o.world.Now(), false
}

func draining(s *statestore.Snapshot) int {
	n := 0
	for range s.DrainingNodes() {
		n++
	}
	return n
}

func (o *Observer) stepped(s world.DrainerStep) {
	o.count(DeposedSteps, s.Term != o.term)
	if s.Term != o.term || s.View == nil || o.looked {
		return
	}
	o.looked = true
	o.count(TermBehind, s.View.Index() < o.world.Truth().Index())
	since := s.At.Add(-o.world.Now().Sub(o.begun))
	for n := range s.View.DrainingNodes() {
		if d := &n.Drain.Strategy; d.Deadline > 0 && d.ForceDeadline.After(since) && d.Passed(s.At) {
			o.seen[DeadlineNoLeader]++
		}
	}
}

func (o *Observer) proposed(p world.Proposal) {
	o.count(DeposedProposes, p.Term != o.term)
	if !p.Taken {
		o.seen[EntryNotTaken]++
		return
	}
	name := nameOf(p.Message)
	if name == "" {
		return // a barrier
	}
	w := &write{term: p.Term}
	o.asked[writeKey{p.Term, p.N}], o.named[name] = w, w
	o.count(EntryAbreast, o.inFlight[p.Term] > 0)
	o.inFlight[p.Term]++
}

func (o *Observer) answered(term, n int, a shims.Answer) {
	w := o.asked[writeKey{term, n}]
	if w == nil {
		return
	}
	o.inFlight[term]--
	switch a.Outcome {
	case raftwrite.Rejected:
		o.seen[EntryRejected]++
	case raftwrite.Unknown:
		w.unknown = true
		o.count(EntrySurvives, w.applied && o.over[term])
	}
}
