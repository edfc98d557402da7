package collect

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// State is a [View] that yields all rows.
type State interface {
	View
	// Allocs, Evals and Jobs yield all rows of their table.
	Allocs() iter.Seq[*cluster.Allocation]
	Evals() iter.Seq[*cluster.Evaluation]
	Jobs() iter.Seq[*cluster.Job]
}

// Request is a request to delete rows. The state machine judges each row again.
type Request struct {
	Before Before
	Rows
}

// Held counts the rows that a round found, before it deleted any.
type Held struct {
	Allocs, Evals, Jobs int
	// EndedAllocs, EndedEvals and EndedJobs are those of them that have ended. A job has ended if it
	// is stopped, or if it is a batch job whose work ended at least the age of jobs ago.
	EndedAllocs, EndedEvals, EndedJobs int
}

// kind is a kind of rows. A round takes one after the other.
type kind int

const (
	allocs kind = iota
	evals
	jobs
	noKind
)

// Round finds the rows of one state after another that may be deleted. It belongs to one
// goroutine.
type Round struct {
	options Options // with defaults
	now     time.Time
	next    kind
	queue   []*Request
	held    Held
}

// NewRound returns a round at a time. The error names the invalid option.
func NewRound(o Options, now time.Time) (*Round, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	return &Round{options: o.withDefaults(), now: now}, nil
}

// Everything returns a round that deletes each ended row that nothing needs, of every age.
func Everything(now time.Time) *Round {
	o := Options{}.withDefaults()
	o.AllocAge, o.EvalAge, o.JobAge = 0, 0, 0
	return &Round{options: o, now: now}
}

// Next returns the next request, or nil at the end of the round. The state shows the effect of
// the requests before: otherwise the round leaves rows to the next round.
func (r *Round) Next(s State) *Request {
	for len(r.queue) == 0 && r.next < noKind {
		switch r.next {
		case allocs:
			r.findAllocs(s)
		case evals:
			r.findEvals(s)
		case jobs:
			r.findJobs(s)
		}
		r.next++
	}
	if len(r.queue) == 0 {
		return nil
	}
	request := r.queue[0]
	r.queue = r.queue[1:]
	return request
}

// Held returns what the round has found so far.
func (r *Round) Held() Held { return r.held }

// ended is an ended row and when it was last written.
type ended[T any] struct {
	row     *T
	written time.Time
}

// endedOf returns the rows that have ended. It counts them, and all rows.
func endedOf[T any](rows iter.Seq[*T], all, ends *int, hasEnded func(*T) bool, written func(*T) time.Time) (found []ended[T]) {
	for row := range rows {
		*all++
		if hasEnded(row) {
			found = append(found, ended[T]{row, written(row)})
		}
	}
	*ends = len(found)
	return found
}

// unneeded returns the ids of the rows that nothing needs. why returns what needs a row, or "".
func unneeded[T, ID any](rows []ended[T], why func(*T) string, id func(*T) ID) (ids []ID) {
	for _, r := range rows {
		if why(r.row) == "" {
			ids = append(ids, id(r.row))
		}
	}
	return ids
}

func (r *Round) findAllocs(s State) {
	rows := endedOf(s.Allocs(), &r.held.Allocs, &r.held.EndedAllocs, (*cluster.Allocation).ClientTerminal,
		func(a *cluster.Allocation) time.Time { return a.ModifyTime })
	rows, newest := oldest(rows, r.old(r.options.AllocAge), r.options.MaxAllocs)
	before := Before{Allocs: newest, Jobs: r.old(r.options.JobAge)}
	ids := unneeded(rows, NewJudge(s, before).Alloc, func(a *cluster.Allocation) cluster.AllocID { return a.ID })
	request(r, before, ids, func(part []cluster.AllocID) Rows { return Rows{Allocs: part} })
}

func (r *Round) findEvals(s State) {
	rows := endedOf(s.Evals(), &r.held.Evals, &r.held.EndedEvals, func(e *cluster.Evaluation) bool { return !e.Open() },
		func(e *cluster.Evaluation) time.Time { return e.ModifyTime })
	rows, newest := oldest(rows, r.old(r.options.EvalAge), r.options.MaxEvals)
	before := Before{Evals: newest}
	ids := unneeded(rows, NewJudge(s, before).Eval, func(e *cluster.Evaluation) cluster.EvalID { return e.ID })
	request(r, before, ids, func(part []cluster.EvalID) Rows { return Rows{Evals: part} })
}

