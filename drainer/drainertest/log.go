package drainertest

import (
	"slices"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Log is the log below an applier under test. The embedder's test double of its log calls it for
// each entry and barrier that the applier proposes, from any goroutine. Every call blocks until the
// test lets the log answer. The [Result] is the answer of the double.
type Log struct {
	mu sync.Mutex
	// proposals are the proposals without an answer, oldest first; guarded by mu.
	proposals []*proposal
	// answering means that the log answers by itself; guarded by mu.
	answering bool
	// index is that of the last entry that was applied; guarded by mu.
	index uint64
}

// Result is how the log answers.
type Result struct {
	// Outcome is Applied; Rejected, an error after which the entry is never applied; or Unknown, an
	// error after which it may be applied.
	Outcome raftwrite.Outcome
	// Index is that of an applied entry. For a barrier it is the index of the newest entry in the
	// state.
	Index uint64
	// Refused are the FSM's refusals in an applied entry.
	Refused []rules.Refusal
}

// proposal is an unanswered entry, or a barrier if it has neither field.
type proposal struct {
	marks       *rules.Marks
	completions *rules.Completions
	result      chan Result // capacity 1
}

// Marks is called for an entry of marks, with the entry as it is in the log.
func (l *Log) Marks(m *rules.Marks) Result { return l.propose(&proposal{marks: m}) }

// Completions is called for an entry of completions.
func (l *Log) Completions(c *rules.Completions) Result { return l.propose(&proposal{completions: c}) }

// Barrier is called for a barrier. The double then sets the index of its state to the result's.
func (l *Log) Barrier() Result { return l.propose(&proposal{}) }

func (l *Log) propose(p *proposal) Result {
	p.result = make(chan Result, 1)
	l.mu.Lock()
	if l.answering {
		p.result <- l.apply(p)
	} else {
		l.proposals = append(l.proposals, p)
	}
	l.mu.Unlock()
	return <-p.result
}

// apply makes the result of an applied proposal. The caller holds mu.
func (l *Log) apply(p *proposal) Result {
	if p.marks != nil || p.completions != nil {
		l.index++
	}
	return Result{Outcome: raftwrite.Applied, Index: l.index}
}

// waiting returns the proposals that wait for an answer, oldest first.
func (l *Log) waiting() []*proposal {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.proposals)
}

// answer answers a proposal.
func (l *Log) answer(p *proposal, r Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proposals = slices.DeleteFunc(l.proposals, func(o *proposal) bool { return o == p })
	l.index = max(l.index, r.Index)
	p.result <- r
}

// answerAll answers all current and later proposals as applied.
func (l *Log) answerAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answering = true
	for _, p := range l.proposals {
		p.result <- l.apply(p)
	}
	l.proposals = nil
}
