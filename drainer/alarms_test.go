package drainer

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

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// ring is one key's time in the twin of alarms: a slice that is sorted whenever
// somebody asks.
type ring struct {
	key cluster.NodeID
	at  time.Time
}

func sortedRings(times map[cluster.NodeID]time.Time) []ring {
	var rings []ring
	for _, key := range slices.Sorted(maps.Keys(times)) {
		rings = append(rings, ring{key, times[key]})
	}
	slices.SortStableFunc(rings, func(a, b ring) int { return a.at.Compare(b.at) })
	return rings
}

func anyKey(t *rapid.T) cluster.NodeID {
	return cluster.NodeID(fmt.Sprintf("n%d", rapid.IntRange(0, 12).Draw(t, "key")))
}

func anyTime(t *rapid.T) time.Time { return epoch.Add(seconds(t, 0, 30, "at")) }

func TestAlarms_AgreeWithSortedSlice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var got alarms[cluster.NodeID]
		want := map[cluster.NodeID]time.Time{}
		for range rapid.IntRange(1, 25).Draw(t, "moves") {
			switch key, at := anyKey(t), anyTime(t); rapid.IntRange(0, 5).Draw(t, "move") {
			case 0, 1:
				got.set(key, at)
				want[key] = at
			case 2:
				got.wake(key, at)
				want[key] = at
			case 3:
				got.wake(key, time.Time{})
				delete(want, key)
			case 4:
				got.remove(key)
				delete(want, key)
			case 5:
				var due []cluster.NodeID
				for _, r := range sortedRings(want) {
					if !r.at.After(at) {
						due = append(due, r.key)
						delete(want, r.key)
					}
				}
				slices.Sort(due)
				must.Eq(t, due, got.pop(at))
			}
			checkAlarms(t, want, &got, anyTime(t))
		}
	})
}

func checkAlarms(t *rapid.T, want map[cluster.NodeID]time.Time, got *alarms[cluster.NodeID], closing time.Time) {
	rings := sortedRings(want)
	if len(rings) != got.len() || len(rings) != len(got.index) {
		t.Fatalf("%d are kept and %d indexed, want %d", got.len(), len(got.index), len(rings))
	}
	for i, a := range got.queue {
		if a.position != i || !a.at.Equal(want[a.key]) || got.index[a.key] != a {
			t.Fatalf("%+v is at %d, want %+v", *a, i, want[a.key])
		}
	}
	first, last := time.Time{}, time.Time{}
	for i, r := range rings {
		if i == 0 {
			first, last = r.at, r.at
		}
		if r.at.Before(closing) {
			last = r.at
		}
	}
	if !got.first().Equal(first) || !got.lastBefore(closing).Equal(last) {
		t.Fatalf("first %v, last before %v %v; want %v and %v", got.first(), closing, got.lastBefore(closing), first, last)
	}
}

// The batch of a window costs a look at what is in the window. Everything below
// its first miss is taken away here: to look there would panic.
func TestAlarms_LastBeforeLooksNoFurtherThanItMust(t *testing.T) {
	t.Parallel()
	const inWindow, all = 10, 10_000
	var s alarms[cluster.NodeID]
	for i := range all {
		at := epoch.Add(time.Hour + time.Duration(i)*time.Second)
		if i < inWindow {
			at = epoch.Add(time.Duration(i) * time.Millisecond)
		}
		s.set(cluster.NodeID(fmt.Sprintf("n%05d", i)), at)
	}
	window := epoch.Add(250 * time.Millisecond)
	visible := map[int]bool{0: true}
	for i, a := range s.queue {
		if a.at.Before(window) {
			visible[2*i+1], visible[2*i+2] = true, true
		}
	}
	for i := range s.queue {
		if !visible[i] {
			s.queue[i] = nil
		}
	}
	must.Eq(t, epoch.Add((inWindow-1)*time.Millisecond), s.lastBefore(window))
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

// A change costs the logarithm of what is kept: with equal times every
// comparison asks the keys.
func TestAlarms_CostOfAChange(t *testing.T) {
	t.Parallel()
	const all = 1 << 14
	count := 0
	var s alarms[compared]
	for i := range all {
		s.set(compared{i, &count}, epoch)
	}
	for _, i := range []int{0, 1, all / 2, all - 1} {
		count = 0
		s.set(compared{i, &count}, epoch)
		s.remove(compared{i, &count})
		s.set(compared{i, &count}, epoch)
		must.Less(t, 12*bits.Len(all), count)
	}
}
