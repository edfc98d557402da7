package drainer

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/inbox"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// StalledAfter is how long a write may be without an answer, or the applier's queue without room,
// before the drainer logs it and Explain shows it.
const StalledAfter = 30 * time.Second

// unreachedAfter is how long the state may be without the index of an answer. It is shorter: an
// entry is answered when it is in the state, so that no correct applier needs the time.
const unreachedAfter = 10 * time.Second

// errNoRoom is the answer to requested items that do not fit into a round.
var errNoRoom = errors.New("the applier has no room for the write, or the round is full")

// outbox writes in rounds of entries. The first round begins immediately. While a round is in
// flight, nothing is planned. Items that become due are written in the next round. So entries grow
// with the load, and without load nothing waits.
type outbox struct {
	logger *slog.Logger
	config NodeDrainerConfig
	wake   func()
	inbox  inbox.Inbox[answered]

	// round is the newest round.
	round round
	// lastWrite is when the last round of writes began. A barrier does not change it.
	lastWrite time.Time
	// failures counts consecutive failed rounds. No round begins before its wait is over.
	// lastError is the last failure, or nil.
	failures  attempts
	lastError error
	// behind means that the next round is a barrier, and nothing is planned before it: the term is
	// new, or the outcome of a write is unknown.
	behind bool
	// minIndex is the least index of a view that shows all answered writes. lagSince is the time
	// since which no view has had it, or zero, and lagIndex the index of the last view without it.
	minIndex uint64
	lagSince time.Time
	lagIndex uint64
	// noRoomSince is the time since which the applier has had no room for any write, or zero.
	noRoomSince time.Time
	// stallLogged means that the stall of this round, or of the queue, was logged.
	stallLogged bool
}

// round is a set of entries that are in flight together.
type round struct {
	began    time.Time
	inFlight int
	failed   bool
	// marks are the round's marks that are not applied, in flight or not.
	marks map[cluster.AllocID]rules.PendingMark
}

// writes are what a step writes. Each slice is in order.
type writes struct {
	marks       []rules.Mark
	reevaluate  []cluster.GroupKey
	completions []rules.Completion
}

func (w writes) empty() bool { return len(w.marks)+len(w.reevaluate)+len(w.completions) == 0 }

// entry is one write: items, or a barrier.
type entry struct {
	writes
	barrier bool
	// reply receives the answer to the requested marks and evaluations; or nil.
	reply func(DrainReply)
	// closed means that the entry was answered, or never queued. A later answer is an error of the
	// applier.
	closed bool
}

// answered is the answer to one entry.
type answered struct {
	entry  *entry
	answer Answer
}

// answerRequest passes the answer to the job watcher, if the entry has items of its request.
func (e *entry) answerRequest(a Answer, now time.Time) {
	r := DrainReply{Answer: a, At: now, Reevaluated: e.reevaluate}
	for _, m := range e.marks {
		if !rules.PlannedWithNode(m.Class) {
			r.Marks = append(r.Marks, m)
		}
	}
	if e.reply != nil && len(r.Marks)+len(r.Reevaluated) > 0 {
		e.reply(r)
	}
}

// settle applies the answers in the inbox, and returns those to entries in flight.
func (o *outbox) settle(now time.Time) []answered {
	var settled []answered
	for _, a := range o.inbox.Take() {
		if a.entry.closed {
			o.logger.Error("the applier answered a write twice, or one that it did not queue: the answer is ignored", "outcome", a.answer.Outcome)
			continue
		}
		a.entry.closed = true
		o.settleEntry(a, now)
		settled = append(settled, a)
	}
	return settled
}

func (o *outbox) settleEntry(a answered, now time.Time) {
	if o.round.inFlight--; o.round.inFlight == 0 {
		o.stallLogged = false
	}
	if a.answer.Outcome == raftwrite.Applied {
		o.minIndex = max(o.minIndex, a.answer.Index)
		o.behind = o.behind && !a.entry.barrier
		for _, m := range a.entry.marks {
			delete(o.round.marks, m.Alloc)
		}
	} else {
		o.flag(a.entry.marks, false)
		o.fail(a, now)
	}
	if o.round.inFlight == 0 && !o.round.failed && !a.entry.barrier {
		o.failures, o.lastError = attempts{}, nil
	}
}

