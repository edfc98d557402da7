package drainer

import (
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// writer is a term's outgoing side: what is in flight, when the next round may
// begin, and whether the state must first be read behind a barrier. It belongs
// to Step, but for its inbox.
//
// Writes go out in rounds. The first goes out at once; while one is in flight,
// what becomes due is gathered and leaves in the next. So batches grow with the
// load, and nothing waits when there is none.
type writer struct {
	raft     RaftApplier
	backoff  backoff
	interval time.Duration // least time between rounds
	inbox    inbox

	inFlight int
	// marks are the allocations whose marks are in flight, with their nodes, groups
	// those whose re-evaluation is, nodes those whose completion is.
	marks  map[cluster.AllocID]cluster.NodeID
	groups map[cluster.GroupKey]bool
	nodes  map[cluster.NodeID]bool

	// failed counts the writes that failed in a row; no round begins before
	// failed.until. lastError is why the last failed, or nil.
	failed    attempts
	lastError error
	// lastRound is when the last round began, roundFailed that a write of it
	// failed.
	lastRound   time.Time
	roundFailed bool

	// behind says that the state must be read behind a barrier before anything
	// is planned: the term is new, or the outcome of a write is unknown.
	behind bool
	// asking says that a barrier is in flight; asked spaces those that fail.
	asking bool
	asked  attempts
	// minIndex is the least index of a view that shows all that was answered.
	minIndex uint64
}

// answered is the answer to one entry; to a barrier if the entry is nil.
type answered struct {
	entry  *entry // or nil
	answer Answer
}

// inbox holds answers until the next step takes them.
type inbox struct {
	mu      sync.Mutex
	answers []answered // guarded by mu
}

func (b *inbox) post(a answered) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers = append(b.answers, a)
}

func (b *inbox) take() []answered {
	b.mu.Lock()
	defer b.mu.Unlock()
	answers := b.answers
	b.answers = nil
	return answers
}

func newWriter(c NodeDrainerConfig) *writer {
	return &writer{
		raft:     c.Raft,
		backoff:  backoff{base: c.RetryBase, max: c.RetryMax},
		interval: c.MinWriteInterval,
		marks:    map[cluster.AllocID]cluster.NodeID{},
		groups:   map[cluster.GroupKey]bool{},
		nodes:    map[cluster.NodeID]bool{},
		behind:   true,
	}
}

// settle takes in one answer.
func (w *writer) settle(a answered, now time.Time) {
	if a.entry == nil {
		w.settleBarrier(a.answer, now)
		return
	}
	w.inFlight--
	for _, wish := range a.entry.wishes {
		if wish.reevaluate {
			delete(w.groups, wish.mark.Group)
		} else {
			delete(w.marks, wish.mark.Alloc)
		}
	}
	for _, c := range a.entry.completions {
		delete(w.nodes, c.Node)
	}
	switch a.answer.Outcome {
	case Applied:
		w.minIndex = max(w.minIndex, a.answer.Index)
	case Rejected:
		w.fail(a.answer.Err, now)
	default:
		w.fail(a.answer.Err, now)
		w.behind = true
	}
	if w.inFlight == 0 && !w.roundFailed {
		w.failed, w.lastError = attempts{}, nil
	}
}

// fail counts a failure: one for each round, however many of its writes fail.
func (w *writer) fail(err error, now time.Time) {
	w.lastError = err
	if !w.roundFailed {
		w.roundFailed = true
		w.failed.failed(w.backoff, now)
	}
}

func (w *writer) settleBarrier(a Answer, now time.Time) {
	w.asking = false
	if a.Outcome == Applied {
		w.behind, w.asked = false, attempts{}
		if w.failed.count == 0 {
			w.lastError = nil
		}
		w.minIndex = max(w.minIndex, a.Index)
		return
	}
	w.asked.failed(w.backoff, now)
	w.lastError = a.Err
}

// confirm asks for a barrier if one is needed and none is in flight. It reports
// whether planning may go on, and if not, when to try again; zero for when there
// is an answer.
func (w *writer) confirm(now time.Time, reply Reply) (ready bool, wakeAt time.Time) {
	switch {
	case !w.behind:
		return true, time.Time{}
	case w.asking:
		return false, time.Time{}
	case !w.asked.wait(now).IsZero():
		return false, w.asked.until
	case w.raft.Barrier(reply):
		w.asking = true
		return false, time.Time{}
	}
	w.asked.failed(w.backoff, now)
	return false, w.asked.until
}

// sends returns what reports whether a mark of an allocation is in flight, or nil if no
// write is.
func (w *writer) sends() func(cluster.AllocID) bool {
	if w.inFlight == 0 {
		return nil
	}
	return w.sent
}

// sent reports whether a mark of the allocation is in flight.
func (w *writer) sent(id cluster.AllocID) bool {
	_, is := w.marks[id]
	return is
}

// mayBegin reports whether a round may begin, and if not, when; zero for when
// there is an answer.
func (w *writer) mayBegin(now time.Time) (bool, time.Time) {
	if w.inFlight > 0 {
		return false, time.Time{}
	}
	at := w.failed.wait(now)
	if next := w.lastRound.Add(w.interval); !now.Before(w.lastRound) && now.Before(next) {
		at = latest(at, next)
	}
	return at.IsZero(), at
}

// open begins a round.
func (w *writer) open(now time.Time) { w.lastRound, w.roundFailed = now, false }

// begin begins one write and reports whether there was room for it.
func (w *writer) begin(e *entry, marks *Marks, completions *Completions, reply Reply) bool {
	queued := false
	if marks != nil {
		queued = w.raft.AllocUpdateDesiredTransition(marks, reply)
	} else {
		queued = w.raft.NodesDrainComplete(completions, reply)
	}
	if !queued {
		return false
	}
	w.inFlight++
	for _, wish := range e.wishes {
		if wish.reevaluate {
			w.groups[wish.mark.Group] = true
		} else {
			w.marks[wish.mark.Alloc] = wish.mark.Node
		}
	}
	for _, c := range e.completions {
		w.nodes[c.Node] = true
	}
	return true
}
