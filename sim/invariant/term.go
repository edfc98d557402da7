package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// term is the judge's record of one drainer's term.
type term struct {
	options        *Options
	server, number int
	ended          bool
	// offset is how far the clock is ahead of the world's.
	offset time.Duration
	// clockSet means that the clock was set while the term ran. setAt is the world's time of the
	// last change since the last step, or zero.
	clockSet bool
	setAt    time.Time
	// sequence counts the term's proposals.
	sequence int
	writes   map[int]*write // proposed and not answered, by N
	// inFlight counts the entries among the writes, and sent their items.
	inFlight int
	sent     map[item]int
	// fresh are the writes that were proposed since the last step.
	fresh []*write

	// needsBarrier means that the term may plan nothing before a barrier is applied: it is new,
	// or the outcome of a write is unknown. barrierAfter is the number of that write. Only a
	// later barrier counts.
	needsBarrier bool
	barrierAfter int
	// minIndex is the lowest index of a state that includes all answers.
	minIndex uint64
	// failed are the items of failed writes that the term has not proposed again.
	failed map[item]bool

	// failures counts the rounds that failed in a row. refused counts the refusals of each
	// item, reevaluated the requested evaluations of each group. Each delays only its own item
	// or group.
	failures    attempts
	refused     map[refusedItem]attempts
	reevaluated map[cluster.GroupKey]attempts
	// round is the newest round.
	round round
	// lastWrite is when the last round of entries began, by the drainer's clock, or zero.
	lastWrite time.Time
	// answers holds the answers for its next step.
	answers answers

	last steps
	// quiet holds its reports at the last quiet point.
	quiet lastReports
}

// refusedItem is a mark of a drain, or its end if alloc is empty.
type refusedItem struct {
	drain cluster.DrainID
	alloc cluster.AllocID
}

// round is the proposals of one step: entries, or a barrier. Several failed entries of a round
// count as one failure.
type round struct{ barrier, failed bool }

// answers holds the answers that a drainer received since its last step.
type answers struct {
	any                    bool
	failed                 bool // an entry or a barrier
	entryFull, barrierFull bool // the log had no room
	items                  []refusedItem
	reevaluated            []cluster.GroupKey
}

// ahead is how far the drainer's clock is ahead of the world's, if it was reported.
func (t *term) ahead() time.Duration {
	if t == nil {
		return 0
	}
	return t.offset
}

// clockCheck is the interval at which a waiting drainer checks its clock.
const clockCheck = 30 * time.Second

// missedClockSet reports whether the drainer may have missed that its clock was set. Its timer does
// not follow the clock. Until the drainer checks the clock or steps, it wakes as if the clock had
// not been set, even if the clock is right again.
func (t *term) missedClockSet(now time.Time) bool {
	return !t.setAt.IsZero() && now.Before(t.setAt.Add(clockCheck))
}

func (j *facts) begin(server, number int) *term {
	t := &term{
		options: &j.options, server: server, number: number, needsBarrier: true,
		writes: make(map[int]*write), sent: make(map[item]int), failed: make(map[item]bool),
		refused: make(map[refusedItem]attempts), reevaluated: make(map[cluster.GroupKey]attempts),
	}
	t.last.tokens = j.options.burst()
	j.terms[number] = t
	return t
}

// term returns the term with that number.
func (j *facts) term(number int) *term {
	if t := j.terms[number]; t != nil {
		return t
	}
	return j.begin(0, number)
}

// clock is the time on the term's clock, if it was reported.
func (j *facts) clock(t *term) time.Time { return j.now.Add(t.ahead()) }

// viewIsOld reports whether the last state that the term read misses one of its answers.
func (t *term) viewIsOld() bool { return t.last.view == nil || t.last.view.Index() < t.minIndex }

// upToDate reports whether the drainer has acted on everything in the state, at a time on its
// clock. It may still have to wait for its next read of the state. held means that the world
// delays the drainer.
func (t *term) upToDate(now, clock time.Time, held bool) bool {
	switch {
	case held || !t.last.any || t.ended || t.needsBarrier || t.inFlight > 0 || len(t.writes) > 0 || t.answers.any:
		return false
	case t.awaitsState(clock), t.missedClockSet(now), t.failures.waits(t.options, clock):
		return false
	}
	return t.options.MinInterval <= 0 || !clock.Before(t.lastWrite.Add(t.options.MinInterval))
}

// awaitsRead reports whether the term may wait, at a time, until the rate allows another read.
func (t *term) awaitsRead(clock time.Time) bool {
	return !t.last.wakeAt.IsZero() && !t.last.wakeAt.After(clock.Add(t.readWait()))
}

// readWait is how long the term may wait for its next read. Each time the clock was set back, the
// term may have lost a granted read.
func (t *term) readWait() time.Duration {
	return time.Duration(1+t.last.setBack) * t.options.query()
}

