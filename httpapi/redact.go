package httpapi

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/journal"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/redact"
)

// redactedState is a state without the secrets of jobs: the environments of tasks, the
// configurations of their drivers, options of mounts, and texts of clients that may repeat them. Filters and events show
// no more than the answer. It is for one request, and not safe for concurrent use.
type redactedState struct {
	State
	// jobs are the versions of jobs without their secrets, by the version.
	jobs map[*cluster.Job]*cluster.Job
}

// visibleTo returns the state as the caller may read it.
func visibleTo(caller Identity, s State) State {
	if caller.Write {
		return s
	}
	return &redactedState{State: s, jobs: map[*cluster.Job]*cluster.Job{}}
}

// job returns the version of a job without its secrets. It returns the same pointer for a job that
// has none.
func (s *redactedState) job(j *cluster.Job) *cluster.Job {
	if j == nil {
		return nil
	}
	without, known := s.jobs[j]
	if !known {
		without = redact.Job(j)
		s.jobs[j] = without
	}
	return without
}

func (s *redactedState) alloc(a *cluster.Allocation) *cluster.Allocation {
	if a == nil {
		return nil
	}
	job, states := s.job(a.Job), redact.TaskStates(a.TaskStates)
	in, out := a.DataIn.WithoutWhy(), a.DataOut.WithoutWhy()
	if job == a.Job && states == a.TaskStates && a.VolumeHolds == nil && in == a.DataIn && out == a.DataOut {
		return a
	}
	c := *a
	c.Job, c.TaskStates, c.VolumeHolds, c.DataIn, c.DataOut = job, states, a.VolumeHolds.WithoutReasons(), in, out
	return &c
}

func (s *redactedState) allocs(rows iter.Seq[*cluster.Allocation]) iter.Seq[*cluster.Allocation] {
	return func(yield func(*cluster.Allocation) bool) {
		for a := range rows {
			if !yield(s.alloc(a)) {
				return
			}
		}
	}
}

// Alloc returns the allocation, or nil.
func (s *redactedState) Alloc(id cluster.AllocID) *cluster.Allocation {
	return s.alloc(s.State.Alloc(id))
}

// Allocs yields all allocations by id.
func (s *redactedState) Allocs() iter.Seq[*cluster.Allocation] { return s.allocs(s.State.Allocs()) }

// AllocsByNode yields the allocations of a node.
func (s *redactedState) AllocsByNode(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return s.allocs(s.State.AllocsByNode(id))
}

// AllocsByJob yields the allocations of a job.
func (s *redactedState) AllocsByJob(k cluster.JobKey) iter.Seq[*cluster.Allocation] {
	return s.allocs(s.State.AllocsByJob(k))
}

// Job returns the current version of the job, or nil.
func (s *redactedState) Job(k cluster.JobKey) *cluster.Job { return s.job(s.State.Job(k)) }

// Jobs yields all jobs.
func (s *redactedState) Jobs() iter.Seq[*cluster.Job] {
	return func(yield func(*cluster.Job) bool) {
		for j := range s.State.Jobs() {
			if !yield(s.job(j)) {
				return
			}
		}
	}
}

// drain returns the record of a drain without the reasons of clients.
func (s *redactedState) drain(d *cluster.Drain) *cluster.Drain {
	if d == nil || d.VolumesLeft == nil {
		return d
	}
	c := *d
	c.VolumesLeft = d.VolumesLeft.WithoutReasons()
	return &c
}

func (s *redactedState) drains(rows iter.Seq[*cluster.Drain]) iter.Seq[*cluster.Drain] {
	return func(yield func(*cluster.Drain) bool) {
		for d := range rows {
			if !yield(s.drain(d)) {
				return
			}
		}
	}
}

// Story returns a drain and its journal.
func (s *redactedState) Story(id cluster.DrainID) (*cluster.Drain, *journal.Journal) {
	d, j := s.State.Story(id)
	return s.drain(d), j
}

// DrainRecord returns the record of an ended drain, or nil.
func (s *redactedState) DrainRecord(id cluster.DrainID) *cluster.Drain {
	return s.drain(s.State.DrainRecord(id))
}

// Drains yields all records, the newest last.
func (s *redactedState) Drains() iter.Seq[*cluster.Drain] { return s.drains(s.State.Drains()) }

// DrainsByNode yields the records of a node, the newest last.
func (s *redactedState) DrainsByNode(id cluster.NodeID) iter.Seq[*cluster.Drain] {
	return s.drains(s.State.DrainsByNode(id))
}
