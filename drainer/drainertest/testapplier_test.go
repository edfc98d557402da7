package drainertest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

func TestTestApplier_appliers(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]applierFlaws{
		"a plain applier": {},
		"an applier that answers before it returns": {inline: true},
		"an applier that never answers rejected": {answer: func(a *drainer.Answer) {
			if a.Outcome == raftwrite.Rejected {
				a.Outcome = raftwrite.Unknown
			}
		}},
		"an applier without a bound":       {slots: 1 << 20},
		"an applier that uses its drainer": {usesDrainer: true}, // it was attached after the first writes
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			must.NoError(t, TestApplier(func(log *Log) drainer.RaftApplier { return newPlainApplier(log, f) }))
		})
	}
}

// TestApplier finds each deliberate mistake, and the error names it. Bug: on a busy machine a write took longer than the
// 200 ms after which the applier gave it up.
func TestTestApplier_mistakes(t *testing.T) {
	t.Parallel()
	mistakes := []struct {
		name string
		applierFlaws
		want string
	}{
		{"two answers at once", applierFlaws{answers: 2}, "was answered 2 times"},
		{"an answer after the time limit, and another from the log", applierFlaws{both: true}, "was answered 2 times"},
		{"no answer", applierFlaws{answers: -1}, "has not been answered within"},
		{"no answer when the log does not answer", applierFlaws{patient: true}, "a write needs a time limit"},
		{"an answer although it returned false", applierFlaws{answersFalse: true}, "the applier returned false"},
		{"always false", applierFlaws{slots: -1}, "was not queued"},
		{"applied without applying", applierFlaws{pretends: true}, "was answered applied, but never reached the log"},
		{"applied before the log has applied", applierFlaws{hasty: true}, "before the log had answered"},
		{"queued and forgotten", applierFlaws{forgets: true}, "has not reached the log within"},
		{"no index", applierFlaws{answer: func(a *drainer.Answer) { a.Index = 0 }}, "was answered with index 0"},
		{"the index of the entry before", applierFlaws{answer: func(a *drainer.Answer) { a.Index-- }}, "but its entry has index"},
		{"the index of the newest entry", applierFlaws{newestIndex: true}, "of two writes at the same time"},
		{"refusals that are lost", applierFlaws{answer: func(a *drainer.Answer) { a.Response = nil }}, "with the refusals [], but the FSM refused"},
		{"refusals that the FSM did not return", applierFlaws{answer: func(a *drainer.Answer) { a.Response = []rules.Refusal{{Node: "n9"}} }}, "with the refusals [n9]"},
		{"applied instead of rejected", applierFlaws{answer: becomes(raftwrite.Rejected, raftwrite.Applied)}, "answered applied, but the log answered rejected"},
		{"applied instead of unknown", applierFlaws{answer: becomes(raftwrite.Unknown, raftwrite.Applied)}, "answered applied, but the log answered unknown"},
		{"rejected instead of unknown", applierFlaws{answer: becomes(raftwrite.Unknown, raftwrite.Rejected)}, "the log may still apply it: the answer is unknown"},
		{"rejected instead of applied", applierFlaws{answer: becomes(raftwrite.Applied, raftwrite.Rejected)}, "was answered rejected, but the log applied it"},
		{"rejected when the log does not answer", applierFlaws{late: raftwrite.Rejected}, "the log does not answer: "},
		{"marks that lose their evaluations", applierFlaws{marks: func(m *rules.Marks) { m.Evals = nil }}, "lacks the evaluation"},
		{"marks that lose their time", applierFlaws{marks: func(m *rules.Marks) { m.At = time.Now() }}, "has another time or policy"},
		{"marks that lose their policy", applierFlaws{marks: func(m *rules.Marks) { m.Policy = rules.Policy{} }}, "has another time or policy"},
		{"a method that waits for the log", applierFlaws{waits: true}, "must return at once, in every state of the log; it has not returned within"},
		{"a method that waits for room", applierFlaws{waitsForRoom: true}, "must return at once, in every state of the log; it has not returned within"},
		{"a method that calls Explain", applierFlaws{calls: func(d *drainer.NodeDrainer) { d.Explain("n1") }}, "must not call the NodeDrainer"},             //nolint:errcheck // it never returns
		{"a method that calls Status", applierFlaws{calls: func(d *drainer.NodeDrainer) { d.Status() }}, "must not call the NodeDrainer"},                   //nolint:errcheck // it never returns
		{"a method that calls SetEnabled", applierFlaws{calls: func(d *drainer.NodeDrainer) { d.SetEnabled(false, nil) }}, "must not call the NodeDrainer"}, //nolint:errcheck // it never returns
	}
	errs := make([]error, len(mistakes))
	var running sync.WaitGroup // at once: most of the time they wait for a limit
	for i, c := range mistakes {
		running.Go(func() {
			errs[i] = testApplier(func(log *Log) drainer.RaftApplier { return newPlainApplier(log, c.applierFlaws) }, 4*time.Second)
		})
	}
	running.Wait()
	for i, c := range mistakes {
		must.ErrorContains(t, errs[i], c.want, must.Sprint(c.name))
	}
}

