package invariant

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// G9 bounds: ids and bytes per entry, entries in flight, state queries per second
// and records kept have stated bounds. Marks and evaluations count as ids, or the
// ends of drains. A barrier is no entry.

// checkSize holds an entry to its bounds.
func (j *writeJudge) checkSize(w Write) {
	ids := 0
	switch m := w.Message.(type) {
	case nil:
		return
	case *shims.AllocUpdateDesiredTransition:
		ids = len(m.Marks.Marks) + len(m.Evals)
	case *shims.NodesDrainComplete:
		ids = len(m.Completions.Completions)
	}
	if ids > j.options.MaxIDs {
		j.find(TooManyIDs, Violation{}, "a %s has %d ids, and may have %d", w.Message.Type(), ids, j.options.MaxIDs)
	}
	if w.Bytes > j.options.MaxBytes {
		j.find(TooManyBytes, Violation{}, "a %s has %d bytes, and may have %d", w.Message.Type(), w.Bytes, j.options.MaxBytes)
	}
	if ids == 0 {
		j.find(IdleWrite, Violation{}, "a %s carries nothing", w.Message.Type())
	}
}

// burst is how many looks may come at once: those of a tenth of a second, and at least one.
func (j *facts) burst() float64 { return max(1, float64(int(j.options.QueriesPerSecond/10))) }

// checkQueries holds the looks of a step to the rate. What is left of the rate
// grows with the drainer's clock; a clock that was set back adds nothing. One look
// more may have been granted before the drainer was held up.
func (j *wakeJudge) checkQueries(t *term, s Step) {
	if since := s.Clock.Sub(t.last.clock); t.last.any && since > 0 {
		t.last.tokens = min(j.burst(), t.last.tokens+since.Seconds()*j.options.QueriesPerSecond)
	}
	t.last.tokens -= float64(s.Looks)
	const granted, rounding = 1, 1e-3
	if t.last.tokens < -granted-rounding {
		j.find(TooManyQueries, Violation{}, "term %d looked at the state more than %g times a second", t.number, j.options.QueriesPerSecond)
		t.last.tokens = 0 // once is enough
	}
	if s.Looks > 1 {
		j.find(TooManyQueries, Violation{}, "term %d looked at %d states in one step", t.number, s.Looks)
	}
}

// checkRound holds a round of writes to its distance from the one before.
func (j *writeJudge) checkRound(t *term, s Step) {
	if j.options.MinInterval > 0 && !t.lastWrite.IsZero() && !s.Clock.Before(t.lastWrite) {
		if since := s.Clock.Sub(t.lastWrite); since < j.options.MinInterval {
			j.find(TooSoon, Violation{}, "a round began %s after the one before, and the least is %s", since, j.options.MinInterval)
		}
	}
	t.lastWrite = s.Clock
}

// checkRecords holds the records of ended drains to their bounds.
func (j *auditJudge) checkRecords() {
	counts := make(map[cluster.NodeID]int)
	for _, d := range j.tables.records {
		counts[d.NodeID]++
	}
	if n := len(j.tables.records); n > cluster.MaxDrainRecords {
		j.find(TooManyRecords, Violation{}, "%d records are kept, and %d may be", n, cluster.MaxDrainRecords)
	}
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[id]; n > cluster.MaxDrainRecordsPerNode {
			j.find(TooManyRecords, Violation{Node: id}, "%d records of the node are kept, and %d may be", n, cluster.MaxDrainRecordsPerNode)
		}
	}
}

// query is how far looks at the state may be apart.
func (o *Options) query() time.Duration {
	return time.Duration(float64(time.Second)/o.QueriesPerSecond) + time.Nanosecond
}

// lookWait is how long a term may have to wait for its next look: longer if looks
// that it was granted were lost when its clock was set back.
func (j *facts) lookWait(t *term) time.Duration {
	return time.Duration(1+t.last.setBack) * j.options.query()
}
