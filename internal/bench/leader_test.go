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

// leader is the drainer of a test cluster and a log of its proposals. The benchmark steps the drainer
// and applies the log.
type leader struct {
	*testCluster
	state  drainer.StateReader
	config drainer.NodeDrainerConfig
	term   *drainer.Term
	wake   chan struct{}
	// wakeAt is the time of the next step that the last step requested, or zero.
	wakeAt time.Time
	// log holds the proposals that are not applied.
	log []proposal
	// steps and writes are counts. inFlight is the number of writes without an answer, maxInFlight is
	// its maximum.
	steps, writes, inFlight, maxInFlight int
	evals                                int
}

// proposal is an entry, or a barrier if message is nil. reply receives the answer.
type proposal struct {
	message shims.Message
	reply   drainer.Reply
}

// lead begins a term.
func lead(t *testCluster) *leader { return leadFrom(t, t.fsm.Store().Reader()) }

// leadFrom begins a term that reads the state through the reader.
func leadFrom(t *testCluster, state drainer.StateReader) *leader {
	return leadWith(t, state, drainer.NodeDrainerConfig{})
}

// leadWith begins a term with the configuration. The term writes through the leader.
func leadWith(t *testCluster, state drainer.StateReader, config drainer.NodeDrainerConfig) *leader {
	l := &leader{testCluster: t, state: state, config: config, wake: make(chan struct{}, 1)}
	l.config.Raft, l.config.NewEvalID = l, l.newEvalID
	l.begin()
	return l
}

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

// write proposes a write of the drainer.
func (l *leader) write(m shims.Message, reply drainer.Reply) bool {
	l.writes++
	l.inFlight++
	l.maxInFlight = max(l.maxInFlight, l.inFlight)
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

// step steps the drainer if it has a wake-up or its time has come. It reports whether it did.
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

// commit applies the first entry in the log. It reports whether there was one.
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

// runUntilIdle steps the drainer and applies its entries until nothing is left to do at this time.
func (l *leader) runUntilIdle(now time.Time) {
	l.steps++
	l.wakeAt = l.term.Step(now)
	for l.commit() || l.step(now) {
	}
}

func (l *leader) status() []rules.Status { return l.term.Status(epoch) }
