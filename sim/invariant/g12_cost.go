package invariant

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// G12 cost: the work of a drainer is proportional to the changes that concern a drain. A
// drainer looks at each change of a job that it follows. So it follows a job only as long as a
// drain needs it.

// checkFollowed finds jobs that the drainer follows needlessly: none of their allocations is
// live on a draining node or has a mark of a running drain.
func (j *progressJudge) checkFollowed(followed []cluster.JobKey) {
	if len(followed) == 0 {
		return
	}
	needed := map[cluster.JobKey]bool{}
	for _, n := range j.tables.draining {
		for _, a := range n.live {
			needed[a.group.key.Job] = true
		}
		for _, a := range j.tables.marked[n.drain().ID] {
			needed[a.group.key.Job] = true
		}
	}
	for _, job := range followed {
		if !needed[job] {
			j.find(NeedlesslyFollowed, aboutJob(job), "the drainer follows job %s, but no running drain concerns it", job)
		}
	}
}
