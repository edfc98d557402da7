package drainertest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rowview"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// The limits of TestApplier.
const (
	// manyWrites is the most writes that testFull queues. A queue that then still has room counts
	// as unbounded.
	manyWrites = 2000
	// settleTime is how long the test waits for a second answer.
	settleTime = 50 * time.Millisecond
)

// TestApplier tests the contract of [drainer.RaftApplier]. The methods return without waiting and
// do not call the drainer. A queued write is answered exactly once, with its own index, outcome and
// refusals. A write that was not queued is never answered. A write that the log may apply is never
// answered Rejected. A write that the log does not answer is answered Unknown.
//
// newApplier makes an applier over a test double of the embedder's log, which calls the [Log]. The
// applier's time limit for a write must be well below [CallLimit], about a second. An applier that
// needs its drainer has a method Attach(*drainer.NodeDrainer), which the test calls once, before
// the first write.
func TestApplier(newApplier func(*Log) drainer.RaftApplier) error {
	return testApplier(newApplier, CallLimit)
}

func testApplier(newApplier func(*Log) drainer.RaftApplier, callLimit time.Duration) error {
	w := &watch{callLimit: callLimit}
	return w.run(func() error {
		for _, test := range []func(*applierPlay) error{
			(*applierPlay).testAnswers, (*applierPlay).testOwnIndex, (*applierPlay).testSilence, (*applierPlay).testFull,
		} {
			p := &applierPlay{watch: w, log: &Log{}}
			p.applier = newApplier(p.log)
			if _, err := attached(p.applier, p.applier); err != nil {
				return err
			}
			err := test(p)
			p.log.answerAll()
			if err == nil {
				err = p.settle()
			}
			if err != nil {
				return err
			}
		}
		log := &Log{}
		return testUnderADrainer(newApplier(log), log, w)
	})
}

// applierPlay makes writes with an applier.
type applierPlay struct {
	applier drainer.RaftApplier
	log     *Log
	watch   *watch
	writes  []*testedWrite
}

// testedWrite is one write: an entry of marks or completions, or a barrier.
type testedWrite struct {
	name        string
	marks       *rules.Marks
	completions *rules.Completions
	queued      bool

	mu sync.Mutex
	// answers are the answers to the write; guarded by mu.
	answers []drainer.Answer
	// premature is the first answer that came before the log's, or nil; guarded by mu.
	premature *drainer.Answer
	// released means that the log has answered; guarded by mu.
	released bool
}

// write makes the n-th write. The number decides its kind.
func (p *applierPlay) write(n int) *testedWrite {
	id := fmt.Sprintf("%d", n)
	w := &testedWrite{name: "Barrier " + id}
	switch n % 3 {
	case 0:
		a := storyAlloc("a"+id, storyJob(cluster.JobID("j"+id), cluster.JobService, 1, 1), "n1")
		w.name = "AllocUpdateDesiredTransition " + id
		w.marks = storyMarks(time.Duration(n)*time.Second, storyEval(id, a.Job), mark(a, "d1", 7, cluster.MarkPaced))
	case 1:
		w.name = "NodesDrainComplete " + id
		w.completions = &rules.Completions{
			At: storyTime(time.Duration(n) * time.Second), Policy: rules.Policy{}.WithDefaults(),
			Completions: []rules.Completion{{Node: cluster.NodeID("n" + id), Drain: "d1", Revision: 7}},
		}
	}
	p.writes = append(p.writes, w)
	return w
}

// begin hands the write to the applier.
func (p *applierPlay) begin(w *testedWrite) {
	defer p.watch.began("%s: it must return at once, in every state of the log; it", w.name)()
	switch {
	case w.marks != nil:
		m := *w.marks
		m.Marks, m.Evals = slices.Clone(m.Marks), slices.Clone(m.Evals)
		w.queued = p.applier.AllocUpdateDesiredTransition(&m, w.reply)
	case w.completions != nil:
		c := *w.completions
		c.Completions = slices.Clone(c.Completions)
		w.queued = p.applier.NodesDrainComplete(&c, w.reply)
	default:
		w.queued = p.applier.Barrier(w.reply)
	}
}

func (w *testedWrite) reply(a drainer.Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers = append(w.answers, a)
	if !w.released && w.premature == nil {
		w.premature = &a
	}
}

