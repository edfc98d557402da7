package statestore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
)

// UpsertJob registers a job, or its next version. Allocations keep the version that they were
// placed for. The error states what is missing in the job. The caller has filled in defaults with
// [cluster.Job.Canonicalize].
func (t *Txn) UpsertJob(j *cluster.Job) error {
	if err := whole(j); err != nil {
		return fmt.Errorf("registering a job: %w", err)
	}
	after := j.Copy()
	before := t.State().Job(after.Key())
	after.Version, after.CreateIndex = 0, t.rows.written.index
	if before != nil {
		after.Version, after.CreateIndex = before.Version+1, before.CreateIndex
	}
	after.ModifyIndex, after.JobModifyIndex = t.rows.written.index, t.rows.written.index
	t.rows.putJob(before, after)
	return nil
}

// whole returns an error if a part of the job is missing. The caller has checked the values with
// [cluster.Job.Validate].
func whole(j *cluster.Job) error {
	switch {
	case j == nil:
		return errors.New("job is missing")
	case j.ID == "":
		return errors.New("job has no id")
	}
	for i, g := range j.TaskGroups {
		if g == nil || slices.Contains(g.Tasks, nil) {
			return fmt.Errorf("job %s: task group %d or a task of it is missing", j.Key(), i)
		}
	}
	return nil
}

// DeleteJob stops a job, or with purge deletes it with its allocations and evaluations. The
// running drain of a node counts the purged allocations that may still run there. The error
// is [ErrJobNotFound].
func (t *Txn) DeleteJob(k cluster.JobKey, purge bool) error {
	before := t.State().Job(k)
	if purge {
		return purgeJob(t, k, before)
	}
	if before == nil {
		return ErrJobNotFound
	}
	after := before.Copy()
	after.Stop = true
	after.ModifyIndex = t.rows.written.index
	t.rows.putJob(before, after)
	return nil
}

// purgeJob deletes a job with its allocations and evaluations. The job itself may be gone
// already.
func purgeJob(t *Txn, k cluster.JobKey, j *cluster.Job) error {
	allocs := slices.Collect(t.State().AllocsByJob(k))
	evals := slices.Collect(t.State().EvalsByJob(k))
	if j == nil && len(allocs) == 0 && len(evals) == 0 {
		return ErrJobNotFound
	}
	countPurged(t, allocs)
	for _, a := range allocs {
		t.rows.putAlloc(a, nil)
	}
	for _, e := range evals {
		t.rows.putEval(e, nil)
	}
	if j != nil {
		t.rows.putJob(j, nil)
	}
	return nil
}

// countPurged counts purged allocations whose tasks may still run in the drains of their
// nodes.
func countPurged(t *Txn, allocs []*cluster.Allocation) {
	nodes := editDrainingNodes(&t.rows)
	for _, a := range allocs {
		counts := live(a) || a.Unconfirmed() && versionIn(t.rows.tables) >= cluster.VersionOfConfirmation
		if counts && nodes.row(a.NodeID) != nil {
			lifecycle.CountPurged(nodes.edit(a.NodeID), a, t.rows.written.index)
		}
	}
	nodes.write()
}