// awaitsState reports whether the term waits for a state that includes all its answers. No event
// may announce that state, so the term must have set a time for its next read.
func (t *term) awaitsState(clock time.Time) bool {
	wakeAt := t.last.wakeAt
	return t.viewIsOld() && !wakeAt.IsZero() && !wakeAt.After(clock.Add(t.options.RetryBase))
}

// waits reports whether the term may wait with an item after a refusal.
func (t *term) waits(clock time.Time, item refusedItem) bool {
	return t.refused[item].waits(t.options, clock)
}

// reevaluates reports whether the term need not request an evaluation of a group: its last
// request is in flight, or recent.
func (t *term) reevaluates(clock time.Time, key cluster.GroupKey) bool {
	return t.sent[groupItem(key)] > 0 || t.reevaluated[key].waits(t.options, clock)
}

// marksFor reports whether a mark of that drain on the allocation is in flight. A mark of an
// earlier drain does not count, because it does not date the reason of the present drain.
func (t *term) marksFor(id cluster.AllocID, drain cluster.DrainID) bool {
	for _, p := range t.writes { //lint:order each write by itself
		for _, subject := range items(p.Message) {
			if subject.Alloc == id && subject.Drain == drain {
				return true
			}
		}
	}
	return false
}

// arrive records that the items of a write are no longer in flight.
func (t *term) arrive(m shims.Message) {
	for i := range items(m) {
		if t.sent[i]--; t.sent[i] <= 0 {
			delete(t.sent, i)
		}
	}
}

// fail records that the items of a write failed or have an unknown outcome.
func (t *term) fail(m shims.Message) {
	for i := range items(m) {
		t.failed[i] = true
	}
}

// processAnswers counts the answers that the drainer processes in a step, at a time on its clock.
func (t *term) processAnswers(clock time.Time) {
	n := &t.answers
	answered := len(t.writes) == len(t.fresh) // all writes of earlier steps have an answer
	switch {
	case n.failed && !t.round.failed:
		t.round.failed = true
		t.failures.fail(clock)
	case n.any && answered && !t.round.failed && !t.round.barrier:
		t.failures = attempts{}
	}
	for _, item := range n.items {
		a := t.refused[item]
		a.fail(clock)
		t.refused[item] = a
	}
	for _, key := range n.reevaluated {
		a := t.reevaluated[key]
		a.fail(clock)
		t.reevaluated[key] = a
	}
	*n = answers{entryFull: n.entryFull, barrierFull: n.barrierFull, items: n.items[:0], reevaluated: n.reevaluated[:0]}
}

// proposesEntries reports whether the step proposed entries, even if the log had no room.
func (t *term) proposesEntries() bool {
	return t.answers.entryFull || len(t.fresh) > 0 && !t.fresh[0].barrier
}

// beginRound records the round of a step, if the step began one. A round fails at once if the log
// has no room. A step that read the state and proposed nothing ends the retries.
func (t *term) beginRound(s Step, queried, waits bool) {
	switch {
	case len(t.fresh) > 0:
		t.round = round{barrier: t.fresh[0].barrier}
	case t.answers.entryFull, t.answers.barrierFull:
		t.round = round{barrier: t.answers.barrierFull}
		t.failures.fail(s.Clock)
	case queried && !waits:
		t.failures = attempts{}
	}
	t.answers.entryFull, t.answers.barrierFull = false, false
	t.fresh = t.fresh[:0]
}

// stalls reports whether, at a time, the drainer logs a write that has had no answer for long.
func (t *term) stalls(w time.Time) bool {
	//lint:order the answer is the same for any of them
	for _, p := range t.writes {
		if w.Equal(p.clock.Add(stalledAfter)) {
			return true
		}
	}
	return false
}

// attempts counts failures in a row. The zero value has none.
type attempts struct {
	count int
	at    time.Time // of the last failure, by the drainer's clock
}

func (a *attempts) fail(clock time.Time) { a.count, a.at = a.count+1, clock }

// retryAfter is how long a drainer waits after the nth failure in a row: RetryBase after
// the first, twice as long after each further one, at most RetryMax.
func (o *Options) retryAfter(n int) time.Duration {
	wait := o.RetryBase
	for ; n > 1 && wait < o.RetryMax; n-- {
		wait *= 2
	}
	return min(wait, o.RetryMax)
}

// until is when the wait after the last failure ends, or zero if nothing has failed.
func (a attempts) until(o *Options) time.Time {
	if a.count == 0 {
		return time.Time{}
	}
	return a.at.Add(o.retryAfter(a.count))
}

// waits reports whether the next attempt has to wait. A clock that was set back to before
// the last failure ends the wait.
func (a attempts) waits(o *Options, clock time.Time) bool {
	return a.count > 0 && !clock.Before(a.at) && clock.Before(a.until(o))
}

// mayEnd reports whether the wait after the last failure may end at a time. The drainer forgets
// the failures of an item that it did not write for a while, so it may have counted fewer.
func (a attempts) mayEnd(o *Options, at time.Time) bool {
	for n := 1; n <= a.count; n++ {
		wait := o.retryAfter(n)
		if at.Equal(a.at.Add(wait)) {
			return true
		}
		if wait >= o.RetryMax {
			return false
		}
	}
	return false
}

