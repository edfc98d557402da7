package scheduler

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Preview returns the plan that the scheduler would make if the job were registered in the view. It
// writes nothing. The plan has at most most allocations that replace no other: further ones are
// neither placed nor queued. The job must be valid, and stays the caller's.
func Preview(v View, j *cluster.Job, now time.Time, most int) *cluster.Plan {
	ids := RandomIDs()
	eval := JobEval(j, cluster.TriggerJobRegister, now, ids.Eval())
	plan, _ := schedule(newWorld(registered{v, j}, new(arrays)), eval, now, ids, most)
	return plan
}

// registered is a view in which a job is registered.
type registered struct {
	View
	job *cluster.Job
}

// Job returns the current version of the job, or nil.
func (r registered) Job(key cluster.JobKey) *cluster.Job {
	if key == r.job.Key() {
		return r.job
	}
	return r.View.Job(key)
}
