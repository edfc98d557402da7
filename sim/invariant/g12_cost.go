package invariant

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// G12 cost: work follows what changed. A drainer that follows a job looks at each of its
// changes. So it follows no job longer than a drain needs it.

// checkFollowed finds jobs that a drainer follows and that no running drain concerns: none of
// their allocations is live on a draining node, or was marked by its drain.
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
			j.find(FollowedForNothing, aboutJob(job), "job %s is followed, and no running drain concerns it", job)
		}
	}
}
