package collect

import (
	"iter"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
)

// View is one consistent state of the cluster.
type View interface {
	scheduler.View
	// AllocsByJob yields all allocations of the job.
	AllocsByJob(cluster.JobKey) iter.Seq[*cluster.Allocation]
	// ClaimsOfAlloc yields the claims of volumes of the allocation.
	ClaimsOfAlloc(cluster.AllocID) iter.Seq[*cluster.VolumeClaim]
	// DrainsByNode yields the records of the ended drains of the node.
	DrainsByNode(cluster.NodeID) iter.Seq[*cluster.Drain]
	// EvalsByJob yields all evaluations of the job.
	EvalsByJob(cluster.JobKey) iter.Seq[*cluster.Evaluation]
}

// Before is how old rows must be: only rows that were last written before the time of their kind
// may be deleted.
type Before struct {
	Allocs, Evals, Jobs time.Time
}

// Rows are rows of the state.
type Rows struct {
	Allocs []cluster.AllocID
	Evals  []cluster.EvalID
	Jobs   []cluster.JobKey
}

// Len returns how many rows these are.
func (r Rows) Len() int { return len(r.Allocs) + len(r.Evals) + len(r.Jobs) }

// Judge judges rows in one state. It caches what it reads of each job.
type Judge struct {
	view   View
	before Before
	jobs   map[cluster.JobKey]*evalsOf
	named  map[cluster.JobKey]map[cluster.EvalID]bool
}

// NewJudge returns a judge of the state. The caller makes a new one when the state has changed.
func NewJudge(v View, b Before) *Judge {
	return &Judge{
		view: v, before: b,
		jobs:  make(map[cluster.JobKey]*evalsOf),
		named: make(map[cluster.JobKey]map[cluster.EvalID]bool),
	}
}

// Alloc returns why the allocation, or nil, must not be deleted, or the empty string.
func (j *Judge) Alloc(a *cluster.Allocation) (why string) {
	switch {
	case a == nil:
		return "it does not exist"
	case !a.ClientTerminal():
		return "it has not ended"
	case !a.ModifyTime.Before(j.before.Allocs):
		return "it was written lately"
	case j.clientMayRun(a):
		return "its node may still run it"
	case j.claims(a):
		return "it claims a volume"
	}
	if why := rules.Needs(j.view, a); why != "" {
		return why
	}
	if job := j.view.Job(a.JobKey()); job != nil && job.Stop && !a.Concluded() && !j.quiet(a) {
		return "its job was stopped lately"
	}
	return scheduler.Needs(j.view, a)
}

// clientMayRun reports whether the client of a lost allocation may still run it: its node exists,
// and is not back for long enough to have reported.
func (j *Judge) clientMayRun(a *cluster.Allocation) bool {
	n := j.view.Node(a.NodeID)
	return a.ClientStatus == cluster.ClientLost && n != nil && (!n.Reachable() || !n.StatusChangedAt.Before(j.before.Allocs))
}

// claims reports whether the allocation still claims a volume: when the claim is over depends on the
// allocation.
func (j *Judge) claims(a *cluster.Allocation) bool {
	for range j.view.ClaimsOfAlloc(a.ID) {
		return true
	}
	return false
}

// quiet reports whether the allocation and the evaluations of its stopped job are old enough for
// the job to be deleted.
func (j *Judge) quiet(a *cluster.Allocation) bool {
	evals := j.evalsOf(a.JobKey())
	return !evals.open && a.ModifyTime.Before(j.before.Jobs) && evals.written.Before(j.before.Jobs)
}

// Eval returns why the evaluation, or nil, must not be deleted, or the empty string.
func (j *Judge) Eval(e *cluster.Evaluation) (why string) {
	switch {
	case e == nil:
		return "it does not exist"
	case e.Open():
		return "it is open"
	case !e.ModifyTime.Before(j.before.Evals):
		return "it was written lately"
	}
	if blocked := j.view.Eval(e.BlockedEval); blocked != nil && blocked.Open() {
		return "the evaluation that it made is open"
	}
	if j.evalsOf(e.JobKey()).newest == e.ID && j.view.Job(e.JobKey()) != nil {
		return "it is the newest of its job"
	}
	if j.namedBy(e.JobKey())[e.ID] {
		return "an allocation names it"
	}
	return ""
}

// Job returns why the job, or nil, must not be deleted, or the empty string.
func (j *Judge) Job(job *cluster.Job) (why string) {
	switch {
	case job == nil:
		return "it does not exist"
	case !job.Stop:
		return j.unfinished(job)
	}
	for range j.view.AllocsByJob(job.Key()) {
		return "it has allocations"
	}
	switch evals := j.evalsOf(job.Key()); {
	case evals.open || evals.count > 1:
		return "it has evaluations"
	case !evals.written.Before(j.before.Jobs):
		return "it was stopped lately"
	}
	return ""
}

// unfinished returns why a job that is not stopped must not be deleted, or the empty string. Only
// batch jobs finish. Such a job goes with all its rows, because a part of them would run again.
func (j *Judge) unfinished(job *cluster.Job) (why string) {
	evals := j.evalsOf(job.Key())
	switch {
	case job.Type != cluster.JobBatch || evals.open || evals.count == 0:
		return "it is not stopped"
	case !evals.written.Before(j.before.Jobs):
		return "it was planned lately"
	}
	ran := false
	for a := range j.view.AllocsByJob(job.Key()) {
		ran = true
		switch {
		case !a.ClientTerminal():
			return "it has work that has not ended"
		case !a.ModifyTime.Before(j.before.Jobs):
			return "its work ended lately"
		case j.clientMayRun(a), j.claims(a), rules.Needs(j.view, a) != "", scheduler.AwaitsReplacement(j.view, a):
			return "it has allocations"
		}
	}
	if !ran {
		return "it has not run"
	}
	return ""
}

// evalsOf is a summary of the evaluations of one job.
type evalsOf struct {
	count int
	open  bool
	// newest was created last. created is its index, and then its id decides.
	newest  cluster.EvalID
	created uint64
	// written is when one of them was last written.
	written time.Time
}

func (j *Judge) evalsOf(k cluster.JobKey) *evalsOf {
	if cached := j.jobs[k]; cached != nil {
		return cached
	}
	of := &evalsOf{}
	for e := range j.view.EvalsByJob(k) {
		of.count++
		of.open = of.open || e.Open()
		if of.newest == "" || e.CreateIndex > of.created || e.CreateIndex == of.created && e.ID > of.newest {
			of.newest, of.created = e.ID, e.CreateIndex
		}
		if e.ModifyTime.After(of.written) {
			of.written = e.ModifyTime
		}
	}
	j.jobs[k] = of
	return of
}

// namedBy returns the evaluations that allocations of the job name.
func (j *Judge) namedBy(k cluster.JobKey) map[cluster.EvalID]bool {
	if cached := j.named[k]; cached != nil {
		return cached
	}
	named := make(map[cluster.EvalID]bool)
	for a := range j.view.AllocsByJob(k) {
		named[a.EvalID] = true
	}
	j.named[k] = named
	return named
}
