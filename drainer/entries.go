package drainer

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// wish is one thing to write: a mark, or a group to re-evaluate.
type wish struct {
	mark Mark
	// reevaluate says that there is no mark: the group of one is to be
	// re-evaluated.
	reevaluate bool
	// withNode says that the mark is its node's wish rather than its group's.
	withNode bool
}

// entry is one raft write, begun or about to be.
type entry struct {
	wishes      []wish
	completions []Completion
	// reply is told what became of what its group wished; nil if nothing did.
	reply func(DrainReply)
}

// Estimates of what an item adds to an entry besides its ids, in bytes. They are
// above what the codec of shims writes; see its tests.
const (
	markBytes       = 96
	evalBytes       = 320
	completionBytes = 64
	// minBytesPerEntry has room for one mark and its evaluation with long ids.
	minBytesPerEntry = 4 << 10
)

func (w wish) bytes() int {
	m := w.mark
	return markBytes + len(m.Alloc) + len(m.Node) + len(m.Drain) + groupBytes(m.Group)
}

func groupBytes(g cluster.GroupKey) int {
	return len(g.Job.Namespace) + len(g.Job.ID) + len(g.Name)
}

// compareWishes orders wishes as their marks are judged.
func compareWishes(a, b wish) int { return a.mark.compare(b.mark) }

// partition cuts sorted wishes into entries within the bounds. The evaluation of
// a job counts as an id in every entry that holds a wish of the job: a mark is
// never without its evaluation.
func partition(wishes []wish, maxIDs, maxBytes int) [][]wish {
	var parts [][]wish
	start, ids, bytes := 0, 0, 0
	for i, w := range wishes {
		addIDs, addBytes := 1, w.bytes()
		if i == start || w.mark.Group.Job != wishes[i-1].mark.Group.Job {
			addIDs, addBytes = addIDs+1, addBytes+evalBytes+groupBytes(w.mark.Group)
		}
		if i > start && (ids+addIDs > maxIDs || bytes+addBytes > maxBytes) {
			parts = append(parts, wishes[start:i:i])
			start, ids, bytes = i, 0, 0
			addIDs, addBytes = 2, w.bytes()+evalBytes+groupBytes(w.mark.Group)
		}
		ids, bytes = ids+addIDs, bytes+addBytes
	}
	if start < len(wishes) {
		parts = append(parts, wishes[start:])
	}
	return parts
}

// partitionCompletions cuts completions into entries within the bounds.
func partitionCompletions(completions []Completion, maxIDs, maxBytes int) [][]Completion {
	bytes := completionBytes
	for _, c := range completions {
		bytes = max(bytes, completionBytes+len(c.Node)+len(c.Drain))
	}
	return slices.Collect(slices.Chunk(completions, max(1, min(maxIDs, maxBytes/bytes))))
}

// marksOf builds the raft entry for wishes, with an evaluation for each job.
func marksOf(v View, wishes []wish, now time.Time, p Policy, newID func() cluster.EvalID) *Marks {
	m := &Marks{At: now, Policy: p}
	for _, w := range wishes {
		if w.reevaluate {
			m.Reevaluate = append(m.Reevaluate, w.mark.Group)
		} else {
			m.Marks = append(m.Marks, w.mark)
		}
		if n := len(m.Evals); n == 0 || m.Evals[n-1].JobKey() != w.mark.Group.Job {
			m.Evals = append(m.Evals, evalFor(v, w.mark, now, newID()))
		}
	}
	return m
}

// evalFor is the evaluation of a mark's job. Type and priority are those of the
// job's current version; if the job is gone, of the version an allocation of the
// group was placed for.
func evalFor(v View, m Mark, now time.Time, id cluster.EvalID) *cluster.Evaluation {
	e := &cluster.Evaluation{
		ID:          id,
		Namespace:   m.Group.Job.Namespace,
		JobID:       m.Group.Job.ID,
		Type:        cluster.JobService,
		Priority:    cluster.DefaultJobPriority,
		TriggeredBy: cluster.TriggerNodeDrain,
		Status:      cluster.EvalPending,
		CreateTime:  now,
		ModifyTime:  now,
	}
	if job := jobOf(v, m.Group); job != nil {
		e.Type, e.Priority = job.Type, job.Priority
	}
	return e
}

// jobOf is the group's job, or the version one of its allocations was placed for
// if the job is gone; nil if nobody knows it.
func jobOf(v View, key cluster.GroupKey) *cluster.Job {
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
