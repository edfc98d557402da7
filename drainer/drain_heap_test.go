package drainer

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
)

func anyKey(t *rapid.T) cluster.NodeID {
	return cluster.NodeID(fmt.Sprintf("n%d", rapid.IntRange(0, 12).Draw(t, "key")))
}

func newNotifier(window time.Duration) *deadlineHeap {
	return NewDeadlineHeap(Env{DeadlineCoalesce: window}).(*deadlineHeap)
}

// batchOf is the offered batch, or nil.
func batchOf(h *deadlineHeap) []cluster.NodeID {
	select {
	case batch := <-h.NextBatch():
		return batch
	default:
		return nil
	}
}

// stepAt steps the notifier and returns its batch and the time of its next step.
func stepAt(h *deadlineHeap, now time.Time) ([]cluster.NodeID, time.Time) {
	wakeAt := h.Step(Reading{Now: now})
	return batchOf(h), wakeAt
}

// Stepped at the times that it returns, the notifier offers each deadline once, never early, and
// late by less than the window, while others are watched, moved and removed.
func TestDeadlineHeap_NeverEarlyAndLateByLessThanTheWindow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		window := fixture.OneOf(t, "window", 0, 250*time.Millisecond, 3*time.Second)
		h := newNotifier(window)
		now, wakeAt := fixture.Epoch, time.Time{}
		watched := map[cluster.NodeID]time.Time{}
		posted := false
		step := func() {
			var batch []cluster.NodeID
			batch, wakeAt = stepAt(h, now)
			posted = false
			must.True(t, slices.IsSorted(batch))
			for _, id := range batch {
				d, ok := watched[id]
				must.True(t, ok, must.Sprintf("%s fired and was not watched", id))
				must.False(t, now.Before(d), must.Sprintf("%s fired %s early", id, d.Sub(now)))
				delete(watched, id)
			}
			for id, d := range watched {
				must.True(t, now.Sub(d) <= 0 || now.Sub(d) < window, must.Sprintf("%s is late by %s", id, now.Sub(d)))
			}
			must.Eq(t, len(watched) == 0, wakeAt.IsZero())
			must.True(t, wakeAt.IsZero() || wakeAt.After(now), must.Sprintf("wakes at %s, now %s", wakeAt, now))
		}
		for range rapid.IntRange(1, 30).Draw(t, "moves") {
			switch rapid.IntRange(0, 4).Draw(t, "move") {
			case 0, 1:
				id, d := anyKey(t), now.Add(time.Duration(rapid.IntRange(-2000, 8000).Draw(t, "in ms"))*time.Millisecond)
				h.Watch(id, d)
				watched[id], posted = d, true
			case 2:
				id := anyKey(t)
				h.Remove(id)
				delete(watched, id)
				posted = true
			default:
				// The drainer steps right after a post, and no later than the time that it
				// returned.
				if !posted {
					until := now.Add(time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond)
					for !wakeAt.IsZero() && wakeAt.Before(until) {
						now = wakeAt
						step()
					}
					now = until
				}
				step()
			}
		}
		step()
		for !wakeAt.IsZero() {
			now = wakeAt
			step()
		}
		must.MapEmpty(t, watched)
	})
}

func TestDeadlineHeap_Coalesces(t *testing.T) {
	t.Parallel()
	h := newNotifier(time.Second)
	h.Watch("first", fixture.Epoch)
	h.Watch("second", fixture.Epoch.Add(999*time.Millisecond))
	h.Watch("too late", fixture.Epoch.Add(time.Second))
	batch, wakeAt := stepAt(h, fixture.Epoch.Add(-time.Hour))
	must.Nil(t, batch)
	must.Eq(t, fixture.Epoch, wakeAt)
	batch, wakeAt = stepAt(h, wakeAt)
	must.Nil(t, batch)
	must.Eq(t, fixture.Epoch.Add(999*time.Millisecond), wakeAt)
	batch, wakeAt = stepAt(h, wakeAt)
	must.Eq(t, []cluster.NodeID{"first", "second"}, batch)
	must.Eq(t, fixture.Epoch.Add(time.Second), wakeAt)
	batch, wakeAt = stepAt(h, wakeAt)
	must.Eq(t, []cluster.NodeID{"too late"}, batch)
	must.True(t, wakeAt.IsZero())
}

func TestDeadlineHeap_WithoutWindow(t *testing.T) {
	t.Parallel()
	h := newNotifier(-1)
	h.Watch("first", fixture.Epoch)
	h.Watch("second", fixture.Epoch.Add(1))
	batch, wakeAt := stepAt(h, fixture.Epoch)
	must.Eq(t, []cluster.NodeID{"first"}, batch)
	must.Eq(t, fixture.Epoch.Add(1), wakeAt)
}

// Nodes with one deadline fire together. A node whose deadline is watched again after it has
// fired fires again.
func TestDeadlineHeap_EqualDeadlines(t *testing.T) {
	t.Parallel()
	h := newNotifier(time.Second)
	var want []cluster.NodeID
	for i := range 100 {
		id := cluster.NodeID(fmt.Sprintf("n%02d", 99-i))
		want = append(want, id)
		h.Watch(id, fixture.Epoch)
	}
	slices.Sort(want)
	batch, _ := stepAt(h, fixture.Epoch)
	must.Eq(t, want, batch)
	h.Watch("n07", fixture.Epoch)
	batch, wakeAt := stepAt(h, fixture.Epoch.Add(time.Hour))
	must.Eq(t, []cluster.NodeID{"n07"}, batch)
	must.True(t, wakeAt.IsZero())
}