// count counts the answers.
func (w *testedWrite) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.answers)
}

// first is the first answer.
func (w *testedWrite) first() drainer.Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.answers[0]
}

// release lets the log answer.
func (p *applierPlay) release(w *testedWrite, at *proposal, r Result) {
	w.mu.Lock()
	w.released = true
	w.mu.Unlock()
	p.log.answer(at, r)
}

// is reports whether the proposal is the write. The error names a changed field.
func (at *proposal) is(w *testedWrite) (bool, error) {
	switch {
	case w.marks != nil:
		if at.marks == nil || len(at.marks.Marks) != 1 || at.marks.Marks[0] != w.marks.Marks[0] {
			return false, nil
		}
		return true, sameMarks(at.marks, w.marks)
	case w.completions != nil:
		if at.completions == nil || !slices.Equal(at.completions.Completions, w.completions.Completions) {
			return false, nil
		}
		if !at.completions.At.Equal(w.completions.At) || at.completions.Policy != w.completions.Policy {
			return true, errors.New("the entry in the log has another time or policy than the write")
		}
		return true, nil
	}
	return at.marks == nil && at.completions == nil, nil
}

func sameMarks(got, want *rules.Marks) error {
	switch {
	case !got.At.Equal(want.At) || got.Policy != want.Policy:
		return errors.New("the entry in the log has another time or policy than the write")
	case len(got.Evals) != 1 || diffRow(got.Evals[0], want.Evals[0]) != "":
		return errors.New("the entry in the log lacks the evaluation of the write")
	}
	return nil
}

