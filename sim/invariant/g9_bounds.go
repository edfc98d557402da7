package invariant

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// G9 bounds: ids and bytes per entry, entries in flight, state queries per second and kept
// records have bounds. Each mark, evaluation and end counts as one id. A barrier is no entry.

// checkSize checks the size of an entry.
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
		j.find(TooManyIDs, Violation{}, "a %s has %d ids, the maximum is %d", w.Message.Type(), ids, j.options.MaxIDs)
	}
	if w.Bytes > j.options.MaxBytes {
		j.find(TooManyBytes, Violation{}, "a %s has %d bytes, the maximum is %d", w.Message.Type(), w.Bytes, j.options.MaxBytes)
	}
	if ids == 0 {
		j.find(IdleWrite, Violation{}, "a %s has no item", w.Message.Type())
	}
}

// burst is the largest number of reads at once: those of a tenth of a second, and at least one.
func (o *Options) burst() float64 { return max(1, float64(int(o.QueriesPerSecond/10))) }

// checkQueries checks the rate of reads. The budget grows with the drainer's clock, and not when
// the clock was set back. The drainer may have one more read, granted before the world delayed
// it.
func (j *wakeJudge) checkQueries(t *term, s Step) {
	if since := s.Clock.Sub(t.last.clock); t.last.any && since > 0 {
		t.last.tokens = min(j.options.burst(), t.last.tokens+since.Seconds()*j.options.QueriesPerSecond)
	}
	t.last.tokens -= float64(s.Queries)
	const granted, rounding = 1, 1e-3
	if t.last.tokens < -granted-rounding {
		j.find(TooManyQueries, Violation{}, "term %d read the state more than %g times a second", t.number, j.options.QueriesPerSecond)
		t.last.tokens = 0 // one violation is enough
	}
	if s.Queries > 1 {
		j.find(TooManyQueries, Violation{}, "term %d read %d states in one step", t.number, s.Queries)
	}
}

// checkRound checks the time between a round of writes and the previous one.
func (j *writeJudge) checkRound(t *term, s Step) {
	if j.options.MinInterval > 0 && !t.lastWrite.IsZero() && !s.Clock.Before(t.lastWrite) {
		if since := s.Clock.Sub(t.lastWrite); since < j.options.MinInterval {
			j.find(TooSoon, Violation{}, "a round began %s after the previous one, the minimum is %s", since, j.options.MinInterval)
		}
	}
	t.lastWrite = s.Clock
}

// checkRecords checks the number of records of ended drains.
func (j *auditJudge) checkRecords() {
	counts := make(map[cluster.NodeID]int)
	//lint:order counts
	for _, d := range j.tables.records {
		counts[d.NodeID]++
	}
	if n := len(j.tables.records); n > cluster.MaxDrainRecords {
		j.find(TooManyRecords, Violation{}, "the state has %d records, the maximum is %d", n, cluster.MaxDrainRecords)
	}
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[id]; n > cluster.MaxDrainRecordsPerNode {
			j.find(TooManyRecords, Violation{Node: id}, "the node has %d records, the maximum is %d", n, cluster.MaxDrainRecordsPerNode)
		}
	}
}

// query is the longest wait for the next read that the rate allows.
func (o *Options) query() time.Duration {
	return time.Duration(float64(time.Second)/o.QueriesPerSecond) + time.Nanosecond
}
