package httpapi

import (
	"encoding/json"
	"iter"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// redacted stands for a value that only callers with the right to write see.
const redacted = "[redacted]"

// redactedState is a state without the secrets of jobs: the environments of tasks, the
// configurations of their drivers, and texts of clients that may repeat them. Filters and events see
// no more than the answer. It is for one request, and not safe for concurrent use.
type redactedState struct {
	State
	// jobs are the versions of jobs without their secrets, by the version.
	jobs map[*cluster.Job]*cluster.Job
}

// asSeenBy returns the state as the caller may see it.
func asSeenBy(caller Identity, s State) State {
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
		without = withoutSecrets(j)
		s.jobs[j] = without
	}
	return without
}

func withoutSecrets(j *cluster.Job) *cluster.Job {
	if !hasSecrets(j) {
		return j
	}
	c := j.Copy()
	for _, g := range c.TaskGroups {
		if g == nil {
			continue
		}
		for i := range g.Volumes {
			g.Volumes[i].MountOptions = nil
		}
		for _, t := range g.Tasks {
			if t == nil {
				continue
			}
			for name := range t.Env {
				t.Env[name] = redacted
			}
			t.Config = withoutValues(t.Config)
		}
	}
	return c
}

// withoutValues returns the configuration of a driver with its keys alone.
func withoutValues(config json.RawMessage) json.RawMessage {
	if len(config) == 0 {
		return config
	}
	var values map[string]json.RawMessage
	if json.Unmarshal(config, &values) != nil {
		return json.RawMessage(`{}`) // an older server has taken something that is no object
	}
	hidden := make(map[string]string, len(values))
	for key := range values {
		hidden[key] = redacted
	}
	text, err := json.Marshal(hidden)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return text
}

func hasSecrets(j *cluster.Job) bool {
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		if slices.ContainsFunc(g.Volumes, func(r cluster.VolumeRequest) bool { return r.MountOptions != nil }) {
			return true
		}
		for _, t := range g.Tasks {
			if t != nil && (len(t.Env) > 0 || len(t.Config) > 0) {
				return true
			}
		}
	}
	return false
}

func (s *redactedState) alloc(a *cluster.Allocation) *cluster.Allocation {
	if a == nil {
		return nil
	}
	job, states := s.job(a.Job), withoutTexts(a.TaskStates)
	if job == a.Job && states == a.TaskStates && a.VolumeHolds == nil {
		return a
	}
	c := *a
	c.Job, c.TaskStates, c.VolumeHolds = job, states, withoutReasons(a.VolumeHolds)
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

// withoutReasons are the volumes without the texts of plugins.
func withoutReasons(h *cluster.VolumeHolds) *cluster.VolumeHolds {
	c := h.Copy()
	if c != nil {
		for i := range c.Volumes {
			c.Volumes[i].Reason = ""
		}
	}
	return c
}
