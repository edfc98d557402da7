package scheduler

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// GivenUp returns the ended allocations of the job that no plan replaces because they were placed again
// [cluster.MaxReschedules] times in a row, by id. Their slots stay empty until the tasks or the disk of the group
// change.
func GivenUp(v View, k cluster.JobKey) (ids []cluster.AllocID) {
	job := jobView{view: v, job: v.Job(k)}
	for a := range v.UnconcludedAllocs(k) {
		if job.group(a) == nil || a.ServerTerminal() || !a.ClientTerminal() {
			continue
		}
		if job.standEnded(a) == spent {
			ids = append(ids, a.ID)
		}
	}
	slices.Sort(ids)
	return ids
}
