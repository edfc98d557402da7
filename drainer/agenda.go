package drainer

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster/alarm"
)

// agenda holds the nodes or groups to plan, now or later. The zero value is empty.
type agenda[K alarm.Key[K]] struct {
	due   map[K]struct{}
	later alarm.Heap[K]
}

// Now makes the key due: the next Take returns it.
func (a *agenda[K]) Now(key K) {
	if a.due == nil {
		a.due = map[K]struct{}{}
	}
	a.due[key] = struct{}{}
}

// At makes the key due at a time, which replaces its earlier time. Zero removes the time.
func (a *agenda[K]) At(key K, at time.Time) { a.later.Wake(key, at) }

// Drop removes the key.
func (a *agenda[K]) Drop(key K) {
	delete(a.due, key)
	a.later.Remove(key)
}

// Ring makes keys due whose time has come.
func (a *agenda[K]) Ring(now time.Time) {
	for key, rings := a.later.PopFirst(now); rings; key, rings = a.later.PopFirst(now) {
		a.Now(key)
	}
}

// Pending reports whether a key is due.
func (a *agenda[K]) Pending() bool { return len(a.due) > 0 }

// Has reports whether the key is due at a time.
func (a *agenda[K]) Has(key K, now time.Time) bool {
	_, due := a.due[key]
	at := a.later.At(key)
	return due || (!at.IsZero() && !now.Before(at))
}

// Take returns the keys that are due, in order, and removes them with their times. A caller that
// plans a key sets its next time.
func (a *agenda[K]) Take() []K {
	keys := make([]K, 0, len(a.due))
	for key := range a.due { //lint:order the keys are sorted below, and the heap orders equal times by key
		keys = append(keys, key)
		a.later.Remove(key)
	}
	a.due = nil
	slices.SortFunc(keys, func(a, b K) int { return a.Compare(b) })
	return keys
}

// First is the earliest time of a key that is not due yet, or zero.
func (a *agenda[K]) First() time.Time { return a.later.First() }
