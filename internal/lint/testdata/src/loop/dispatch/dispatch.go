// Package dispatch is a fixture: the ways by which a step reaches code that it
// does not name.
package dispatch

import (
	"container/heap"
	"fmt"
	"hash"
	"io"
	"iter"
	"time"
)

type port interface{ Send() }

type bad struct{}

func (*bad) Send() { time.Sleep(1) } // want "time.Sleep waits.*dispatch.T.Step → dispatch.bad.Send"

type good struct{}

func (good) Send() {}

type embeds struct{ *bad }

type unrelated struct{}

func (unrelated) Send(int) { time.Sleep(1) }

// Set has a generic method.
type Set[V any] struct{ v V }

func (s *Set[V]) get() V {
	time.Sleep(1) // want "time.Sleep waits"
	return s.v
}

type getter[V any] interface{ get() V }

// T decides.
type T struct {
	port     port
	set      Set[int]
	assigned func()
	literal  func()
	injected func() time.Time
	unused   func()
	boundary func() time.Time
	stranger stranger
	sum      hash.Hash32
	h        hidden
}

// slow is a writer, but no hash.
type slow struct{}

func (slow) Write([]byte) (int, error) {
	time.Sleep(1)
	return 0, nil
}

type stranger interface{ Speak() }

type loud struct{}

func (loud) Speak() { time.Sleep(1) }

func notLookedInto() { time.Sleep(1) }

func (t *T) excused() {
	time.Sleep(1)
	_ = time.Now() // want "time.Now reads the clock"
}

// New fills the fields that Step calls.
func New(injected func() time.Time) *T {
	t := &T{
		port:     embeds{&bad{}},
		literal:  func() { time.Sleep(1) }, // want "time.Sleep waits.*dispatch.T.Step → dispatch.T.literal"
		injected: injected,
		unused:   func() { time.Sleep(1) },
		boundary: time.Now,
	}
	t.assigned = nap
	return t
}

func nap() { time.Sleep(1) } // want "time.Sleep waits.*dispatch.T.assigned → dispatch.nap"

// Step is where the walk begins.
func (t *T) Step(now time.Time) (wakeAt time.Time) {
	t.port.Send()
	t.set.get()
	t.assigned()
	t.literal()
	t.injected()
	t.boundary()
	for v := range sequence() {
		_ = v
	}
	heap.Push(&t.h, 1)
	_ = fmt.Sprint(shown{})
	t.excused()
	_ = t.sum.Sum32()
	_, _ = t.sum.Write(nil)          // want "Writer\).Write belongs to the package"
	_, _ = io.WriteString(t.sum, "") // want "io.WriteString belongs to the package"
	t.stranger.Speak()
	notLookedInto()
	onlyMentioned := mentioned
	_ = onlyMentioned
	return generic[*Set[int]](&t.set, now)
}

func generic[G getter[int]](g G, now time.Time) time.Time {
	g.get()
	return now
}

func sequence() iter.Seq[int] {
	return func(yield func(int) bool) {
		time.Sleep(1) // want "time.Sleep waits.*dispatch.sequence"
		yield(1)
	}
}

func mentioned() { time.Sleep(1) } // want "time.Sleep waits.*dispatch.mentioned"

type hidden []int

func (h hidden) Len() int           { return len(h) }
func (h hidden) Less(i, j int) bool { time.Sleep(1); return h[i] < h[j] } // want "time.Sleep waits.*dispatch.hidden.Less"
func (h hidden) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *hidden) Push(x any)        { *h = append(*h, x.(int)) }
func (h *hidden) Pop() any          { return nil }

type shown struct{}

func (shown) String() string {
	time.Sleep(1) // want "time.Sleep waits.*dispatch.shown.String"
	return ""
}
