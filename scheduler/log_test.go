package scheduler_test

import (
	"errors"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// fate is what becomes of one write.
type fate int

const (
	fine fate = iota
	rejected
	// The outcome of the others is unknown: never applied, applied at once, and
	// applied just before the next barrier.
	vanished
	silent
	late
)

// log is a raft log of a cell: writes wait in it until the test decides what
// becomes of them.
type log struct {
	*cell
	queue []*entry
	// delayed are the entries of fate late.
	delayed []*entry
	// room bounds the queue; zero is no bound.
	room int
	// plans, evals and barriers count what was begun.
	plans, evals, barriers int
	// refused counts the refused parts of plans.
	refused int
}

type entry struct {
	plan    *cluster.Plan
	evals   []*cluster.Evaluation
	barrier bool
	reply   scheduler.Reply
}

var errLog = errors.New("the log refuses")

func (l *log) begin(e *entry) bool {
	if l.room > 0 && len(l.queue) >= l.room {
		return false
	}
	l.queue = append(l.queue, e)
	return true
}

func (l *log) ApplyPlan(p *cluster.Plan, reply scheduler.Reply) bool {
	if !l.begin(&entry{plan: p, reply: reply}) {
		return false
	}
	l.plans++
	return true
}

func (l *log) UpsertEvals(evals []*cluster.Evaluation, reply scheduler.Reply) bool {
	if !l.begin(&entry{evals: evals, reply: reply}) {
		return false
	}
	l.evals++
	return true
}

func (l *log) Barrier(reply scheduler.Reply) bool {
	if !l.begin(&entry{barrier: true, reply: reply}) {
		return false
	}
	l.barriers++
	return true
}

// commit applies one entry and returns the answer to it.
func (l *log) commit(e *entry) scheduler.Answer {
	switch {
	case e.barrier:
		for _, d := range l.delayed {
			l.commit(d)
		}
		l.delayed = nil
	case e.plan != nil:
		refused := l.apply(e.plan)
		l.refused += len(refused)
		return scheduler.Answer{Outcome: raftwrite.Applied, Index: l.index, Response: refused}
	default:
		l.write(func(txn *statestore.Txn) error { return txn.UpsertEvals(e.evals) })
	}
	return scheduler.Answer{Outcome: raftwrite.Applied, Index: l.index}
}

// answer takes the oldest write out of the queue and meets its fate.
func (l *log) answer(f fate) {
	e := l.queue[0]
	l.queue = l.queue[1:]
	switch f {
	case fine:
		e.reply(l.commit(e))
	case rejected:
		e.reply(scheduler.Answer{Outcome: raftwrite.Rejected, Err: errLog})
	default:
		if f == silent {
			l.commit(e)
		}
		if f == late && !e.barrier {
			l.delayed = append(l.delayed, e)
		}
		e.reply(scheduler.Answer{Outcome: raftwrite.Unknown, Err: errLog})
	}
}

// answerAll answers what is in the queue, and nothing that comes meanwhile.
func (l *log) answerAll(f fate) {
	for range len(l.queue) {
		l.answer(f)
	}
}

// planned are the jobs with a plan in the queue.
func (l *log) planned() (jobs []cluster.JobID) {
	for _, e := range l.queue {
		if e.plan != nil {
			jobs = append(jobs, e.plan.Eval.JobID)
		}
	}
	return jobs
}

// leader returns a scheduler over the cell, and the log it writes to.
func (c *cell) leader(edit ...func(*scheduler.Config)) (*scheduler.Scheduler, *log) {
	l := &log{cell: c}
	return l.successor(edit...), l
}

// successor is another leader over the same log. What is in the queue is lost.
func (l *log) successor(edit ...func(*scheduler.Config)) *scheduler.Scheduler {
	l.queue = nil
	config := scheduler.Config{Snapshot: func() scheduler.View { return l.view().WorkView() }, Applier: l, IDs: l.ids()}
	for _, f := range edit {
		f(&config)
	}
	s, err := scheduler.New(config)
	must.NoError(l.t, err)
	return s
}

// lead steps the leader and answers it until it has nothing more to do now.
func (l *log) lead(s *scheduler.Scheduler) {
	for range 10_000 {
		s.Step(l.now)
		if len(l.queue) == 0 {
			return
		}
		l.answerAll(fine)
	}
	l.t.Fatalf("the scheduler never comes to rest")
}