// until waits until a condition holds. It gives up after the time limit of a call.
func (p *applierPlay) until(condition func() bool) bool {
	for end := time.Now().Add(p.watch.callLimit); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// proposed waits until the log has the write.
func (p *applierPlay) proposed(w *testedWrite) (*proposal, error) {
	var at *proposal
	var wrong error
	p.until(func() bool {
		for _, candidate := range p.log.waiting() {
			if is, err := candidate.is(w); is {
				at, wrong = candidate, err
				return true
			}
		}
		return w.count() > 0
	})
	switch {
	case wrong != nil:
		return nil, fmt.Errorf("%s: %w", w.name, wrong)
	case at == nil && w.count() > 0:
		return nil, fmt.Errorf("%s was answered %s, but never reached the log", w.name, w.first().Outcome)
	case at == nil:
		return nil, fmt.Errorf("%s was queued, but has not reached the log within %s", w.name, p.watch.callLimit)
	}
	return at, nil
}

// check compares the one answer to a write with the log's answer.
func (p *applierPlay) check(w *testedWrite, want Result) error {
	if !p.until(func() bool { return w.count() > 0 }) {
		return fmt.Errorf("%s was queued, but has not been answered within %s", w.name, p.watch.callLimit)
	}
	got := w.first()
	w.mu.Lock()
	premature := w.premature
	w.mu.Unlock()
	switch {
	case premature != nil && premature.Outcome != raftwrite.Unknown:
		return fmt.Errorf("%s was answered %s before the log had answered", w.name, premature.Outcome)
	case want.Outcome == raftwrite.Unknown && got.Outcome == raftwrite.Rejected:
		return fmt.Errorf("%s was answered rejected, but the log may still apply it: the answer is unknown", w.name)
	case want.Outcome != raftwrite.Applied && got.Outcome == raftwrite.Applied:
		return fmt.Errorf("%s was answered applied, but the log answered %s", w.name, want.Outcome)
	case want.Outcome != raftwrite.Applied:
		return nil // Unknown is always a correct answer
	case got.Outcome != raftwrite.Applied:
		return fmt.Errorf("%s was answered %s, but the log applied it", w.name, got.Outcome)
	case w.isBarrier() && got.Index < want.Index:
		return fmt.Errorf("%s was answered with index %d, but the state behind it has index %d", w.name, got.Index, want.Index)
	case !w.isBarrier() && got.Index != want.Index:
		return fmt.Errorf("%s was answered with index %d, but its entry has index %d", w.name, got.Index, want.Index)
	case !slices.Equal(got.Response, want.Refused):
		return fmt.Errorf("%s was answered with the refusals [%s], but the FSM refused [%s]", w.name, itemsOf(got.Response), itemsOf(want.Refused))
	}
	return nil
}

func (w *testedWrite) isBarrier() bool { return w.marks == nil && w.completions == nil }

// testAnswers makes each kind of write with each outcome, one after the other.
func (p *applierPlay) testAnswers() error {
	for n := range 18 {
		w := p.write(n)
		want := Result{Outcome: []raftwrite.Outcome{raftwrite.Applied, raftwrite.Rejected, raftwrite.Unknown}[n/3%3]}
		if want.Outcome == raftwrite.Applied {
			want.Index = uint64(100 + 10*n)
		}
		if want.Outcome == raftwrite.Applied && !w.isBarrier() && n >= 9 {
			want.Refused = []rules.Refusal{{Node: cluster.NodeID(w.name), Alloc: "a1", Why: "a test"}}
		}
		p.begin(w)
		if !w.queued {
			return fmt.Errorf("%s was not queued, although the applier has nothing else to do", w.name)
		}
		at, err := p.proposed(w)
		if err != nil {
			return err
		}
		p.release(w, at, want)
		if err := p.check(w, want); err != nil {
			return err
		}
	}
	return nil
}

// testOwnIndex makes a write of marks and a write of completions at the same time. If the log has
// both, it answers the later one first.
func (p *applierPlay) testOwnIndex() error {
	writes := []*testedWrite{p.write(0), p.write(1)}
	for _, w := range writes {
		p.begin(w)
	}
	// Both may reach the log. With an applier that makes one write after the other, the loop waits
	// the whole time.
	for start := time.Now(); len(p.log.waiting()) < len(writes) && time.Since(start) < 10*settleTime; {
		time.Sleep(settleTime / 10)
	}
	var want [2]Result
	free := []uint64{50, 51} // the next indexes of the log, in the order of its entries
	for left := len(writes); left > 0; left-- {
		if !p.until(func() bool { return len(p.log.waiting()) > 0 }) {
			return errors.New("two writes were queued, but have not reached the log")
		}
		waiting := p.log.waiting()
		last := min(len(waiting), len(free)) - 1
		at, index := waiting[last], free[last]
		free = slices.Delete(free, last, last+1)
		for i, w := range writes {
			if is, _ := at.is(w); is {
				want[i] = Result{Outcome: raftwrite.Applied, Index: index}
				p.release(w, at, want[i])
			}
		}
		p.until(func() bool { return writes[0].count()+writes[1].count() >= len(writes)-left+1 })
	}
	for i, w := range writes {
		if err := p.check(w, want[i]); err != nil {
			return fmt.Errorf("of two writes at the same time, %w", err)
		}
	}
	return nil
}

// testSilence makes a write while the log does not answer.
func (p *applierPlay) testSilence() error {
	w := p.write(0)
	p.begin(w)
	at, err := p.proposed(w)
	if err != nil {
		return err
	}
	if !p.until(func() bool { return w.count() > 0 }) {
		return fmt.Errorf("%s: the log does not answer, and the applier has not answered within %s: a write needs a time limit", w.name, p.watch.callLimit)
	}
	if err := p.check(w, Result{Outcome: raftwrite.Unknown}); err != nil {
		return fmt.Errorf("the log does not answer: %w", err)
	}
	p.release(w, at, Result{Outcome: raftwrite.Applied, Index: 9}) // late
	return nil
}

// testFull fills the queue of an applier whose log does not answer.
func (p *applierPlay) testFull() error {
	for n := range manyWrites {
		w := p.write(n)
		if p.begin(w); !w.queued {
			break
		}
	}
	inLog := p.log.waiting()
	for _, w := range p.writes {
		if w.queued && !p.until(func() bool { return w.count() > 0 }) {
			return fmt.Errorf("%s was queued behind others, but has not been answered within %s", w.name, p.watch.callLimit)
		}
		reached := !w.isBarrier() && slices.ContainsFunc(inLog, func(at *proposal) bool { is, _ := at.is(w); return is })
		if w.queued && reached && w.first().Outcome != raftwrite.Unknown {
			return fmt.Errorf("%s was answered %s, but the log may still apply it: the answer is unknown", w.name, w.first().Outcome)
		}
	}
	return nil
}

// settle finds writes that were answered more than once, or without being queued.
func (p *applierPlay) settle() error {
	time.Sleep(settleTime)
	for _, w := range p.writes {
		switch count := w.count(); {
		case !w.queued && count > 0:
			return fmt.Errorf("%s was answered, but the applier returned false: it must do one or the other", w.name)
		case w.queued && count > 1:
			return fmt.Errorf("%s was answered %d times", w.name, count)
		}
	}
	return nil
}

// testUnderADrainer lets a drainer call the applier. The drainer holds a lock during the call that
// its own methods need, so an applier method that calls the drainer never returns.
func testUnderADrainer(applier drainer.RaftApplier, log *Log, w *watch) error {
	log.answerAll()
	watched := &watchedApplier{applier: applier, watch: w, marked: make(chan struct{})}
	d, err := attached(applier, watched)
	if err != nil {
		return err
	}
	if err := d.SetEnabled(true, stillState{}); err != nil {
		return fmt.Errorf("enabling a drainer: %w", err)
	}
	select {
	case <-watched.marked:
	case <-time.After(2 * w.callLimit): // the watch reports a method that does not return sooner
		return errors.New("a drainer with something to mark has not written: was its barrier answered?")
	}
	defer w.began("SetEnabled(false) of the drainer")()
	return d.SetEnabled(false, nil)
}

// attached returns a drainer that writes with the applier raft, and gives it to the applier as a
// server does: after the drainer was made, and before it is enabled and the first write begins.
func attached(applier, raft drainer.RaftApplier) (*drainer.NodeDrainer, error) {
	d, err := drainer.NewNodeDrainer(drainer.NodeDrainerConfig{Raft: raft})
	if err != nil {
		return nil, fmt.Errorf("making a drainer: %w", err)
	}
	if a, can := applier.(interface{ Attach(*drainer.NodeDrainer) }); can {
		a.Attach(d)
	}
	return d, nil
}

// watchedApplier is an applier whose methods are watched while a drainer calls them.
type watchedApplier struct {
	applier drainer.RaftApplier
	watch   *watch
	// marked is closed when marks were written.
	marked chan struct{}
	once   sync.Once
}

const calledByADrainer = "%s, called by a NodeDrainer, must not call the NodeDrainer, which waits for it: it"

func (a *watchedApplier) AllocUpdateDesiredTransition(m *rules.Marks, r drainer.Reply) (queued bool) {
	defer a.once.Do(func() { close(a.marked) })
	defer a.watch.began(calledByADrainer, "AllocUpdateDesiredTransition")()
	return a.applier.AllocUpdateDesiredTransition(m, r)
}

func (a *watchedApplier) NodesDrainComplete(c *rules.Completions, r drainer.Reply) (queued bool) {
	defer a.watch.began(calledByADrainer, "NodesDrainComplete")()
	return a.applier.NodesDrainComplete(c, r)
}

func (a *watchedApplier) Barrier(r drainer.Reply) (queued bool) {
	defer a.watch.began(calledByADrainer, "Barrier")()
	return a.applier.Barrier(r)
}

// stillState is a state that never changes: a draining node with an allocation, and an empty
// draining node.
type stillState struct{}

func (stillState) Snapshot() rules.View {
	a := storyAlloc("a1", storyJob("web", cluster.JobService, 1, 1), "n1")
	drain := func(n cluster.NodeID, d cluster.DrainID) *cluster.Node {
		return &cluster.Node{ID: n, Status: cluster.NodeReady, Drain: &cluster.Drain{ID: d, NodeID: n, Revision: 1}}
	}
	return rowview.New(1, []*cluster.Node{drain("n1", "d1"), drain("n2", "d2")}, []*cluster.Job{a.Job}, []*cluster.Allocation{a}, nil)
}

func (stillState) Subscribe(chan<- struct{}) drainer.Feed { return stillFeed{} }

// stillFeed never has a change.
type stillFeed struct{}

func (stillFeed) Take() drainer.Changes   { return drainer.Changes{} }
func (stillFeed) Follow(cluster.JobKey)   {}
func (stillFeed) Unfollow(cluster.JobKey) {}
func (stillFeed) Close()                  {}
