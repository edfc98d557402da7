package world

import (
	"slices"
	"time"
)

// script is what is to be done from outside, and when.
type script struct {
	world *World
	// events are in order of time; those of one time in the order in which they
	// were added.
	events []event
}

type event struct {
	at time.Time
	do func() error
}

// At has something done at a time, which must not have passed.
func (w *World) At(at time.Time, do func() error) {
	s := &w.script
	i, _ := slices.BinarySearchFunc(s.events, at, func(e event, at time.Time) int {
		if e.at.After(at) {
			return 1
		}
		return -1
	})
	s.events = slices.Insert(s.events, i, event{at: at, do: do})
}

func (s *script) ready() bool { return len(s.events) > 0 && !s.world.now.Before(s.events[0].at) }

func (s *script) due() time.Time {
	if len(s.events) == 0 {
		return time.Time{}
	}
	return s.events[0].at
}

func (s *script) step() error {
	e := s.events[0]
	s.events = s.events[1:]
	return e.do()
}
