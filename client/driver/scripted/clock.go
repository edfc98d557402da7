package scripted

import (
	"container/heap"
	"time"
)

// Clock is the time of a [Machine].
type Clock interface {
	// Now returns the present time. It never goes back.
	Now() time.Time
	// After runs do once the duration is over, and not before After returns. Functions of one time
	// may run in any order. A duration of zero or less is as soon as possible. The function that After
	// returns takes the request back. It has no effect once do has run.
	After(d time.Duration, do func()) (cancel func())
}

// Never is longer than anything lasts.
const Never time.Duration = 1<<63 - 1

// after runs do once the duration is over; with [Never] it does not.
func after(clock Clock, d time.Duration, do func()) {
	if d != Never {
		clock.After(d, do)
	}
}

// after runs do once the duration is over, unless the process ends before; with [Never] it does not.
func (p *process) after(clock Clock, d time.Duration, do func()) {
	if d != Never && !p.row.Ended {
		p.ended = append(p.ended, clock.After(d, do))
	}
}

// agenda holds functions by the time at which they run. Functions of one time run in the order in
// which they were added.
type agenda struct {
	entries []agendaEntry
	added   uint64
}

type agendaEntry struct {
	at       time.Time
	sequence uint64
	do       func()
}

var _ heap.Interface = (*agenda)(nil)

func (a *agenda) add(at time.Time, do func()) {
	a.added++
	heap.Push(a, agendaEntry{at: at, sequence: a.added, do: do})
}

// due removes and returns the next function that has a time of now or before, or nil.
func (a *agenda) due(now time.Time) func() {
	if len(a.entries) == 0 || a.entries[0].at.After(now) {
		return nil
	}
	return heap.Pop(a).(agendaEntry).do
}

func (a *agenda) Len() int      { return len(a.entries) }
func (a *agenda) Swap(i, j int) { a.entries[i], a.entries[j] = a.entries[j], a.entries[i] }

func (a *agenda) Less(i, j int) bool {
	if c := a.entries[i].at.Compare(a.entries[j].at); c != 0 {
		return c < 0
	}
	return a.entries[i].sequence < a.entries[j].sequence
}

func (a *agenda) Push(x any) { a.entries = append(a.entries, x.(agendaEntry)) }

func (a *agenda) Pop() any {
	last := a.entries[len(a.entries)-1]
	a.entries[len(a.entries)-1] = agendaEntry{}
	a.entries = a.entries[:len(a.entries)-1]
	return last
}
