package drainer

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// submit begins a round of writes, if there is something to write and no round
// is in flight. It returns when to try again, or zero.
func (t *Term) submit(look Look) time.Time {
	wishes, completions := t.wishes(), t.completions()
	t.dateWishes(wishes, look.Now)
	if len(wishes)+len(completions) == 0 {
		return time.Time{}
	}
	may, at := t.writer.mayBegin(look.Now)
	if !may {
		return at
	}
	t.writer.lastRound = look.Now
	c := t.config
	for _, part := range partitionCompletions(completions, c.MaxIDsPerEntry, c.MaxBytesPerEntry) {
		e := &entry{completions: part}
		if !t.begin(e, nil, &Completions{At: look.Now, Policy: c.Policy, Completions: part}) {
			return t.retryAt(look.Now)
		}
	}
	for _, part := range partition(wishes, c.MaxIDsPerEntry, c.MaxBytesPerEntry) {
		e := &entry{wishes: part}
		if t.request != nil {
			e.reply = t.request.Reply
		}
		if !t.begin(e, marksOf(look.View, part, look.Now, c.Policy, c.NewEvalID), nil) {
			return t.retryAt(look.Now)
		}
	}
	return time.Time{}
}

// begin begins one write, unless as many as may be are in flight.
func (t *Term) begin(e *entry, marks *Marks, completions *Completions) bool {
	return t.writer.inFlight < t.config.MaxInFlight && t.writer.begin(e, marks, completions, t.reply(e))
}

// retryAt is when to look again for room: with a write in flight its answer will
// say, otherwise others have filled the queue.
func (t *Term) retryAt(now time.Time) time.Time {
	if t.writer.inFlight > 0 {
		return time.Time{}
	}
	return now.Add(t.config.RetryBase)
}

// wishes are the marks and re-evaluations that are wanted and not in flight, in
// the order in which marks are judged. What leaves with its node is the node's
// wish, whatever its group wishes.
func (t *Term) wishes() []wish {
	var wishes []wish
	withNode := map[cluster.AllocID]bool{}
	for _, id := range slices.Sorted(maps.Keys(t.ready)) {
		for _, m := range t.nodes[id].marks {
			withNode[m.Alloc] = true
			if !t.writer.marks[m.Alloc] {
				wishes = append(wishes, wish{mark: m, withNode: true})
			}
		}
	}
	if t.request != nil {
		for _, m := range t.request.Marks {
			if !t.writer.marks[m.Alloc] && !withNode[m.Alloc] {
				wishes = append(wishes, wish{mark: m})
			}
		}
		for _, key := range t.request.Reevaluate {
			if !t.writer.groups[key] {
				wishes = append(wishes, wish{mark: Mark{Group: key}})
			}
		}
	}
	slices.SortStableFunc(wishes, compareWishes)
	return wishes
}

// completions are the ends of drains that are wanted and not in flight, by node.
func (t *Term) completions() []Completion {
	var completions []Completion
	for _, id := range slices.Sorted(maps.Keys(t.ready)) {
		if c := t.nodes[id].completion; c != nil && !t.writer.nodes[id] {
			completions = append(completions, *c)
		}
	}
	return completions
}

// dateWishes notes since when marks are wanted.
func (t *Term) dateWishes(wishes []wish, now time.Time) {
	if len(wishes) == 0 && t.writer.inFlight == 0 {
		clear(t.wanted)
		return
	}
	for _, w := range wishes {
		if _, dated := t.wanted[w.mark.Alloc]; !dated && !w.reevaluates() {
			t.wanted[w.mark.Alloc] = now
		}
	}
}
