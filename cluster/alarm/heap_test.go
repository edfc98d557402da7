//race:skip one goroutine
package alarm

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// name is a key.
type name string

func (n name) Compare(o name) int { return cmp.Compare(n, o) }

// ring is one key's time in the twin of a heap: a slice that is sorted for every answer.
type ring struct {
	key name
	at  time.Time
}

// twin is a heap that consists of a map.
type twin map[name]time.Time

// sorted returns its times, the earliest first, and equal times by key.
func (w twin) sorted() []ring {
	var rings []ring
	for _, key := range slices.Sorted(maps.Keys(w)) {
		rings = append(rings, ring{key, w[key]})
	}
	slices.SortStableFunc(rings, func(a, b ring) int { return a.at.Compare(b.at) })
	return rings
}

// pop removes and returns the keys that are due, at most so many.
func (w twin) pop(now time.Time, most int) (due []name) {
	for _, r := range w.sorted() {
		if !r.at.After(now) && len(due) < most {
			due = append(due, r.key)
			delete(w, r.key)
		}
	}
	return due
}

func anyKey(t *rapid.T) name {
	return name(fmt.Sprintf("n%d", rapid.IntRange(0, 12).Draw(t, "key")))
}

func anySpan(t *rapid.T) time.Duration {
	return time.Duration(rapid.IntRange(0, 30).Draw(t, "seconds")) * time.Second
}

func anyTime(t *rapid.T) time.Time { return epoch.Add(anySpan(t)) }

// moves applies the same changes to a heap and its twin, and compares them.
func moves(t *rapid.T) {
	var got Heap[name]
	want := twin{}
	for range rapid.IntRange(1, 25).Draw(t, "moves") {
		switch key, at := anyKey(t), anyTime(t); rapid.IntRange(0, 7).Draw(t, "move") {
		case 0, 1:
			got.Set(key, at)
			want[key] = at
		case 2:
			got.Wake(key, at)
			want[key] = at
		case 3:
			got.Wake(key, time.Time{})
			delete(want, key)
		case 4:
			got.Remove(key)
			delete(want, key)
		case 5:
			due := want.pop(at, len(want))
			slices.Sort(due)
			must.Eq(t, due, got.Pop(at))
		case 6:
			due := want.pop(at, 1)
			if key, is := got.PopFirst(at); is {
				must.Eq(t, due, []name{key})
			} else {
				must.SliceEmpty(t, due)
			}
		case 7:
			by := anySpan(t) - 15*time.Second
			got.Shift(by)
			for key := range want {
				want[key] = want[key].Add(by)
			}
		}
		compare(t, want, &got, anyTime(t))
	}
}

func compare(t *rapid.T, want twin, got *Heap[name], closing time.Time) {
	rings := want.sorted()
	if len(rings) != got.Len() || len(rings) != len(got.index) {
		t.Fatalf("%d are kept and %d indexed, want %d", got.Len(), len(got.index), len(rings))
	}
	for i, a := range got.queue {
		if a.position != i || !a.at.Equal(want[a.key]) || got.index[a.key] != a {
			t.Fatalf("%+v is at %d, want %+v", *a, i, want[a.key])
		}
	}
	first, last, key := time.Time{}, time.Time{}, name("")
	for i, r := range rings {
		if i == 0 {
			first, last, key = r.at, r.at, r.key
		}
		if r.at.Before(closing) {
			last = r.at
		}
	}
	if got.FirstKey() != key {
		t.Fatalf("the first key is %q, want %q", got.FirstKey(), key)
	}
	if !got.First().Equal(first) || !got.LastBefore(closing).Equal(last) {
		t.Fatalf("first %v, last before %v %v; want %v and %v", got.First(), closing, got.LastBefore(closing), first, last)
	}
}

func TestHeap_AgreesWithSortedSlice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, moves)
}

func FuzzHeap(f *testing.F) { f.Fuzz(rapid.MakeFuzz(moves)) }

// LastBefore reads the times in the window and their children only. The test removes everything
// below, so a read there would panic.
func TestHeap_LastBeforeReadsNoFurtherThanItMust(t *testing.T) {
	t.Parallel()
	const inWindow, all = 10, 10_000
	var h Heap[name]
	for i := range all {
		at := epoch.Add(time.Hour + time.Duration(i)*time.Second)
		if i < inWindow {
			at = epoch.Add(time.Duration(i) * time.Millisecond)
		}
		h.Set(name(fmt.Sprintf("n%05d", i)), at)
	}
	window := epoch.Add(250 * time.Millisecond)
	visible := map[int]bool{0: true}
	for i, a := range h.queue {
		if a.at.Before(window) {
			visible[2*i+1], visible[2*i+2] = true, true
		}
	}
	for i := range h.queue {
		if !visible[i] {
			h.queue[i] = nil
		}
	}
	must.Eq(t, epoch.Add((inWindow-1)*time.Millisecond), h.LastBefore(window))
	must.Less(t, 2*inWindow+2, len(visible))
}

// compared is a key that counts how often it is compared.
type compared struct {
	id    int
	count *int
}

func (c compared) Compare(o compared) int {
	*c.count++
	return cmp.Compare(c.id, o.id)
}

// A change costs the logarithm of the number of keys. With equal times every comparison compares
// keys.
func TestHeap_CostOfAChange(t *testing.T) {
	t.Parallel()
	const all = 1 << 14
	count := 0
	var h Heap[compared]
	for i := range all {
		h.Set(compared{i, &count}, epoch)
	}
	for _, i := range []int{0, 1, all / 2, all - 1} {
		count = 0
		h.Set(compared{i, &count}, epoch)
		h.Remove(compared{i, &count})
		h.Set(compared{i, &count}, epoch)
		must.Less(t, 12*bits.Len(all), count)
	}
}