// flag notes whether marks of the round are in flight.
func (o *outbox) flag(marks []rules.Mark, inFlight bool) {
	for _, m := range marks {
		mark := o.round.marks[m.Alloc]
		mark.InFlight = inFlight
		o.round.marks[m.Alloc] = mark
	}
}

// fail counts a failed round. Further failed entries of the round do not count.
func (o *outbox) fail(a answered, now time.Time) {
	o.lastError = a.answer.Err
	if !o.round.failed {
		o.round.failed = true
		o.failures.failed(o.config.Retry, now)
	}
	if a.answer.Outcome != raftwrite.Rejected {
		o.behind = true
	}
	o.logger.Warn("raft write failed", "outcome", a.answer.Outcome, "error", a.answer.Err, "barrier", a.entry.barrier,
		"marks", len(a.entry.marks), "completions", len(a.entry.completions), "attempt", o.failures.count)
}

// ready reports whether a round of writes may begin. If not, it returns when to retry, or zero if
// it waits for an answer. It begins a barrier if one is needed.
func (o *outbox) ready(now time.Time) (bool, time.Time) {
	o.logStall(now)
	at := o.failures.wait(now)
	next := o.lastWrite.Add(o.config.MinWriteInterval)
	if !o.behind && !now.Before(o.lastWrite) && now.Before(next) && at.Before(next) {
		at = next
	}
	switch {
	case o.round.inFlight > 0 && o.stallLogged:
		return false, time.Time{}
	case o.round.inFlight > 0:
		return false, o.round.began.Add(StalledAfter)
	case !at.IsZero() || !o.behind:
		return at.IsZero(), at
	}
	o.round = round{began: now, marks: o.round.marks}
	if !o.send(&entry{barrier: true}, Reading{Now: now}) {
		return false, o.noRoom(now)
	}
	return false, now.Add(StalledAfter)
}

// stall is what the outbox has waited for too long. The zero value is nothing.
type stall struct {
	why   string
	since time.Time
	// unreached means that the state has not reached the index of an answer.
	unreached bool
}

// stalled returns what has waited too long: an answer, room, or a state that shows an answered
// write.
func (o *outbox) stalled(now time.Time) stall {
	late := func(since time.Time, limit time.Duration) bool { return !since.IsZero() && now.Sub(since) >= limit }
	switch {
	case o.round.inFlight > 0 && late(o.round.began, StalledAfter):
		return stall{since: o.round.began, why: fmt.Sprintf("%d of the newest writes have had no answer since %s",
			o.round.inFlight, o.round.began.Format(time.RFC3339))}
	case late(o.noRoomSince, StalledAfter):
		return stall{since: o.noRoomSince, why: "the applier has had no room for a write since " + o.noRoomSince.Format(time.RFC3339)}
	case late(o.lagSince, unreachedAfter):
		return stall{since: o.lagSince, unreached: true, why: fmt.Sprintf("the applier has answered a write with index %d, "+
			"and since %s the state has not reached it: it has index %d", o.minIndex, o.lagSince.Format(time.RFC3339), o.lagIndex)}
	}
	return stall{}
}

// logStall logs a stall once.
func (o *outbox) logStall(now time.Time) {
	s := o.stalled(now)
	switch {
	case s.why == "" || o.stallLogged:
		return
	case s.unreached:
		o.logger.Warn("the drainer waits for the index of an answer, which the state does not reach: the applier must answer with the index "+
			"of the write's own entry, and a barrier with the index of the state, not with the log's applied index",
			"answered", o.minIndex, "state", o.lagIndex, "since", s.since)
	default:
		o.logger.Error("the drainer cannot write", "why", s.why)
	}
	o.stallLogged = true
}

