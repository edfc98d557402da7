package world

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"

	alarms "github.com/seed-f9cf0b39/nodedrain/cluster/alarm"
)

// Kind is the kind of a step.
type Kind uint8

// The kinds of steps.
const (
	// Scripted runs a function of [Loop.At].
	Scripted Kind = iota
	// Log applies or fails the next write in the queue of the raft log.
	Log
	// Drainer steps the drainer of a server.
	Drainer
	// Scheduler steps the leader's scheduler.
	Scheduler
	// Clients steps the clients of all nodes.
	Clients
	// Collector steps the leader's search for ended work.
	Collector
	// Volumes steps the leader's work for claims of volumes.
	Volumes
	// Confirmer steps the leader's confirmations of the ends of lost allocations.
	Confirmer

	// KindCount is the number of kinds.
	KindCount
)

// String returns the name of the kind in traces.
func (k Kind) String() string {
	names := [KindCount]string{"scripted", "log", "drainer", "scheduler", "clients", "collector", "volumes", "confirmer"}
	if k >= KindCount {
		return "unknown kind"
	}
	return names[k]
}

// actor is a part of the world that the loop steps.
type actor interface {
	// nextStep returns the time at which the actor needs its next step: a time at or before
	// now after a wake-up, and zero if the actor needs no step.
	nextStep(now time.Time) time.Time
	step() error
}

// slot is an actor with the time of its next step. The loop steps an actor only after a wake-up
// or when its timer is due. So a forgotten wake-up in product code stays visible.
type slot struct {
	number int // from 1, over all slots that were ever added
	actor  actor
	kind   Kind
	// next is the event of the actor's next step, or nil.
	next *event
}

// Loop holds the virtual time and the queue of events, and runs one event per step.
type Loop struct {
	now      time.Time
	seed     uint64
	maxSteps int
	// ties are the streams of the ties, one for each kind of event.
	ties  [KindCount]*rand.Rand
	queue queue
	slots []*slot
	added int // the number of slots that were ever added
	steps int
	// kind is the kind of the last step. cause is the step that queued it.
	kind  Kind
	cause int
	// entries is the length of the raft log.
	entries func() int
	// failure ends the run after the current step, unless it is nil.
	failure error
	hash    hash
	counts  stepCounts
	onStep  func(step int) error
	offered int // the number of the last step for which onStep was called
	onQuiet func() error
	onStill func() error
	// silentSince is the time of the last step that was not a step of the clients.
	silentSince time.Time
	onSilence   func() error
}

func newLoop(o Options, entries func() int) *Loop {
	l := &Loop{now: o.Begin, silentSince: o.Begin, seed: o.Seed, maxSteps: o.MaxSteps, entries: entries}
	for k := range KindCount {
		l.ties[k] = Stream(o.Seed, "tie/"+k.String())
	}
	return l
}

// Now is the world's virtual time.
func (l *Loop) Now() time.Time { return l.now }

// Steps is the number of steps so far.
func (l *Loop) Steps() int { return l.steps }

// Step returns the kind of the last step, and the number of the step that caused it. The cause
// of a write is the step that proposed it. The cause of a drainer's step is the step that woke
// the drainer or set its timer. Zero is the time before the first step.
func (l *Loop) Step() (k Kind, cause int) { return l.kind, l.cause }

// Hash is the hash of all steps, entries and strikes so far. Equal scripts and seeds have
// equal hashes on every machine.
func (l *Loop) Hash() uint64 { return uint64(l.hash) }

// OnStep sets a function. The loop calls it before every step, with the number of steps so far.
// The function may change the world, for example by an election.
func (l *Loop) OnStep(f func(step int) error) { l.onStep = f }

// OnQuiet sets a function. The loop calls it when no event is left at the current time, before
// the time moves on.
func (l *Loop) OnQuiet(f func() error) { l.onQuiet = f }

// OnStill sets a function. The loop calls it at the end of every pause of five seconds or more:
// right before the next event, or right before the limit. The function must not change the world.
func (l *Loop) OnStill(f func() error) { l.onStill = f }

// OnSilence sets a function like that of OnStill, for pauses in which only clients take steps. What
// they do reaches the servers through the log: until then nothing has happened there.
func (l *Loop) OnSilence(f func() error) { l.onSilence = f }

