package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Write is one write that a drainer proposed: marks, ends of drains, or a barrier.
type Write struct {
	// Term is the drainer's term, N tells the write from the term's others.
	Term, N int
	// Message is what was proposed, nil for a barrier.
	Message shims.Message
	// Bytes is the size of the entry; zero for a barrier.
	Bytes int
}

// Step is one step of a drainer.
type Step struct {
	Term int
	// Clock is the time the drainer was given.
	Clock time.Time
	// Woken says that somebody asked for the step: it is not for a time that the
	// drainer had named.
	Woken bool
	// View is the state that it looked at, or nil if it did not look. Looks is how
	// many it looked at.
	View  *statestore.Snapshot
	Looks int
	// WakeAt is when it wants its next step, or zero.
	WakeAt time.Time
	// Held says that the newest state, or the news of it, is kept from the drainer:
	// what it waits for may have gone.
	Held bool
}

// term is what the judge knows of one drainer's term.
type term struct {
	server, number int
	ended          bool
	// offset is how far the clock is ahead of the world's.
	offset time.Duration
	// clockSet says that the clock was set while the term ran. setAt is when it was last set
	// since the last step, by the world's time, or zero.
	clockSet bool
	setAt    time.Time
	// sequence counts the term's proposals.
	sequence int
	writes   map[int]*write // proposed and not answered, by N
	// inFlight counts the entries among them; marks, groups and ends are their
	// items.
	inFlight int
	marks    map[cluster.AllocID]int
	groups   map[cluster.GroupKey]int
	ends     map[cluster.NodeID]int
	// fresh are the writes that were proposed since the last step.
	fresh []*write

	// owes says that nothing may be planned before a barrier is applied that was
	// proposed after the proposal of that number: the term is new, or the outcome
	// of a write is unknown.
	owes      bool
	owesSince int
	// minIndex is the least index of a state that shows all that was answered.
	minIndex uint64
	// failed are the allocations whose marks were in a write that failed, and which
	// were not proposed again; failedEnds the same of nodes.
	failed     map[cluster.AllocID]bool
	failedEnds map[cluster.NodeID]bool

	// failedEntry is when the first entry of a round failed, from which the round is
	// tried again; failedBarrier is when the last barrier did. Zero is never.
	failedEntry, failedBarrier instant
	// failure is when a write last failed or was not taken, refusal when something was
	// last refused, reevaluation when a group was last evaluated again. All are by the
	// drainer's clock; zero is never.
	failure, refusal, reevaluation time.Time
	// refused is when each item was last refused: only that item may wait.
	refused     map[refusedItem]time.Time
	reevaluated map[cluster.GroupKey]time.Time
	// round is when the last round of writes began, roundFailed says that an entry of
	// it has failed. A clock that is set makes the times say nothing of that.
	round       time.Time
	roundFailed bool
	// news is what it was told and takes in with its next step.
	news news

	last steps
	// quiet is what it said at the last quiet point.
	quiet heard
}

// refusedItem is a mark, or a completion if alloc is empty, that a drain wanted.
type refusedItem struct {
	drain cluster.DrainID
	alloc cluster.AllocID
}

// instant is a time of the world and what the drainer's clock shows then. Neither is enough:
// a clock that is set back shows a time twice, and one that is set takes no time.
type instant struct{ world, clock time.Time }

func (i instant) equal(o instant) bool { return i.world.Equal(o.world) && i.clock.Equal(o.clock) }

// news is what a drainer was told since its last step.
type news struct {
	any                     bool
	entry, barrier, refused bool
	full                    bool // the log had no room
	items                   []refusedItem
	reevaluated             []cluster.GroupKey
}

// steps is what the judge knows of a term's last steps.
type steps struct {
	any bool
	// at is the world's time of the last, clock the drainer's.
	at, clock time.Time
	wakeAt    time.Time
	// view is the newest state it has looked at, or nil.
	view *statestore.Snapshot
	// idle counts the steps at the same time without anything else happening;
	// events is what had happened by then.
	idle   int
	events uint64
	// tokens are the looks that the rate leaves. setBack counts how often the clock
	// was set back: each time, a look that was granted is lost. backAt is what it last
	// was set back to, or zero.
	tokens  float64
	setBack int
	backAt  time.Time
}

// write is one that was proposed.
type write struct {
	Write
	sequence int
	barrier  bool
	// seen is the index of the state that it was planned from, known once the step
	// has ended.
	seen uint64
	// clock is the drainer's time of the step, known once the step has ended.
	clock time.Time
}