func becomes(from, to raftwrite.Outcome) func(*drainer.Answer) {
	return func(a *drainer.Answer) {
		if a.Outcome == from {
			a.Outcome = to
		}
	}
}

// applierFlaws are the mistakes of an applier.
type applierFlaws struct {
	// answers is how many answers a write gets; zero is one, and negative is none.
	answers int
	// slots is how many writes may be without an answer; zero is 20.
	slots  int
	answer func(*drainer.Answer)
	marks  func(*rules.Marks)
	late   raftwrite.Outcome
	calls  func(*drainer.NodeDrainer)

	inline, both, patient, answersFalse, pretends, hasty, forgets, newestIndex, waits, waitsForRoom, usesDrainer bool
}

// plainApplier has a goroutine for each write.
type plainApplier struct {
	log     *Log
	flaws   applierFlaws
	slots   chan struct{}
	drainer *drainer.NodeDrainer
}

func newPlainApplier(log *Log, f applierFlaws) *plainApplier {
	if f.slots == 0 {
		f.slots = 20
	}
	return &plainApplier{log: log, flaws: f, slots: make(chan struct{}, max(0, f.slots))}
}

func (a *plainApplier) Attach(d *drainer.NodeDrainer) { a.drainer = d }

func (a *plainApplier) AllocUpdateDesiredTransition(m *rules.Marks, r drainer.Reply) bool {
	if a.flaws.marks != nil {
		a.flaws.marks(m)
	}
	return a.enqueue(func() Result { return a.log.Marks(m) }, r)
}

func (a *plainApplier) NodesDrainComplete(c *rules.Completions, r drainer.Reply) bool {
	return a.enqueue(func() Result { return a.log.Completions(c) }, r)
}

func (a *plainApplier) Barrier(r drainer.Reply) bool {
	return a.enqueue(a.log.Barrier, r)
}

var errLog = errors.New("the log does not answer")

func (a *plainApplier) enqueue(propose func() Result, reply drainer.Reply) bool {
	switch {
	case a.drainer != nil && a.flaws.calls != nil:
		a.flaws.calls(a.drainer)
	case a.flaws.pretends:
		reply(drainer.Answer{Outcome: raftwrite.Applied, Index: 7})
		return true
	case a.flaws.forgets:
		return true
	case a.flaws.waits:
		reply(a.answered(propose()))
		return true
	case a.flaws.waitsForRoom:
		a.slots <- struct{}{}
	default:
		select {
		case a.slots <- struct{}{}:
		default:
			if a.flaws.answersFalse {
				reply(drainer.Answer{Outcome: raftwrite.Rejected, Err: errLog})
			}
			return false
		}
	}
	if a.flaws.hasty {
		go propose()
		delay(time.Millisecond)
		reply(drainer.Answer{Outcome: raftwrite.Applied, Index: 100})
		return true
	}
	result := make(chan Result, 1)
	go func() { result <- propose() }()
	if a.flaws.inline {
		select {
		case r := <-result: // the log answers at once
			<-a.slots
			reply(a.answered(r))
			return true
		case <-time.After(10 * time.Millisecond):
		}
	}
	go a.await(result, reply)
	return true
}

// await answers a write.
func (a *plainApplier) await(result chan Result, reply drainer.Reply) {
	if a.flaws.usesDrainer { // not in a method that the drainer calls
		if _, err := a.drainer.Status(); err != nil && !errors.Is(err, rules.ErrNotEnabled) {
			panic(err)
		}
	}
	if !a.flaws.waitsForRoom {
		defer func() { <-a.slots }()
	}
	limit := time.Second
	if a.flaws.patient {
		limit = time.Hour
	}
	select {
	case r := <-result:
		for range max(1, a.flaws.answers) + min(0, a.flaws.answers) {
			reply(a.answered(r))
		}
	case <-time.After(limit):
		reply(drainer.Answer{Outcome: a.flaws.late, Err: errLog})
		if a.flaws.both {
			reply(a.answered(<-result))
		}
	}
}

// answered returns the applier's answer for a result of the log.
func (a *plainApplier) answered(r Result) drainer.Answer {
	answer := drainer.Answer{Outcome: r.Outcome, Index: r.Index, Response: r.Refused}
	if r.Outcome != raftwrite.Applied {
		answer.Err = errLog
	}
	if a.flaws.newestIndex {
		a.log.mu.Lock()
		answer.Index = a.log.index
		a.log.mu.Unlock()
	}
	if a.flaws.answer != nil {
		a.flaws.answer(&answer)
	}
	return answer
}
