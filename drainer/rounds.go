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
	if !t.wants() {
		return time.Time{}
	}
	may, at := t.writer.mayBegin(look.Now)
	if !may {
		return at
	}
	wishes, completions := t.wishes(), t.completions()
	if len(wishes)+len(completions) == 0 {
		return time.Time{}
	}
	t.writer.open(look.Now)
	c := t.config
	for _, part := range partitionCompletions(completions, c.MaxIDsPerEntry, c.MaxBytesPerEntry) {
		e := &entry{completions: part}
		if !t.begin(e, nil, &Completions{At: look.Now, Policy: c.Policy, Completions: part}) {
			return t.retryAt(look.Now)
		}
	}
	for _, part := range partition(wishes, c.MaxIDsPerEntry, c.MaxBytesPerEntry) {
		e := &entry{wishes: slices.Clone(part)} // not all wishes are to stay for as long as these
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

// wants reports whether anything may be wanted.
func (t *Term) wants() bool {
	return len(t.ready) > 0 || (t.request != nil && len(t.request.Marks)+len(t.request.Reevaluate) > 0)
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
			if !t.writer.sent(m.Alloc) {
				wishes = append(wishes, wish{mark: m, withNode: true})
			}
		}
	}
	if t.request != nil {
		for _, m := range t.request.Marks {
			if !t.writer.sent(m.Alloc) && !withNode[m.Alloc] {
				wishes = append(wishes, wish{mark: m})
			}
		}
		for _, key := range t.request.Reevaluate {
			if !t.writer.groups[key] {
				wishes = append(wishes, wish{mark: Mark{Group: key}, reevaluate: true})
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

// date notes since when marks are wanted.
func (t *Term) date(marks []Mark, now time.Time) {
	for _, m := range marks {
		if _, dated := t.wanted[m.Alloc]; !dated {
			t.wanted[m.Alloc] = now
		}
	}
}

// dateAnew has marks wanted since now that earlier drains of the nodes wanted, or have in
// flight.
func (t *Term) dateAnew(nodes map[cluster.NodeID]bool, now time.Time) {
	if len(nodes) == 0 {
		return
	}
	for id, on := range t.writer.marks {
		if nodes[on] {
			t.wanted[id] = now
		}
	}
	if t.request == nil {
		return
	}
	for _, m := range t.request.Marks {
		if nodes[m.Node] {
			t.wanted[m.Alloc] = now
		}
	}
}

// undate forgets since when marks were wanted that are not any more, if some may
// not be: what is wanted again later is wanted since then.
func (t *Term) undate() {
	if !t.withdrawn {
		return
	}
	t.withdrawn = false
	kept := make(map[cluster.AllocID]time.Time, len(t.wanted))
	keep := func(id cluster.AllocID) {
		if since, dated := t.wanted[id]; dated {
			kept[id] = since
		}
	}
	for id := range t.ready { //lint:order each mark by itself
		for _, m := range t.nodes[id].marks {
			keep(m.Alloc)
		}
	}
	if t.request != nil {
		for _, m := range t.request.Marks {
			keep(m.Alloc)
		}
	}
	for id := range t.writer.marks { //lint:order each mark by itself
		keep(id)
	}
	t.wanted = kept
}

// forgetAnswered drops from the present wish what was written: a watcher that
// has not been stepped since would have it written again.
func (t *Term) forgetAnswered(r DrainReply) {
	if t.request == nil {
		return
	}
	answered := make(map[cluster.AllocID]bool, len(r.Marks))
	for _, m := range r.Marks {
		answered[m.Alloc] = true
	}
	reevaluated := make(map[cluster.GroupKey]bool, len(r.Reevaluated))
	for _, key := range r.Reevaluated {
		reevaluated[key] = true
	}
	request := *t.request
	request.Marks = slices.DeleteFunc(slices.Clone(request.Marks), func(m Mark) bool { return answered[m.Alloc] })
	request.Reevaluate = slices.DeleteFunc(slices.Clone(request.Reevaluate), func(k cluster.GroupKey) bool { return reevaluated[k] })
	t.request = &request
}