// ahead is how far the drainer's clock is ahead of the world's, as far as is known.
func (t *term) ahead() time.Duration {
	if t == nil {
		return 0
	}
	return t.offset
}

// clockCheck is how often a drainer that waits for a time looks at its clock.
const clockCheck = 30 * time.Second

// unseen reports whether the drainer may not know that its clock was set. Its timer does not
// follow the clock: until the drainer looks at the clock or steps, it wakes as if the clock
// had not been set, even if the clock is right again by now.
func (t *term) unseen(now time.Time) bool {
	return !t.setAt.IsZero() && now.Before(t.setAt.Add(clockCheck))
}

// ClockSet tells how far the clock of the server on which a term runs is ahead of
// the world's from now on.
func (j *Judge) ClockSet(now time.Time, number int, ahead time.Duration) {
	j.now = now
	t := j.term(number)
	if t.offset == ahead {
		return
	}
	t.offset, t.clockSet = ahead, t.last.any
	if t.last.any {
		t.setAt = now
	}
	if t == j.leader {
		j.rebound()
	}
}

// Began tells of the beginning of a drainer's term: terms have numbers of their
// own. A drainer that has lost all it remembered begins one, too.
func (j *Judge) Began(now time.Time, server, number int) {
	j.now = now
	j.events++
	j.leader = j.begin(server, number)
	j.rebound()
}

func (j *Judge) begin(server, number int) *term {
	t := &term{
		server: server, number: number, owes: true,
		writes: make(map[int]*write), marks: make(map[cluster.AllocID]int), groups: make(map[cluster.GroupKey]int),
		ends: make(map[cluster.NodeID]int), failed: make(map[cluster.AllocID]bool), failedEnds: make(map[cluster.NodeID]bool),
		refused:     make(map[refusedItem]time.Time),
		reevaluated: make(map[cluster.GroupKey]time.Time),
	}
	t.last.tokens = j.burst()
	j.terms[number] = t
	return t
}

// Ended tells that a term has ended: its drainer was told to stop.
func (j *Judge) Ended(now time.Time, number int) {
	j.now = now
	j.term(number).ended = true
}

// term returns the term of that number.
func (j *Judge) term(number int) *term {
	if t := j.terms[number]; t != nil {
		return t
	}
	return j.begin(0, number)
}

// Proposed judges a write when a drainer proposes it, in the step that does.
func (j *Judge) Proposed(now time.Time, w Write) {
	j.now = now
	j.events++
	j.counters.Writes++
	t := j.term(w.Term)
	t.sequence++
	p := &write{Write: w, sequence: t.sequence, barrier: w.Message == nil}
	if t.ended {
		j.find(WroteAfterTerm, Violation{}, "term %d of server %d proposed although it had ended", t.number, t.server)
	}
	j.checkPlan(t, p)
	j.checkSize(w)
	j.checkOrder(w)
	t.writes[w.N] = p
	t.fresh = append(t.fresh, p)
	if p.barrier {
		return
	}
	if t.inFlight++; t.inFlight > j.options.MaxInFlight {
		j.find(TooManyInFlight, Violation{}, "%d entries are in flight, and %d may be", t.inFlight, j.options.MaxInFlight)
	}
	j.launch(t, p)
}

// NotTaken tells of a write that the log had no room for.
func (j *Judge) NotTaken(now time.Time, w Write) {
	j.now = now
	j.events++
	t := j.term(w.Term)
	j.fail(t, w.Message)
	if w.Message != nil {
		t.news.entry, t.news.full = false, true // it may be taken at any moment
	}
}

// Answered judges the answer to a write when the drainer's side is told of it.
func (j *Judge) Answered(now time.Time, number, n int, a shims.Answer) {
	j.now = now
	j.events++
	t := j.term(number)
	p := t.writes[n]
	if p == nil {
		return
	}
	delete(t.writes, n)
	if !p.barrier {
		t.inFlight--
		t.land(p.Message)
	}
	switch {
	case a.Outcome != raftwrite.Applied:
		if a.Outcome == raftwrite.Unknown && !p.barrier {
			t.owes, t.owesSince = true, max(t.owesSince, p.sequence)
		}
		j.counters.Failures++
		j.fail(t, p.Message)
	case p.barrier:
		if t.owes && p.sequence > t.owesSince {
			t.owes = false
		}
		t.minIndex = max(t.minIndex, a.Index)
	default:
		t.minIndex = max(t.minIndex, a.Index)
		j.settle(t, p, a)
	}
}

