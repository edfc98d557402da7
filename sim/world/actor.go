package world

import "time"

// Kind says what is done in a step of a world.
type Kind uint8

// The kinds of steps.
const (
	// Scripted is what is done from outside.
	Scripted Kind = iota
	// Log settles a write.
	Log
	// Drainer steps a server's drainer.
	Drainer
	// Scheduler steps the leader's scheduler.
	Scheduler
	// Clients steps the clients of all nodes.
	Clients

	// KindCount is how many kinds there are.
	KindCount
)

// String returns the kind as traces show it.
func (k Kind) String() string {
	names := [KindCount]string{"scripted", "log", "drainer", "scheduler", "clients"}
	if k >= KindCount {
		return "unknown kind"
	}
	return names[k]
}

// actor is one who is stepped.
type actor interface {
	// wants is when it wants to be stepped, not before now if it was woken; zero is
	// never.
	wants(now time.Time) time.Time
	step() error
}

// slot is an actor's place in the queue. Nobody is stepped but who was woken or is
// due, so that a wake-up that somebody forgot to send shows as a world that stands
// still.
type slot struct {
	number int // of the slots that there ever were, from 1
	actor  actor
	kind   Kind
	// at is when the actor is to be stepped; zero is never.
	at time.Time
	// generation counts how often that has changed: events of an older one are void.
	generation uint64
}

// queueSlots asks every actor when it wants to be stepped.
func (w *World) queueSlots() {
	for _, s := range w.slots {
		at := s.actor.wants(w.now)
		if !at.IsZero() && at.Before(w.now) {
			at = w.now
		}
		if at.Equal(s.at) && at.IsZero() == s.at.IsZero() {
			continue
		}
		s.at = at
		s.generation++
		if !at.IsZero() {
			w.queue.push(&event{at: at, tie: w.tie(s.kind), kind: s.kind, cause: w.steps, slot: s, generation: s.generation})
		}
	}
}

// add gives an actor a place in the queue.
func (w *World) add(k Kind, a actor) {
	w.added++
	w.slots = append(w.slots, &slot{number: w.added, actor: a, kind: k})
}

// drop takes an actor out.
func (w *World) drop(a actor) {
	for i, s := range w.slots {
		if s.actor == a {
			s.generation++ // its event is void
			w.slots = append(w.slots[:i:i], w.slots[i+1:]...)
			return
		}
	}
}

// tie draws the tie of an event. Without a seed there is none: first come, first
// served. Each kind has a stream of its own, so that one event more or less of one
// kind does not reorder the others.
func (w *World) tie(k Kind) uint64 {
	if w.options.Seed == 0 {
		return 0
	}
	return w.ties[k].Uint64()
}