// At queues a function for a time, which must not be before now. Without a seed, the functions
// of one time run in the order of the calls.
func (l *Loop) At(at time.Time, do func() error) {
	l.queue.push(&event{at: at, tie: l.tie(Scripted), kind: Scripted, cause: l.steps, do: do})
}

// Run runs events until none is left, or until the limit. At the limit, idle is false and the
// time is the limit.
func (l *Loop) Run(limit time.Time) (idle bool, err error) {
	for {
		l.queueSlots()
		e := l.queue.next()
		if e == nil || e.at.After(l.now) {
			if l.onQuiet != nil {
				if err := l.onQuiet(); err != nil {
					return false, l.located(err)
				}
			}
			if l.queueSlots(); l.queue.next() != e {
				continue // onQuiet queued an event or woke an actor
			}
		}
		until := limit
		if e != nil {
			until = sooner(e.at, limit)
		}
		if err := l.still(until, e == nil || e.at.After(limit) || e.kind != Clients); err != nil {
			return false, l.located(err)
		}
		switch {
		case e == nil:
			return true, nil
		case e.at.After(limit):
			l.now = limit
			return false, nil
		}
		l.now = later(l.now, e.at)
		if err := l.step(e); err != nil {
			return false, l.located(err)
		}
	}
}

func (l *Loop) located(err error) error {
	return fmt.Errorf("at %s, step %d: %w", l.now.Sub(Epoch), l.steps, err)
}

// stillAfter is the shortest pause after which onStill and onSilence are called.
const stillAfter = 5 * time.Second

// still calls onStill if the next event is far away, and onSilence if it ends a long silence.
// During the calls the time is right before that event, so that every deadline that passes during
// the pause has passed.
func (l *Loop) still(until time.Time, endsSilence bool) error {
	defer func(now time.Time) { l.now = now }(l.now)
	isStill := until.Sub(l.now) >= stillAfter
	l.now = until.Add(-1)
	if l.onStill != nil && isStill {
		if err := l.onStill(); err != nil {
			return err
		}
	}
	if l.onSilence != nil && endsSilence && until.Sub(l.silentSince) >= stillAfter {
		return l.onSilence()
	}
	return nil
}

// step runs the next event.
func (l *Loop) step(e *event) error {
	if l.onStep != nil && l.offered <= l.steps {
		l.offered = l.steps + 1 // once for each step, even if another event is next then
		if err := l.onStep(l.steps); err != nil {
			return err
		}
		if l.queueSlots(); l.queue.next() != e {
			return nil
		}
	}
	if l.steps++; l.steps > l.maxSteps {
		return fmt.Errorf("%w, more than %d: %s", ErrTooManySteps, l.maxSteps, &l.counts)
	}
	l.counts.kinds[e.kind]++
	l.queue.remove(e)
	l.kind, l.cause = e.kind, e.cause
	if e.kind != Clients {
		l.silentSince = l.now
	}
	l.hash.add(uint64(l.now.Sub(Epoch)), uint64(e.kind), uint64(l.entries()))
	if e.slot == nil {
		l.counts.endStreak()
		return errors.Join(e.do(), l.failure)
	}
	l.hash.add(uint64(e.slot.number))
	e.slot.next = nil
	return errors.Join(e.slot.actor.step(), l.failure)
}

// queueSlots reads the time of the next step of every actor, and queues an event for each
// actor whose time has changed.
func (l *Loop) queueSlots() {
	for _, s := range l.slots {
		at := s.actor.nextStep(l.now)
		if !at.IsZero() && at.Before(l.now) {
			at = l.now
		}
		if s.next == nil && at.IsZero() || s.next != nil && at.Equal(s.next.at) {
			continue
		}
		l.unqueue(s)
		if !at.IsZero() {
			s.next = &event{at: at, tie: l.tie(s.kind), kind: s.kind, cause: l.steps, slot: s}
			l.queue.push(s.next)
		}
	}
}

// unqueue removes the event of an actor.
func (l *Loop) unqueue(s *slot) {
	if s.next != nil {
		l.queue.remove(s.next)
		s.next = nil
	}
}

