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

// Request asks to delete rows. The state machine judges each row again.
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

func (r *Round) findAllocs(s State) {
	var rows []ended[cluster.Allocation]
	for a := range s.Allocs() {
		r.held.Allocs++
		if a.ClientTerminal() {
			rows = append(rows, ended[cluster.Allocation]{a, a.ModifyTime})
		}
	}
	r.held.EndedAllocs = len(rows)
	old := r.old(r.options.AllocAge)
	rows, newest := oldest(rows, old, r.options.MaxAllocs)
	before := Before{Allocs: newest, Jobs: r.old(r.options.JobAge)}
	judge := NewJudge(s, before)
	var ids []cluster.AllocID
	for _, a := range rows {
		if judge.Alloc(a.row) == "" {
			ids = append(ids, a.row.ID)
		}
	}
	for part := range slices.Chunk(ids, r.options.MaxBatch) {
		r.request(before, Rows{Allocs: part})
	}
}

func (r *Round) findEvals(s State) {
	var rows []ended[cluster.Evaluation]
	for e := range s.Evals() {
		r.held.Evals++
		if !e.Open() {
			rows = append(rows, ended[cluster.Evaluation]{e, e.ModifyTime})
		}
	}
	r.held.EndedEvals = len(rows)
	rows, newest := oldest(rows, r.old(r.options.EvalAge), r.options.MaxEvals)
	before := Before{Evals: newest}
	judge := NewJudge(s, before)
	var ids []cluster.EvalID
	for _, e := range rows {
		if judge.Eval(e.row) == "" {
			ids = append(ids, e.row.ID)
		}
	}
	for part := range slices.Chunk(ids, r.options.MaxBatch) {
		r.request(before, Rows{Evals: part})
	}
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
		r.request(before, Rows{Jobs: []cluster.JobKey{j.Key()}})
	}
	stopped, judge.before.Jobs = oldest(stopped, before.Jobs, r.options.MaxJobs)
	var keys []cluster.JobKey
	for _, j := range stopped {
		if judge.Job(j.row) == "" {
			keys = append(keys, j.row.Key())
		}
	}
	for part := range slices.Chunk(keys, r.options.MaxBatch) {
		r.request(judge.before, Rows{Jobs: part})
	}
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

// request queues a request.
func (r *Round) request(before Before, rows Rows) {
	r.queue = append(r.queue, &Request{Before: before, Rows: rows})
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
