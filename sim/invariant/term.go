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
	// clockSet says that the clock was set while the term ran. setAt is the world's time of the
	// last change since the last step, or zero.
	clockSet bool
	setAt    time.Time
	// sequence counts the term's proposals.
	sequence int
	writes   map[int]*write // proposed and not answered, by N
	// inFlight counts the entries among the writes. marks, groups and ends count their items.
	inFlight int
	marks    map[cluster.AllocID]int
	groups   map[cluster.GroupKey]int
	ends     map[cluster.NodeID]int
	// fresh are the writes that were proposed since the last step.
	fresh []*write

	// needsBarrier says that the term may plan nothing before a barrier is applied: it is new,
	// or the outcome of a write is unknown. barrierAfter is the number of that write. Only a
	// later barrier counts.
	needsBarrier bool
	barrierAfter int
	// minIndex is the lowest index of a state that includes all answers.
	minIndex uint64
	// failed are the allocations with a mark in a failed write that the term has not proposed
	// again. failedEnds are the nodes with such an end.
	failed     map[cluster.AllocID]bool
	failedEnds map[cluster.NodeID]bool

	// failures counts the rounds that failed in a row. refused counts the refusals of each
	// item, reevaluated the requested evaluations of each group. Each delays only its own item
	// or group.
	failures    attempts
	refused     map[refusedItem]attempts
	reevaluated map[cluster.GroupKey]attempts
	// round is the newest round.
	round round
	// lastWrite is when the last round of entries began, by the drainer's clock, or zero.
	lastWrite time.Time
	// news holds the answers for its next step.
	news news

	last steps
	// quiet holds its reports at the last quiet point.
	quiet lastReports
}

// refusedItem is a mark of a drain, or its end if alloc is empty.
type refusedItem struct {
	drain cluster.DrainID
	alloc cluster.AllocID
}

func (i refusedItem) compare(o refusedItem) int {
	return cmp.Or(cmp.Compare(i.drain, o.drain), cmp.Compare(i.alloc, o.alloc))
}

// round is the proposals of one step: entries, or a barrier. Several failed entries of a round
// count as one failure.
type round struct{ barrier, failed bool }

// news holds the answers that a drainer received since its last step.
type news struct {
	any                    bool
	failed                 bool // an entry or a barrier
	entryFull, barrierFull bool // the log had no room
	items                  []refusedItem
	reevaluated            []cluster.GroupKey
}

// ahead is how far the drainer's clock is ahead of the world's, if the judge knows it.
func (t *term) ahead() time.Duration {
	if t == nil {
		return 0
	}
	return t.offset
}

// clockCheck is the interval at which a waiting drainer checks its clock.
const clockCheck = 30 * time.Second

// missedClockSet reports whether the drainer may not know that its clock was set. Its timer does
// not follow the clock. Until the drainer checks the clock or steps, it wakes as if the clock had
// not been set, even if the clock is right again.
func (t *term) missedClockSet(now time.Time) bool {
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

// term returns the term with that number.
func (j *facts) term(number int) *term {
	if t := j.terms[number]; t != nil {
		return t
	}
	return j.begin(0, number)
}

// clock is the time on the term's clock, if the judge knows it.
func (j *facts) clock(t *term) time.Time { return j.now.Add(t.ahead()) }

// viewIsOld reports whether the last state that the term looked at misses one of its answers.
func (t *term) viewIsOld() bool { return t.last.view == nil || t.last.view.Index() < t.minIndex }

// marksFor reports whether a mark of that drain on the allocation is in flight. A mark of an
// earlier drain does not count, because it does not date the reason of the present drain.
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

// arrive records that the items of a write are no longer in flight.
func (t *term) arrive(m shims.Message) {
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

// fail records that the items of a write failed or have an unknown outcome.
func (t *term) fail(m shims.Message) {
	marks, _, ends := items(m)
	for _, m := range marks {
		t.failed[m.Alloc] = true
	}
	for _, c := range ends {
		t.failedEnds[c.Node] = true
	}
}

// processNews counts the answers that the drainer processes in a step, at a time on its clock.
func (t *term) processNews(clock time.Time) {
	n := &t.news
	answered := len(t.writes) == len(t.fresh) // all writes of earlier steps have an answer
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

// proposesEntries reports whether the step proposed entries, even if the log had no room.
func (t *term) proposesEntries() bool {
	return t.news.entryFull || len(t.fresh) > 0 && !t.fresh[0].barrier
}

// beginRound records the round of a step, if the step began one. A round fails at once if the log
// has no room. A step that looked at the state and proposed nothing ends the retries.
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

// stalls reports whether, at a time, the drainer logs a write that has had no answer for long.
func (t *term) stalls(w time.Time) bool {
	for _, p := range t.writes {
		if w.Equal(p.clock.Add(stalledAfter)) {
			return true
		}
	}
	return false
}