func (l *Loop) add(k Kind, a actor) {
	l.added++
	l.slots = append(l.slots, &slot{number: l.added, actor: a, kind: k})
}

func (l *Loop) drop(a actor) {
	for i, s := range l.slots {
		if s.actor == a {
			l.unqueue(s)
			l.slots = append(l.slots[:i:i], l.slots[i+1:]...)
			return
		}
	}
}

// tie draws the tie of an event. Without a seed it is zero, so events of one time run in
// the order in which they were queued. Each kind has its own stream, so that an additional
// event of one kind does not reorder the events of the others.
func (l *Loop) tie(k Kind) uint64 {
	if l.seed == 0 {
		return 0
	}
	return l.ties[k].Uint64()
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func sooner(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// event is one future step.
type event struct {
	at time.Time
	// tie orders the events of one time. The loop draws it from the seed when it queues the
	// event. So different seeds give different orders, and one seed always gives the same.
	tie uint64
	// sequence keeps events of equal time and tie in the order in which they were queued.
	sequence uint64
	kind     Kind
	// cause is the step that queued the event.
	cause int
	// slot is the slot of the actor to step, or nil.
	slot *slot
	// do is the function to run, if slot is nil.
	do func() error
}

// Compare orders the events of one time.
func (e *event) Compare(o *event) int {
	return cmp.Or(cmp.Compare(e.tie, o.tie), cmp.Compare(e.sequence, o.sequence))
}

// queue holds events, ordered by time, tie and sequence.
type queue struct {
	events alarms.Heap[*event]
	pushed uint64
}

func (q *queue) push(e *event) {
	q.pushed++
	e.sequence = q.pushed
	q.events.Set(e, e.at)
}

// next returns the first event, or nil. The event stays in the queue.
func (q *queue) next() *event { return q.events.FirstKey() }

func (q *queue) remove(e *event) { q.events.Remove(e) }

// ErrTooManySteps is the error of a world that has reached [Options].MaxSteps; see [Loop.Livelocked].
var ErrTooManySteps = errors.New("too many steps")

// stepCounts counts the steps of a world. A streak is a sequence of drainers' steps without an
// event that no drainer caused.
type stepCounts struct {
	kinds [KindCount]int
	// streak is the number of steps in the current streak. excess is the number of steps in the
	// whole run that were beyond the first maxStreak steps of their streak.
	streak, excess int
}

// maxStreak is the number of steps of a streak that correct drainers may take: a step follows
// each answer, each new state and each timer.
const maxStreak = 20

// drainerStep counts a step of a drainer.
func (c *stepCounts) drainerStep() {
	if c.streak++; c.streak > maxStreak {
		c.excess++
	}
}

// endStreak notes an event that no drainer caused: a write of another source, a strike of a
// fault, or a scripted step.
func (c *stepCounts) endStreak() { c.streak = 0 }

// String returns the counts as text for an error message.
func (c *stepCounts) String() string {
	var parts []string
	for k, n := range c.kinds {
		parts = append(parts, fmt.Sprintf("%s %d", Kind(k), n))
	}
	return fmt.Sprintf("%s; %d drainer steps with no other event", strings.Join(parts, ", "), c.excess)
}

// Livelocked reports whether a drainer causes its own next step again and again: excess steps are
// more than one of livelockDivisor of all steps. Frequent faults alone are no livelock, because
// each strike ends a streak.
func (l *Loop) Livelocked() bool { return l.counts.excess > l.steps/livelockDivisor }

// livelockDivisor makes more than a quarter of all steps a livelock. A drainer that wakes itself
// by its writes takes half of all steps, and the log takes the other half. A drainer that wakes
// itself by its timer takes all steps.
const livelockDivisor = 4

// hash is a running hash of numbers and bytes.
type hash uint64

// prime is the 64-bit prime of FNV-1a.
const prime = 1099511628211

func (h *hash) add(numbers ...uint64) {
	for _, n := range numbers {
		*h = (*h ^ hash(n)) * prime
		*h ^= *h >> 29 // otherwise the high bits of a number would not change the low bits of the hash
	}
}

func (h *hash) bytes(b []byte) {
	f := fnv.New64a()
	_, _ = f.Write(b) // a hash accepts every write
	h.add(f.Sum64())
}
