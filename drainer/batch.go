package drainer

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Estimates of the bytes that an item adds to an entry besides its ids. A compact codec writes
// less.
const (
	markBytes       = 96
	evalBytes       = 320
	completionBytes = 64
	// minBytesPerEntry has room for one mark and its evaluation with long ids.
	minBytesPerEntry = 4 << 10
)

// cut divides the items into entries with at most maxIDs ids and maxBytes bytes. Completions
// come first, in separate entries. Every entry with a mark of a job, or a group to re-evaluate,
// also counts an evaluation of the job, because a mark always has its evaluation.
func (w writes) cut(maxIDs, maxBytes int) []writes {
	var entries []writes
	ids, bytes := 0, 0
	add := func(fresh bool, moreIDs, moreBytes int) *writes {
		if fresh || ids+moreIDs > maxIDs || bytes+moreBytes > maxBytes {
			entries = append(entries, writes{})
			ids, bytes = 0, 0
		}
		ids, bytes = ids+moreIDs, bytes+moreBytes
		return &entries[len(entries)-1]
	}
	for i, c := range w.completions {
		e := add(i == 0, 1, completionBytes+len(c.Node)+len(c.Drain))
		e.completions = append(e.completions, c)
	}
	// The marks of one job share its evaluation.
	for i, m := range w.marks {
		mark, eval := markBytes+len(m.Alloc)+len(m.Node)+len(m.Drain)+groupBytes(m.Group), evalBytes+groupBytes(m.Group)
		if i > 0 && w.marks[i-1].Group.Job == m.Group.Job && ids < maxIDs && bytes+mark <= maxBytes {
			eval = 0
		}
		e := add(i == 0, 1+min(1, eval), mark+eval)
		e.marks = append(e.marks, m)
	}
	for i, key := range w.reevaluate {
		e := add(i == 0, minIDsPerEntry, evalBytes+2*groupBytes(key))
		e.reevaluate = append(e.reevaluate, key)
	}
	return entries
}

func groupBytes(g cluster.GroupKey) int {
	return len(g.Job.Namespace) + len(g.Job.ID) + len(g.Name)
}

// evalsFor returns one evaluation for each job of the marks or groups of an entry.
func evalsFor(v rules.View, w writes, now time.Time, newID func() cluster.EvalID) []*cluster.Evaluation {
	groups := w.reevaluate
	for _, m := range w.marks {
		groups = append(groups, m.Group)
	}
	var evals []*cluster.Evaluation
	for i, g := range groups {
		if i > 0 && g.Job == groups[i-1].Job {
			continue
		}
		e := &cluster.Evaluation{
			ID: newID(), Namespace: g.Job.Namespace, JobID: g.Job.ID, Type: cluster.JobService, Priority: cluster.DefaultJobPriority,
			TriggeredBy: cluster.TriggerNodeDrain, Status: cluster.EvalPending, CreateTime: now, ModifyTime: now,
		}
		if job := jobOf(v, g); job != nil {
			e.Type, e.Priority = job.Type, job.Priority
		}
		evals = append(evals, e)
	}
	return evals
}

// jobOf returns the group's job. If the job is gone, it returns the job version of one of the
// group's allocations, or nil if there is none.
func jobOf(v rules.View, key cluster.GroupKey) *cluster.Job {
	if job := v.Job(key.Job); job != nil {
		return job
	}
	for a := range v.GroupAllocs(key) {
		if a.Job != nil {
			return a.Job
		}
	}
	return nil
}