// shown reports whether a view shows all answered writes.
func (o *outbox) shown(v rules.View, now time.Time) bool {
	o.lagIndex = v.Index()
	switch lags := o.lagIndex < o.minIndex; {
	case lags && o.lagSince.IsZero():
		o.lagSince = now
	case !lags && !o.lagSince.IsZero():
		o.lagSince, o.stallLogged = time.Time{}, false
	}
	return o.lagSince.IsZero()
}

// begin begins a round of writes, within the bounds and the applier's room. If the applier had no
// room for any entry, it returns when to retry, otherwise zero. Items without room are answered
// with errNoRoom.
func (o *outbox) begin(w writes, reading Reading, request func(DrainReply)) time.Time {
	before := o.round.marks
	if w.empty() {
		o.round.marks, o.failures, o.lastError = nil, attempts{}, nil
		o.noRoomSince, o.stallLogged = time.Time{}, false
		return time.Time{}
	}
	o.lastWrite = reading.Now
	o.round = round{began: reading.Now, marks: make(map[cluster.AllocID]rules.PendingMark, len(w.marks))}
	for _, m := range w.marks {
		mark := rules.PendingMark{Drain: m.Drain, Since: reading.Now}
		if earlier, is := before[m.Alloc]; is && earlier.Drain == m.Drain && !reading.Deferred {
			mark.Since = earlier.Since
		}
		o.round.marks[m.Alloc] = mark
	}
	full := false
	for _, part := range w.cut(o.config.MaxIDsPerEntry, o.config.MaxBytesPerEntry) {
		e := &entry{writes: part, reply: request}
		full = full || o.round.inFlight >= o.config.MaxInFlight || !o.send(e, reading)
		if full {
			e.answerRequest(Answer{Outcome: raftwrite.Rejected, Err: errNoRoom}, reading.Now)
		}
	}
	if full && o.round.inFlight == 0 {
		return o.noRoom(reading.Now)
	}
	return time.Time{}
}

// noRoom counts a round for which the applier had no room, and returns when to retry.
func (o *outbox) noRoom(now time.Time) time.Time {
	o.failures.failed(o.config.Retry, now)
	o.lastError = errNoRoom
	return o.failures.until
}

// send begins the write of one entry, and reports whether the applier had room for it.
func (o *outbox) send(e *entry, reading Reading) (queued bool) {
	c := o.config
	reply := func(a Answer) {
		o.inbox.Post(answered{entry: e, answer: a})
		o.wake()
	}
	switch {
	case e.barrier:
		queued = c.Raft.Barrier(reply)
	case len(e.completions) > 0:
		queued = c.Raft.NodesDrainComplete(&rules.Completions{At: reading.Now, Policy: c.Policy, Completions: e.completions}, reply)
	default:
		marks := &rules.Marks{At: reading.Now, Policy: c.Policy, Marks: e.marks, Reevaluate: e.reevaluate}
		marks.Evals = evalsFor(reading.View, e.writes, reading.Now, c.NewEvalID)
		queued = c.Raft.AllocUpdateDesiredTransition(marks, reply)
	}
	switch {
	case queued:
		o.round.inFlight++
		o.noRoomSince, o.stallLogged = time.Time{}, false
		o.flag(e.marks, true)
	case o.noRoomSince.IsZero():
		o.noRoomSince = reading.Now
	}
	e.closed = !queued
	return queued
}

// report returns the writes for Explain. deferred means that the state has changed since the last
// read. Then marks that are not in flight are left out, because their Since may be outdated.
func (o *outbox) report(now time.Time, deferred bool) rules.TermState {
	stalled := o.stalled(now)
	s := rules.TermState{
		Marks: maps.Clone(o.round.marks), Barrier: o.behind,
		Attempts: o.failures.count, LastError: o.lastError, Stalled: stalled.why, StalledSince: stalled.since,
	}
	maps.DeleteFunc(s.Marks, func(_ cluster.AllocID, m rules.PendingMark) bool { return deferred && !m.InFlight })
	return s
}
