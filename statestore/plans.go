package statestore

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// ApplyPlan applies the accepted part of a plan. It returns the ids of the dropped placements:
// their job is missing or stopped, or their id is empty or taken. A stop of an allocation that does
// not exist is ignored. The error states that the plan is missing, or is that of UpsertEvals.
func (t *Txn) ApplyPlan(p *cluster.Plan) (dropped []cluster.AllocID, err error) {
	if p == nil {
		return nil, errors.New("plan is missing")
	}
	t.rows.written.journals.at = p.At
	w := planWriter{txn: t, at: p.At.UTC(), edits: editAllocs(&t.rows), versions: make(map[jobVersion]*cluster.Job)}
	for _, s := range p.Stops {
		if a := w.edits.row(s.Alloc); a != nil {
			w.stop(a, s)
		}
	}
	for _, a := range p.Places {
		if a == nil || !w.place(a) {
			dropped = append(dropped, idOf(a))
		}
	}
	w.edits.write()
	claimEdits{&t.rows}.claim(w.placed)
	return dropped, t.UpsertEvals(planEvals(t.State(), p))
}

func idOf(a *cluster.Allocation) cluster.AllocID {
	if a == nil {
		return ""
	}
	return a.ID
}

// planEvals are the evaluations that a plan writes. It writes no evaluation of a purged job:
// no scheduler would process it.
func planEvals(s State, p *cluster.Plan) []*cluster.Evaluation {
	evals := slices.Concat([]*cluster.Evaluation{p.Eval, p.Blocked}, p.Answers)
	return slices.DeleteFunc(evals, func(e *cluster.Evaluation) bool {
		return e == nil || s.Eval(e.ID) == nil && s.Job(e.JobKey()) == nil
	})
}

// planWriter applies one plan.
type planWriter struct {
	txn   *Txn
	at    time.Time
	edits *allocEdits
	// job is the current version of the last placement's job, or nil.
	job *cluster.Job
	// versions holds the job versions that its placements share.
	versions map[jobVersion]*cluster.Job
	// placed are the new allocations with volumes.
	placed []*cluster.Allocation
}

// jobVersion names one version of one job.
type jobVersion struct {
	job                                  cluster.JobKey
	version, createIndex, jobModifyIndex uint64
}

func versionOf(j *cluster.Job) jobVersion {
	return jobVersion{j.Key(), j.Version, j.CreateIndex, j.JobModifyIndex}
}

// stop applies a stop to an existing allocation.
func (w *planWriter) stop(a *cluster.Allocation, s cluster.PlanStop) {
	if s.Unknown {
		if a.ClientTerminal() || a.ClientStatus == cluster.ClientUnknown {
			return
		}
		c := w.edit(a)
		c.ClientStatus, c.ClientDescription = cluster.ClientUnknown, s.Description
		w.noteAway(c)
		return
	}
	if a.Standby && s.Description == cluster.DescOriginalStays {
		w.unlink(a)
		w.edit(a).DesiredDescription = s.Description // one that is lost would hold a slot otherwise
	}
	lost := s.Lost && !a.ClientTerminal()
	if a.ServerTerminal() && !lost {
		return
	}
	c := w.edit(a)
	c.DesiredDescription = s.Description
	if !a.ServerTerminal() {
		c.DesiredStatus, c.StoppedAt = cluster.DesiredStop, w.at
	}
	if lost {
		c.ClientStatus = cluster.ClientLost
		w.noteAway(c)
	}
}

// unlink removes the link between a standby and the allocation beside which it was placed, which stays. Another drain may
// request a replacement again, and nothing needs the standby and those before it any more.
func (w *planWriter) unlink(standby *cluster.Allocation) {
	original := cluster.Original(standby, w.edits.row)
	if original == nil {
		return
	}
	next := w.edits.row(original.NextAllocation)
	w.edits.edit(original, w.at).NextAllocation = ""
	for next != nil && next.Standby {
		w.edits.edit(next, next.ModifyTime).Standby = false
		next = w.edits.row(next.NextAllocation)
	}
}

// noteAway writes since when the servers have no contact with the node of a lost or unknown allocation.
func (w *planWriter) noteAway(a *cluster.Allocation) {
	if versionIn(w.txn.rows.tables) < cluster.VersionOfConfirmation || !a.AwaySince.IsZero() {
		return
	}
	a.AwaySince = w.at
	if n := w.txn.State().Node(a.NodeID); n != nil && !n.Reachable() {
		a.AwaySince = cmp.Or(n.AwaySince, n.StatusChangedAt, w.at)
	}
}

// edit returns a copy of the allocation. The new AllocModifyIndex makes the client read it again.
func (w *planWriter) edit(a *cluster.Allocation) *cluster.Allocation {
	c := w.edits.edit(a, w.at)
	c.AllocModifyIndex = w.txn.rows.written.index
	return c
}

// place writes a new allocation, and sets NextAllocation of the one that it replaces. It
// reports false if it drops the placement.
func (w *planWriter) place(a *cluster.Allocation) bool {
	current := w.current(a.JobKey())
	if current.Stopped() || a.ID == "" || w.edits.row(a.ID) != nil {
		return false
	}
	var previous *cluster.Allocation
	if a.PreviousAllocation != "" {
		previous = w.edits.row(a.PreviousAllocation)
	}
	c := a.Copy()
	c.Job = w.version(a.Job, current, previous)
	shareNames(c)
	if c.DesiredStatus == "" {
		c.DesiredStatus = cluster.DesiredRun
	}
	if c.ClientStatus == "" {
		c.ClientStatus = cluster.ClientPending
	}
	if c.CreateTime.IsZero() {
		c.CreateTime = w.at
	}
	c.CreateTime, c.ModifyTime = c.CreateTime.UTC(), w.at
	index := w.txn.rows.written.index
	c.CreateIndex, c.ModifyIndex, c.AllocModifyIndex = index, index, index
	w.edits.create(c)
	if g := c.Job.Group(c.TaskGroup); g != nil && len(g.Volumes) > 0 {
		w.placed = append(w.placed, c)
	}
	if previous != nil { // AllocModifyIndex stays: the change does not concern the client
		w.edits.edit(previous, w.at).NextAllocation = c.ID
	}
	return true
}

// current returns the current version of a job, or nil. It caches the job, because the
// placements of a plan belong to one job and the plan does not write jobs.
func (w *planWriter) current(k cluster.JobKey) *cluster.Job {
	if w.job == nil || w.job.Key() != k {
		w.job = w.txn.State().Job(k)
	}
	return w.job
}

// version returns the job object that all allocations of the same version share. A nil j
// means the current version.
func (w *planWriter) version(j, current *cluster.Job, previous *cluster.Allocation) *cluster.Job {
	if j == nil {
		return current
	}
	name := versionOf(j)
	switch {
	case name == versionOf(current):
		return current
	case w.versions[name] != nil:
		return w.versions[name]
	case previous != nil && previous.Job != nil && versionOf(previous.Job) == name:
		w.versions[name] = previous.Job
	default:
		w.versions[name] = j.Copy()
	}
	return w.versions[name]
}

// shareNames makes the allocation use the strings of its job for the names of job and
// group. All allocations of a version then share memory, and comparisons are cheap.
func shareNames(a *cluster.Allocation) {
	if a.Job == nil {
		return
	}
	if a.Namespace == a.Job.Namespace {
		a.Namespace = a.Job.Namespace
	}
	if a.JobID == a.Job.ID {
		a.JobID = a.Job.ID
	}
	if g := a.Job.Group(a.TaskGroup); g != nil {
		a.TaskGroup = g.Name
	}
}