func TestDeadlineHeap_MovedAndRemoved(t *testing.T) {
	t.Parallel()
	h := newNotifier(0)
	h.Watch("sooner", fixture.Epoch.Add(time.Hour))
	h.Watch("later", fixture.Epoch.Add(time.Minute))
	h.Watch("removed", fixture.Epoch.Add(time.Minute))
	_, wakeAt := stepAt(h, fixture.Epoch)
	must.Eq(t, fixture.Epoch.Add(time.Minute), wakeAt)
	h.Watch("sooner", fixture.Epoch.Add(time.Second))
	h.Watch("later", fixture.Epoch.Add(2*time.Hour))
	h.Remove("removed")
	h.Remove("never watched")
	_, wakeAt = stepAt(h, fixture.Epoch)
	must.Eq(t, fixture.Epoch.Add(time.Second), wakeAt)
	batch, wakeAt := stepAt(h, fixture.Epoch.Add(time.Hour))
	must.Eq(t, []cluster.NodeID{"sooner"}, batch)
	must.Eq(t, fixture.Epoch.Add(2*time.Hour), wakeAt)
}

// An unread batch is merged into the next.
func TestDeadlineHeap_UnreadBatchIsMerged(t *testing.T) {
	t.Parallel()
	h := newNotifier(0)
	for i, id := range []cluster.NodeID{"c", "a", "b"} {
		h.Watch(id, fixture.Epoch.Add(time.Duration(i)*time.Second))
		h.Step(Reading{Now: fixture.Epoch.Add(time.Duration(i) * time.Second)})
	}
	h.Watch("a", fixture.Epoch)
	h.Step(Reading{Now: fixture.Epoch.Add(time.Minute)})
	must.Eq(t, []cluster.NodeID{"a", "b", "c"}, batchOf(h))
	must.Nil(t, batchOf(h))
}

// The window is searched once, when its first deadline passes. The cost of a change does not depend
// on how many deadlines are in the window.
func TestDeadlineHeap_SearchesAWindowOnce(t *testing.T) {
	t.Parallel()
	h := newNotifier(time.Second)
	h.Watch("first", fixture.Epoch)
	h.Watch("second", fixture.Epoch.Add(time.Second/2))
	_, wakeAt := stepAt(h, fixture.Epoch.Add(-time.Hour))
	must.Eq(t, fixture.Epoch, wakeAt)
	must.True(t, h.fire.IsZero())
	h.Step(Reading{Now: fixture.Epoch})
	must.Eq(t, fixture.Epoch.Add(time.Second/2), h.fire)
	h.Remove("second")
	h.Watch("third", fixture.Epoch.Add(time.Second-1))
	batch, wakeAt := stepAt(h, fixture.Epoch.Add(time.Second/4))
	must.Nil(t, batch)
	must.Eq(t, fixture.Epoch.Add(time.Second/2), wakeAt)
	batch, wakeAt = stepAt(h, wakeAt)
	must.Eq(t, []cluster.NodeID{"first"}, batch)
	must.Eq(t, fixture.Epoch.Add(time.Second-1), wakeAt)
}

// A deadline that is watched after it has passed does not wait for an earlier batch.
func TestDeadlineHeap_WatchedLate(t *testing.T) {
	t.Parallel()
	h := newNotifier(time.Second)
	h.Watch("first", fixture.Epoch)
	h.Watch("second", fixture.Epoch.Add(time.Second-1))
	h.Step(Reading{Now: fixture.Epoch})
	h.Watch("late", fixture.Epoch.Add(-1))
	batch, wakeAt := stepAt(h, fixture.Epoch.Add(time.Millisecond))
	must.Eq(t, []cluster.NodeID{"first", "late"}, batch)
	must.Eq(t, fixture.Epoch.Add(time.Second-1), wakeAt)
}

// clockwork steps a notifier at the times that it returns, and records when each node is in a
// batch.
func clockwork(h *deadlineHeap, now time.Time) map[cluster.NodeID]time.Time {
	fired := map[cluster.NodeID]time.Time{}
	for batch, wakeAt := stepAt(h, now); ; batch, wakeAt = stepAt(h, now) {
		for _, id := range batch {
			fired[id] = now
		}
		if wakeAt.IsZero() {
			return fired
		}
		now = wakeAt
	}
}

// The batches are those of a twin that sorts all deadlines. Deadlines that are less than the window
// after the first are in one batch, at the time of the last of them.
func TestDeadlineHeap_AgreesWithSortedSlice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		window := fixture.OneOf(t, "window", -1, 0, 250*time.Millisecond, 3*time.Second)
		h := newNotifier(window)
		deadlines := map[cluster.NodeID]time.Time{}
		for range rapid.IntRange(0, 30).Draw(t, "moves") {
			id := anyKey(t)
			if rapid.IntRange(0, 4).Draw(t, "move") == 0 {
				h.Remove(id)
				delete(deadlines, id)
				continue
			}
			deadlines[id] = fixture.Epoch.Add(time.Duration(rapid.IntRange(0, 8000).Draw(t, "in ms")) * time.Millisecond)
			h.Watch(id, deadlines[id])
			if rapid.Bool().Draw(t, "step") {
				h.Step(Reading{Now: fixture.Epoch.Add(-time.Second)})
			}
		}
		ids := slices.SortedFunc(maps.Keys(deadlines), func(a, b cluster.NodeID) int { return deadlines[a].Compare(deadlines[b]) })
		want := map[cluster.NodeID]time.Time{}
		for len(ids) > 0 {
			together := 1
			for together < len(ids) && (deadlines[ids[together]].Equal(deadlines[ids[0]]) || deadlines[ids[together]].Sub(deadlines[ids[0]]) < window) {
				together++
			}
			for _, id := range ids[:together] {
				want[id] = deadlines[ids[together-1]]
			}
			ids = ids[together:]
		}
		must.Eq(t, want, clockwork(h, fixture.Epoch.Add(-time.Second)))
	})
}
