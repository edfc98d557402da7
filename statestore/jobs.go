package statestore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
)

// UpsertJob registers a job, or its next version. Allocations keep the version for which they were
// placed. Those for which the versions differ only in services get the new one. The error states what is
// missing in the job. The caller has filled in defaults with [cluster.Job.Canonicalize].
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
	edits := editServices(t, before, after)
	t.rows.putJob(before, after)
	edits.write()
	return nil
}

// editServices gives the new version of a job to the allocations whose services alone it changes: see
// [cluster.Job.GivesServices]. The entry has no time, so their ModifyTime stays.
func editServices(t *Txn, before, after *cluster.Job) *allocEdits {
	edits := editAllocs(&t.rows)
	if before == nil || !before.HasServices() && !after.HasServices() || versionIn(t.rows.tables) < cluster.VersionOfServices {
		return edits
	}
	for a := range t.State().AllocsByJob(after.Key()) {
		if after.GivesServices(a) {
			c := edits.edit(a, a.ModifyTime)
			c.Job, c.AllocModifyIndex = after, t.rows.written.index
		}
	}
	return edits
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

// DeleteJob stops a job, or with purge deletes it with all of its allocations and evaluations. The
// running drain of a node counts the purged allocations that run there. Purge only what has ended:
// for the request of an operator see [PurgeJob]. The error is [ErrJobNotFound].
func (t *Txn) DeleteJob(k cluster.JobKey, purge bool) error {
	before := t.State().Job(k)
	if purge {
		return deleteJob(t, k, func(*cluster.Allocation) bool { return true })
	}
	if before == nil {
		return ErrJobNotFound
	}
	after := before.Copy()
	after.Stop = true
	after.ModifyIndex = t.rows.written.index
	if versionIn(t.rows.tables) >= cluster.VersionOfStopIndex {
		after.JobModifyIndex = t.rows.written.index
	}
	t.rows.putJob(before, after)
	return nil
}

// PurgeJob deletes a job with its evaluations, and with its allocations whose end is certain: a client
// has reported it, or it is confirmed. It stops the others at the time of the entry, and their rows
// stay: without them a drain would not wait for tasks that run. An entry without a time is from a
// proposer that has not read the cluster version, and the last write of the row stands for it. The
// collection deletes these rows when nothing needs them. Below [cluster.VersionOfConfirmation] the
// purge deletes all rows. The error is [ErrJobNotFound].
func PurgeJob(t *Txn, k cluster.JobKey, at time.Time) error {
	if versionIn(t.rows.tables) < cluster.VersionOfConfirmation {
		return t.DeleteJob(k, true)
	}
	w := planWriter{txn: t, edits: editAllocs(&t.rows)}
	for a := range t.State().AllocsByJob(k) {
		if !a.ClientTerminal() {
			w.at = cmp.Or(at.UTC(), a.ModifyTime)
			w.stop(a, cluster.PlanStop{Alloc: a.ID, Description: cluster.DescPurged})
		}
	}
	if err := deleteJob(t, k, func(a *cluster.Allocation) bool { return a.ClientTerminal() && !a.Unconfirmed() }); err != nil {
		return err
	}
	w.edits.write()
	return nil
}

// deleteJob deletes a job with its evaluations, and those of its allocations that go with it. The job
// itself may be gone already.
func deleteJob(t *Txn, k cluster.JobKey, goes func(*cluster.Allocation) bool) error {
	job, allocs, evals := t.State().Job(k), slices.Collect(t.State().AllocsByJob(k)), slices.Collect(t.State().EvalsByJob(k))
	if job == nil && len(allocs) == 0 && len(evals) == 0 {
		return ErrJobNotFound
	}
	allocs = slices.DeleteFunc(allocs, func(a *cluster.Allocation) bool { return !goes(a) })
	countPurged(t, allocs)
	for _, a := range allocs {
		t.rows.putAlloc(a, nil)
	}
	for _, e := range evals {
		t.rows.putEval(e, nil)
	}
	if job != nil {
		t.rows.putJob(job, nil)
	}
	return nil
}

// countPurged counts purged allocations whose tasks run in the drains of their nodes. From
// [cluster.VersionOfConfirmation] on there are none.
func countPurged(t *Txn, allocs []*cluster.Allocation) {
	nodes := editDrainingNodes(&t.rows)
	for _, a := range allocs {
		if live(a) && nodes.row(a.NodeID) != nil {
			lifecycle.CountPurged(nodes.edit(a.NodeID), a, t.rows.written.index)
		}
	}
	nodes.write()
}