// ClockSet reports how far the clock of a term's server is ahead of the world's from now on.
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
		j.ends.resetBounds()
	}
}

// Began reports the start of a drainer's term. Each term has its own number. A drainer that lost
// its memory starts a new term, too.
func (j *Judge) Began(now time.Time, server, number int) {
	j.now = now
	j.events++
	j.leader = j.begin(server, number)
	j.ends.resetBounds()
}

// Ended reports the end of a term: its drainer stops.
func (j *Judge) Ended(now time.Time, number int) {
	j.now = now
	j.term(number).ended = true
}

// Proposed judges a write. The caller passes it during the step that proposes it.
func (j *Judge) Proposed(now time.Time, w Write) {
	j.now = now
	j.events++
	t := j.term(w.Term)
	t.sequence++
	p := &write{Write: w, sequence: t.sequence, barrier: w.Message == nil}
	if t.ended {
		j.find(WroteAfterTerm, Violation{}, "term %d of server %d proposed a write after its end", t.number, t.server)
	}
	j.writes.checkPlan(t, p)
	j.writes.checkSize(w)
	j.writes.checkOrder(w)
	j.writes.checkEvalsProposed(w)
	t.writes[w.N] = p
	t.fresh = append(t.fresh, p)
	if p.barrier {
		return
	}
	if t.inFlight++; t.inFlight > j.options.MaxInFlight {
		j.find(TooManyInFlight, Violation{}, "%d entries are in flight, the maximum is %d", t.inFlight, j.options.MaxInFlight)
	}
	j.writes.send(t, p)
}

// NotTaken reports a write for which the log had no room.
func (j *Judge) NotTaken(now time.Time, w Write) {
	j.now = now
	j.events++
	t := j.term(w.Term)
	t.answers.entryFull = t.answers.entryFull || w.Message != nil
	t.answers.barrierFull = t.answers.barrierFull || w.Message == nil
	t.fail(w.Message)
}

// Answered judges the answer to a write when the drainer's side receives it.
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
		t.arrive(p.Message)
	}
	switch {
	case a.Outcome != raftwrite.Applied:
		if a.Outcome == raftwrite.Unknown && !p.barrier {
			t.needsBarrier, t.barrierAfter = true, max(t.barrierAfter, p.sequence)
		}
		t.answers.any, t.answers.failed = true, true
		t.fail(p.Message)
	case p.barrier:
		if t.needsBarrier && p.sequence > t.barrierAfter {
			t.needsBarrier = false
		}
		t.minIndex = max(t.minIndex, a.Index)
	default:
		t.minIndex = max(t.minIndex, a.Index)
		j.writes.receive(t, p, a)
	}
}

// Step is one step of a drainer.
type Step struct {
	Term int
	// Clock is the time on the drainer's clock.
	Clock time.Time
	// Woken means that an event woke the drainer. Otherwise the drainer's timer did.
	Woken bool
	// View is the state that the drainer read, or nil. Queries counts its reads.
	View    *statestore.Snapshot
	Queries int
	// WakeAt is the time for the drainer's next step, or zero.
	WakeAt time.Time
	// Held means that the world hides the newest state from the drainer. So it may wait for
	// something that is no longer due.
	Held bool
}

// steps is the judge's record of a term's last steps.
type steps struct {
	any bool
	// at is the world's time of the last step, clock the drainer's time.
	at, clock time.Time
	wakeAt    time.Time
	// view is the last state that the drainer read, or nil.
	view *statestore.Snapshot
	// idle counts the steps at one time without another event. events is the number of events
	// at that time.
	idle   int
	events uint64
	// tokens are the reads that the rate allows now. setBack counts how often the clock was set
	// back. Each time, the drainer may lose a granted read.
	tokens  float64
	setBack int
	// own means that wakeAt follows from the drainer's own actions.
	own bool
}

// Stepped judges a step at its end.
func (j *Judge) Stepped(now time.Time, s Step) {
	j.now = now
	j.latest = later(j.latest, s.Clock)
	t := j.term(s.Term)
	index := uint64(0)
	if s.View != nil {
		index = s.View.Index()
	}
	j.wakes.checkQueries(t, s)
	j.wakes.checkWake(t, s)
	t.processAnswers(s.Clock)
	j.writes.checkFresh(t, s, index)
	j.wakes.checkEndless(t)
	if t.last.any && s.Clock.Before(t.last.clock) {
		t.last.setBack++
	}
	t.last.any, t.last.at, t.last.clock, t.last.wakeAt = true, now, s.Clock, s.WakeAt
	if s.View != nil {
		t.last.view = s.View
	}
	t.last.own = j.wakes.follows(t, s)
	j.ClockSet(now, s.Term, s.Clock.Sub(now))
	t.setAt = time.Time{}
	j.ends.findLate(now)
}