// launch notes the items of a write that is in flight from now on.
func (j *Judge) launch(t *term, p *write) {
	marks, reevaluate, ends := items(p.Message)
	for _, m := range marks {
		delete(t.failed, m.Alloc)
		if t.marks[m.Alloc]++; t.marks[m.Alloc] > 1 {
			j.find(SentTwice, Violation{Drain: m.Drain, Node: m.Node, Alloc: m.Alloc, Group: m.Group}, "its mark is in flight already")
		}
	}
	for _, key := range reevaluate {
		t.groups[key]++
	}
	for _, c := range ends {
		delete(t.failedEnds, c.Node)
		if t.ends[c.Node]++; t.ends[c.Node] > 1 {
			j.find(SentTwice, Violation{Drain: c.Drain, Node: c.Node}, "its end is in flight already")
		}
	}
}

// marksFor reports whether a mark of the allocation is in flight that the drain wanted. The
// leader does not know since when a mark of an earlier drain is one of a later drain.
func (t *term) marksFor(id cluster.AllocID, drain cluster.DrainID) bool {
	for _, p := range t.writes { //lint:order each write by itself
		marks, _, _ := items(p.Message)
		for _, m := range marks {
			if m.Alloc == id && m.Drain == drain {
				return true
			}
		}
	}
	return false
}

// land notes that the items of a write are in flight no longer.
func (t *term) land(m shims.Message) {
	marks, reevaluate, ends := items(m)
	for _, m := range marks {
		if t.marks[m.Alloc]--; t.marks[m.Alloc] <= 0 {
			delete(t.marks, m.Alloc)
		}
	}
	for _, key := range reevaluate {
		if t.groups[key]--; t.groups[key] <= 0 {
			delete(t.groups, key)
		}
	}
	for _, c := range ends {
		if t.ends[c.Node]--; t.ends[c.Node] <= 0 {
			delete(t.ends, c.Node)
		}
	}
}

// clock is the time on the term's clock, as far as it is known.
func (j *Judge) clock(t *term) time.Time { return j.now.Add(t.ahead()) }

// fail notes that what a write carries was not written, or may not have been.
func (j *Judge) fail(t *term, m shims.Message) {
	t.news.any = true
	if m == nil {
		t.news.barrier = true
		return
	}
	t.news.entry = true
	marks, _, ends := items(m)
	for _, m := range marks {
		t.failed[m.Alloc] = true
	}
	for _, c := range ends {
		t.failedEnds[c.Node] = true
	}
}

// settle notes what an applied write came to.
func (j *Judge) settle(t *term, p *write, a shims.Answer) {
	marks, reevaluate, ends := items(p.Message)
	t.news.any = true
	t.news.reevaluated = append(t.news.reevaluated, reevaluate...)
	var refused []rules.Refusal
	switch r := a.Response.(type) {
	case shims.MarksApplied:
		refused = r.Refused
	case shims.CompletionsApplied:
		refused = r.Refused
	}
	for _, r := range refused {
		t.news.refused = true
		for _, m := range marks {
			if m.Alloc == r.Alloc {
				t.news.items = append(t.news.items, refusedItem{m.Drain, m.Alloc})
			}
		}
		for _, c := range ends {
			if c.Node == r.Node {
				t.news.items = append(t.news.items, refusedItem{drain: c.Drain})
			}
		}
	}
	if before, idle := j.idle[a.Index]; idle {
		delete(j.idle, a.Index)
		if p.seen == before && p.seen != 0 {
			j.find(IdleWrite, Violation{}, "entry %d was refused in part by the very state that it was planned from", a.Index)
		}
	}
}

// failRound notes the first failure of an entry of the last round, if it is news. It
// comes before what was proposed since, which is of the round after.
func (t *term) failRound(at instant) {
	if t.news.entry && !t.roundFailed {
		t.roundFailed, t.failedEntry = true, at
	}
}

// beginRound notes a round of writes.
func (t *term) beginRound(clock time.Time) { t.round, t.roundFailed = clock, false }

// takeIn dates what the drainer was told by the step in which it hears of it.
func (t *term) takeIn(at instant) {
	clock := at.clock
	n := &t.news
	if n.entry || n.barrier || n.full {
		t.failure = clock
	}
	if n.barrier {
		t.failedBarrier = at
	}
	if n.refused {
		t.refusal = clock
	}
	for _, item := range n.items {
		t.refused[item] = clock
	}
	for _, key := range n.reevaluated {
		t.reevaluated[key], t.reevaluation = clock, clock
	}
	*n = news{items: n.items[:0], reevaluated: n.reevaluated[:0]}
}
