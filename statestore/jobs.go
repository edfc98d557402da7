package statestore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
)

// UpsertJob registers a job, or its next version. Allocations keep the version
// they were placed for. The error says what is missing in the job. Defaults have
// been filled in before, by [cluster.Job.Canonicalize]: servers of another
// version may have others, and would come to another state.
func (t *Txn) UpsertJob(j *cluster.Job) error {
	if err := whole(j); err != nil {
		return fmt.Errorf("registering a job: %w", err)
	}
	after := j.Copy()
	before := t.Job(after.Key())
	after.Version, after.CreateIndex = 0, t.written.index
	if before != nil {
		after.Version, after.CreateIndex = before.Version+1, before.CreateIndex
	}
	after.ModifyIndex, after.JobModifyIndex = t.written.index, t.written.index
	t.putJob(before, after)
	return nil
}

// whole says what of a job is missing altogether. Whether it makes sense is for
// [cluster.Job.Validate], before it is proposed.
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

// DeleteJob stops a job, or with purge deletes it with its allocations and
// evaluations. Allocations that may still be running then are counted in the
// running drain of their node, if there is one. The error is [ErrJobNotFound].
func (t *Txn) DeleteJob(k cluster.JobKey, purge bool) error {
	before := t.Job(k)
	if purge {
		return t.purgeJob(k, before)
	}
	if before == nil {
		return ErrJobNotFound
	}
	after := before.Copy()
	after.Stop = true
	after.ModifyIndex = t.written.index
	t.putJob(before, after)
	return nil
}

// purgeJob deletes what there is of a job, be it only its allocations.
func (t *Txn) purgeJob(k cluster.JobKey, j *cluster.Job) error {
	allocs := slices.Collect(t.AllocsByJob(k))
	evals := slices.Collect(t.EvalsByJob(k))
	if j == nil && len(allocs) == 0 && len(evals) == 0 {
		return ErrJobNotFound
	}
	t.countPurged(allocs)
	for _, a := range allocs {
		t.putAlloc(a, nil)
	}
	for _, e := range evals {
		t.putEval(e, nil)
	}
	if j != nil {
		t.putJob(j, nil)
	}
	return nil
}

// countPurged counts those allocations in the drains of their nodes whose tasks
// may go on when their records are gone.
func (t *Txn) countPurged(allocs []*cluster.Allocation) {
	nodes := t.editDrainingNodes()
	for _, a := range allocs {
		if live(a) && nodes.look(a.NodeID) != nil {
			lifecycle.CountPurged(nodes.edit(a.NodeID), a, t.written.index)
		}
	}
	nodes.write()
}