func (r *Round) findJobs(s State) {
	var stopped []ended[cluster.Job]
	var finished []*cluster.Job
	before := Before{Allocs: r.old(r.options.AllocAge), Jobs: r.old(r.options.JobAge)}
	judge := NewJudge(s, before)
	for j := range s.Jobs() {
		r.held.Jobs++
		switch {
		case j.Stop:
			stopped = append(stopped, ended[cluster.Job]{j, judge.evalsOf(j.Key()).written})
		case judge.Job(j) == "":
			finished = append(finished, j)
		}
	}
	r.held.EndedJobs = len(stopped) + len(finished)
	for _, j := range finished { // one in a request, because its allocations go with it
		r.queue = append(r.queue, &Request{Before: before, Rows: Rows{Jobs: []cluster.JobKey{j.Key()}}})
	}
	stopped, judge.before.Jobs = oldest(stopped, before.Jobs, r.options.MaxJobs)
	request(r, judge.before, unneeded(stopped, judge.Job, (*cluster.Job).Key), func(part []cluster.JobKey) Rows { return Rows{Jobs: part} })
}

// old is the time before which rows of an age were last written. Rows of a clock ahead are as
// young as those that were written now.
func (r *Round) old(age time.Duration) time.Time { return r.now.Add(-age) }

// oldest returns the rows that were last written before the time, or that are above the bound, the
// oldest first, and the time before which all of them were written.
func oldest[T any](rows []ended[T], before time.Time, most int) ([]ended[T], time.Time) {
	slices.SortStableFunc(rows, func(a, b ended[T]) int { return a.written.Compare(b.written) })
	n, _ := slices.BinarySearchFunc(rows, before, func(row ended[T], at time.Time) int { return row.written.Compare(at) })
	if beyond := len(rows) - most; beyond > n {
		n = beyond
		before = rows[n-1].written.Add(1)
	}
	return rows[:n], before
}

// request queues requests with the ids, split into batches.
func request[ID any](r *Round, before Before, ids []ID, rows func(part []ID) Rows) {
	for part := range slices.Chunk(ids, r.options.MaxBatch) {
		r.queue = append(r.queue, &Request{Before: before, Rows: rows(part)})
	}
}

// Collector begins a round at every interval. It belongs to one goroutine.
type Collector struct {
	options Options // with defaults
	round   *Round
	// next is when the next step has something to do.
	next time.Time
}

// NewCollector returns a collector that begins its first round after an interval. The error names
// the invalid option.
func NewCollector(o Options, now time.Time) (*Collector, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	return &Collector{options: o, next: now.Add(o.Interval)}, nil
}

// Step returns the next request, or nil if there is none now, and when to call it again. The
// caller writes the request, and passes the state that shows it to the next call. A request that
// was not written is made again in a later round.
func (c *Collector) Step(s State, now time.Time) (*Request, time.Time) {
	c.next = earlier(c.next, now.Add(max(c.options.Interval, c.options.Pause))) // the clock was set back
	if now.Before(c.next) {
		return nil, c.next
	}
	if s.ClusterVersion() < Version {
		c.next = now.Add(c.options.Interval)
		return nil, c.next
	}
	if c.round == nil {
		c.round = &Round{options: c.options, now: now}
	}
	request := c.round.Next(s)
	if request == nil {
		c.next = earlier(c.round.now, now).Add(c.options.Interval) // the clock may be set back in a round
		c.round = nil
		return nil, cmp.Or(c.next, now)
	}
	c.next = now.Add(c.options.Pause)
	return request, c.next
}

// Held returns what the present round has found, or nil between rounds.
func (c *Collector) Held() *Held {
	if c.round == nil {
		return nil
	}
	held := c.round.held
	return &held
}

// Version is the first cluster version with requests to delete rows.
const Version cluster.Version = 3

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
