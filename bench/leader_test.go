package main

import (
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// leader is a drainer over a town, stepped by hand, with the log that its writes wait
// in until they are applied.
type leader struct {
	*town
	state  drainer.StateReader
	config drainer.NodeDrainerConfig
	term   *drainer.Term
	wake   chan struct{}
	// wakeAt is when the last step wanted the next, or zero.
	wakeAt time.Time
	// log is what was proposed and not applied yet.
	log []proposal
	// steps and writes count; inFlight is how many writes are not answered, most how
	// many ever were.
	steps, writes, inFlight, most int
	evals                         int
}

// proposal is an entry, or a barrier if there is no message, with who is to be told.
type proposal struct {
	message shims.Message
	reply   drainer.Reply
}

// lead begins a term over the town.
func lead(t *town) *leader { return leadFrom(t, t.fsm.Store().Reader()) }

// leadFrom begins one that reads the town's state through the reader.
func leadFrom(t *town, state drainer.StateReader) *leader {
	return leadWith(t, state, drainer.NodeDrainerConfig{})
}

// leadWith begins one that is configured as given, but writes through the leader.
func leadWith(t *town, state drainer.StateReader, config drainer.NodeDrainerConfig) *leader {
	l := &leader{town: t, state: state, config: config, wake: make(chan struct{}, 1)}
	l.config.Raft, l.config.NewEvalID = l, l.newEvalID
	l.begin()
	return l
}

// begin begins a term.
func (l *leader) begin() {
	term, err := drainer.NewTerm(l.config, l.state, l.wake)
	must.NoError(l.tb, err)
	l.term = term
}

func (l *leader) newEvalID() cluster.EvalID {
	l.evals++
	return cluster.EvalID("eval-" + time.Duration(l.evals).String())
}

var _ drainer.RaftApplier = (*leader)(nil)

func (l *leader) AllocUpdateDesiredTransition(m *rules.Marks, reply drainer.Reply) bool {
	return l.write(&shims.AllocUpdateDesiredTransition{Marks: *m}, reply)
}

func (l *leader) NodesDrainComplete(c *rules.Completions, reply drainer.Reply) bool {
	return l.write(&shims.NodesDrainComplete{Completions: *c}, reply)
}

func (l *leader) Barrier(reply drainer.Reply) bool {
	l.log = append(l.log, proposal{reply: reply})
	return true
}

// write proposes a write of the drainer's.
func (l *leader) write(m shims.Message, reply drainer.Reply) bool {
	l.writes++
	l.inFlight++
	l.most = max(l.most, l.inFlight)
	return l.propose(m, func(a drainer.Answer) {
		l.inFlight--
		reply(a)
	})
}

// propose appends an entry to the log.
func (l *leader) propose(m shims.Message, reply drainer.Reply) bool {
	l.log = append(l.log, proposal{message: m, reply: reply})
	return true
}

// step steps the drainer if it was woken or its time has come, and reports whether it
// was.
func (l *leader) step(now time.Time) bool {
	select {
	case <-l.wake:
	default:
		if l.wakeAt.IsZero() || now.Before(l.wakeAt) {
			return false
		}
	}
	l.steps++
	l.wakeAt = l.term.Step(now)
	return true
}

// commit applies the first entry in the log, and reports whether there was one.
func (l *leader) commit() bool {
	if len(l.log) == 0 {
		return false
	}
	p := l.log[0]
	l.log = l.log[1:]
	answer := drainer.Answer{Outcome: raftwrite.Applied}
	if p.message != nil {
		answer.Response = refusals(l.apply(p.message))
	}
	answer.Index = l.index
	p.reply(answer)
	return true
}

func refusals(r shims.Response) []rules.Refusal {
	switch r := r.(type) {
	case shims.MarksApplied:
		return r.Refused
	case shims.CompletionsApplied:
		return r.Refused
	}
	return nil
}

// settle steps and applies until nothing is left to do at the time.
func (l *leader) settle(now time.Time) {
	l.steps++
	l.wakeAt = l.term.Step(now)
	for l.commit() || l.step(now) {
	}
}

// status is how far the drains are.
func (l *leader) status() []rules.Status { return l.term.Status(epoch) }
