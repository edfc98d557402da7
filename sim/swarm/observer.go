package swarm

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Observer counts the events of one run. It does not change the run.
type Observer struct {
	world  *world.World // nil until Watch
	counts map[Event]int
	// rated are the events of [Rates].
	rated map[Event]bool

	// writes are the drainers' writes, writesByID the same writes by [writeID].
	writes     map[writeKey]*write
	writesByID map[string]*write
	// inFlight counts the writes of each term without an answer.
	inFlight map[int]int

	// term is the current term, begun its beginning. hasRead is true if its drainer has read a
	// state.
	term    int
	begun   time.Time
	hasRead bool
	ended   map[int]bool // terms
	// leader is the server of the term. restored is true if the term ends because of a restore.
	leader   int
	restored bool
	// clockTerm is the last term with a known clock, which is ahead by ahead.
	clockTerm int
	ahead     time.Duration

	// stages holds the terms in which the stages of drains began.
	stages map[stageKey]int
}

// writeKey identifies a write of a drainer.
type writeKey struct{ term, n int }

// write is one write of a drainer.
type write struct {
	term int
	// applied is true if the write is applied, unknown if its answer was an unknown outcome.
	applied, unknown bool
}

// stageKey is one stage of one drain.
type stageKey struct {
	drain cluster.DrainID
	stage cluster.Stage
}

// NewObserver returns an observer of one run.
func NewObserver() *Observer {
	o := &Observer{
		counts: map[Event]int{}, rated: map[Event]bool{}, writes: map[writeKey]*write{}, writesByID: map[string]*write{}, inFlight: map[int]int{},
		ended: map[int]bool{}, stages: map[stageKey]int{},
	}
	for _, r := range Rates() {
		o.rated[r.Event] = true
	}
	return o
}

// Watch begins to observe a world. It is for [sim.Options] and is called once.
func (o *Observer) Watch(w *world.World) {
	o.world, o.term, o.begun, o.leader, o.clockTerm = w, w.Term(), w.Now(), w.Leader(), w.Term()
	w.Observe(world.Observer{
		Struck:    func(s world.Strike) { o.count(faultEvent(s.Name), true) },
		Applied:   o.applied,
		Elected:   o.elected,
		TermEnded: func(term int) { o.ended[term] = true },
		Restored: func(_, restored *statestore.Snapshot) {
			o.restored = true
			o.count("term/restore", draining(restored) > 0)
		},
		ClockSet: o.clockSet,
		Proposed: o.proposed,
		Answered: o.answered,
		Stepped:  o.stepped,
	})
}

// Events returns the number of each event that has happened.
func (o *Observer) Events() map[Event]int { return o.counts }

// Reports counts the reasons for which allocations wait on draining nodes. It is for [sim.Options].
func (o *Observer) Reports(reports []rules.Report) {
	for i := range reports {
		for reason, n := range reports[i].Waiting {
			if n > 0 {
				o.count(reasonEvent(rules.Reason(reason)), true)
			}
		}
	}
}

// count counts an event if it has happened. An event without a rate is an error of this package.
func (o *Observer) count(e Event, happened bool) {
	if !o.rated[e] {
		panic(fmt.Sprintf("the event %s has no rate", e))
	}
	if happened {
		o.counts[e]++
	}
}

func (o *Observer) elected(server int) {
	o.count("term/forgets", server == o.leader && o.world.Servers.Count() > 1 && !o.restored && draining(o.world.Truth()) > 0)
	o.leader, o.restored = server, false
	o.count("term/blind", !o.hasRead)
	o.term, o.begun, o.hasRead = o.world.Term(), o.world.Now(), false
}

func draining(s *statestore.Snapshot) int {
	n := 0
	for range s.DrainView().DrainingNodes() {
		n++
	}
	return n
}

func (o *Observer) stepped(s world.DrainerStep) {
	o.count("term/deposed", s.Term != o.term)
	if s.Term != o.term || s.View == nil || o.hasRead {
		return
	}
	o.hasRead = true
	o.count("term/behind", s.View.Index() < o.world.Truth().Index())
	since := s.At.Add(-o.world.Now().Sub(o.begun))
	for n := range s.View.DrainView().DrainingNodes() {
		if d := &n.Drain.Strategy; d.Deadline > 0 && d.ForceDeadline.After(since) && d.Passed(s.At) {
			o.count("drain/deadline-no-leader", true)
		}
	}
}

func (o *Observer) proposed(p world.Proposal) {
	o.count("term/deposed-asks", p.Term != o.term)
	if !p.Taken {
		o.count("entry/not-taken", true)
		return
	}
	id := writeID(p.Message)
	if id == "" {
		return // a barrier
	}
	w := &write{term: p.Term}
	o.writes[writeKey{p.Term, p.N}], o.writesByID[id] = w, w
	o.count("entry/abreast", o.inFlight[p.Term] > 0)
	o.inFlight[p.Term]++
}

func (o *Observer) answered(term, n int, a shims.Answer) {
	w := o.writes[writeKey{term, n}]
	if w == nil {
		return
	}
	o.inFlight[term]--
	switch a.Outcome {
	case raftwrite.Rejected:
		o.count("entry/rejected", true)
	case raftwrite.Unknown:
		w.unknown = true
		o.count("entry/survives", w.applied && o.ended[term])
	}
}
