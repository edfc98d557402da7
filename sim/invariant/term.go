package invariant

import (
	"cmp"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// term is the judge's record of one drainer's term.
type term struct {
	server, number int
	ended          bool
	// offset is how far the clock is ahead of the world's.
	offset time.Duration
	// clockSet says that the clock was set while the term ran. setAt is when it was last set
	// since the last step, by the world's time, or zero.
	clockSet bool
	setAt    time.Time
	// sequence counts the term's proposals.
	sequence int
	writes   map[int]*write // proposed and not answered, by N
	// inFlight counts the entries among them; marks, groups and ends are their
	// items.
	inFlight int
	marks    map[cluster.AllocID]int
	groups   map[cluster.GroupKey]int
	ends     map[cluster.NodeID]int
	// fresh are the writes that were proposed since the last step.
	fresh []*write

	// owes says that nothing may be planned before a barrier is applied that was
	// proposed after the proposal of that number: the term is new, or the outcome
	// of a write is unknown.
	needsBarrier bool
	barrierAfter int
	// minIndex is the least index of a state that shows all that was answered.
	minIndex uint64
	// failed are the allocations whose marks were in a write that failed, and which
	// were not proposed again; failedEnds the same of nodes.
	failed     map[cluster.AllocID]bool
	failedEnds map[cluster.NodeID]bool

	// failures counts the rounds that failed in a row. refused counts the refusals of
	// each item, reevaluated the evaluations that were made again of each group: only that
	// item or group may wait for them.
	failures    attempts
	refused     map[refusedItem]attempts
	reevaluated map[cluster.GroupKey]attempts
	// round is the newest round.
	round round
	// lastWrite is when the last round of entries began, by the drainer's clock, or zero.
	lastWrite time.Time
	// news is the answers that it processes in its next step.
	news news

	last steps
	// quiet is its report at the last quiet point.
	quiet heard
}

// refusedItem is a mark, or a completion if alloc is empty, that a drain wanted.
type refusedItem struct {
	drain cluster.DrainID
	alloc cluster.AllocID
}

func (i refusedItem) compare(o refusedItem) int {
	return cmp.Or(cmp.Compare(i.drain, o.drain), cmp.Compare(i.alloc, o.alloc))
}

// round is the proposals of one step: entries, or a barrier. It counts as one
// failure, however many of its entries fail.
type round struct{ barrier, failed bool }

// news is the answers that a drainer has received since its last step.
type news struct {
	any                    bool
	failed                 bool // an entry or a barrier
	entryFull, barrierFull bool // the log had no room
	items                  []refusedItem
	reevaluated            []cluster.GroupKey
}

// ahead is how far the drainer's clock is ahead of the world's, as far as is known.
func (t *term) ahead() time.Duration {
	if t == nil {
		return 0
	}
	return t.offset
}

// clockCheck is how often a drainer that waits for a time looks at its clock.
const clockCheck = 30 * time.Second

// unseen reports whether the drainer may not know that its clock was set. Its timer does not
// follow the clock: until the drainer looks at the clock or steps, it wakes as if the clock
// had not been set, even if the clock is right again by now.
func (t *term) unseen(now time.Time) bool {
	return !t.setAt.IsZero() && now.Before(t.setAt.Add(clockCheck))
}

func (j *facts) begin(server, number int) *term {
	t := &term{
		server: server, number: number, needsBarrier: true,
		writes: make(map[int]*write), marks: make(map[cluster.AllocID]int), groups: make(map[cluster.GroupKey]int),
		ends: make(map[cluster.NodeID]int), failed: make(map[cluster.AllocID]bool), failedEnds: make(map[cluster.NodeID]bool),
		refused:     make(map[refusedItem]attempts),
		reevaluated: make(map[cluster.GroupKey]attempts),
	}
	t.last.tokens = j.burst()
	j.terms[number] = t
	return t
}

// term returns the term of that number.
func (j *facts) term(number int) *term {
	if t := j.terms[number]; t != nil {
		return t
	}
	return j.begin(0, number)
}

// clock is the time on the term's clock, as far as it is known.
func (j *facts) clock(t *term) time.Time { return j.now.Add(t.ahead()) }

// sawOld reports whether the newest state that a term has looked at lacks reported
// changes.
func (t *term) sawOld() bool { return t.last.view == nil || t.last.view.Index() < t.minIndex }

// marksFor reports whether a mark of the allocation is in flight that the drain wanted. The
// leader does not know since when a mark of an earlier drain is one of a later drain.
func (t *term) marksFor(id cluster.AllocID, drain cluster.DrainID) bool {
	for _, p := range t.writes { //lint:order each write by itself
		marks, _, _ := items(p.Message)
		for _, m := range marks {
			if m.Alloc == id && m.Drain == drain {
				return true
			}
		}
	}
	return false
}

// land notes that the items of a write are in flight no longer.
func (t *term) land(m shims.Message) {
	marks, reevaluate, ends := items(m)
	for _, m := range marks {
		if t.marks[m.Alloc]--; t.marks[m.Alloc] <= 0 {
			delete(t.marks, m.Alloc)
		}
	}
	for _, key := range reevaluate {
		if t.groups[key]--; t.groups[key] <= 0 {
			delete(t.groups, key)
		}
	}
	for _, c := range ends {
		if t.ends[c.Node]--; t.ends[c.Node] <= 0 {
			delete(t.ends, c.Node)
		}
	}
}

// lose notes that the items of a write were not written, or may not have been.
func (t *term) lose(m shims.Message) {
	marks, _, ends := items(m)
	for _, m := range marks {
		t.failed[m.Alloc] = true
	}
	for _, c := range ends {
		t.failedEnds[c.Node] = true
	}
}

// takeIn counts the answers that the drainer processes in a step, and dates them.
func (t *term) takeIn(clock time.Time) {
	n := &t.news
	answered := len(t.writes) == len(t.fresh) // all that was proposed before this step
	switch {
	case n.failed && !t.round.failed:
		t.round.failed = true
		t.failures.fail(clock)
	case n.any && answered && !t.round.failed && !t.round.barrier:
		t.failures = attempts{}
	}
	for _, item := range n.items {
		a := t.refused[item]
		a.fail(clock)
		t.refused[item] = a
	}
	for _, key := range n.reevaluated {
		a := t.reevaluated[key]
		a.fail(clock)
		t.reevaluated[key] = a
	}
	*n = news{entryFull: n.entryFull, barrierFull: n.barrierFull, items: n.items[:0], reevaluated: n.reevaluated[:0]}
}

// proposesEntries reports whether the step has proposed entries, taken or not.
func (t *term) proposesEntries() bool {
	return t.news.entryFull || len(t.fresh) > 0 && !t.fresh[0].barrier
}

// beginRound notes the round that a step has begun, if it has. A round for which the log
// had no room failed at once. A step that looked and wants nothing has nothing to try again.
func (t *term) beginRound(s Step, looked, waits bool) {
	switch {
	case len(t.fresh) > 0:
		t.round = round{barrier: t.fresh[0].barrier}
	case t.news.entryFull, t.news.barrierFull:
		t.round = round{barrier: t.news.barrierFull}
		t.failures.fail(s.Clock)
	case looked && !waits:
		t.failures = attempts{}
	}
	t.news.entryFull, t.news.barrierFull = false, false
	t.fresh = t.fresh[:0]
}

// stalls reports whether a write of the term has been without an answer for so long at the
// time that the drainer logs it.
func (t *term) stalls(w time.Time) bool {
	for _, p := range t.writes {
		if w.Equal(p.clock.Add(stalledAfter)) {
			return true
		}
	}
	return false
}
