package witness

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// The judgements below repeat on purpose what the nouns' own methods say: a
// second opinion formed by the same code would be none.

// healthyButForMark reports whether the allocation would count as healthy if it
// were not marked.
func healthyButForMark(a *cluster.Allocation, s State) bool {
	if a.DesiredStatus != "run" || a.ClientStatus != "running" {
		return false
	}
	verdict := a.DeploymentStatus
	if verdict == nil || verdict.Canary || verdict.Healthy == nil || !*verdict.Healthy {
		return false
	}
	return inTouch(s.Node(a.NodeID))
}

// inTouch reports whether a node exists and can say what becomes of its
// allocations.
func inTouch(node *cluster.Node) bool {
	return node != nil && node.Status != "down" && node.Status != "disconnected"
}

func healthy(a *cluster.Allocation, s State) bool {
	return !a.DesiredTransition.Migrate && healthyButForMark(a, s)
}

// countHealthy counts the healthy allocations of each group of a job.
func countHealthy(s State, job cluster.JobKey) map[string]int {
	counts := make(map[string]int)
	for a := range s.AllocsByJob(job) {
		if healthy(a, s) {
			counts[a.TaskGroup]++
		}
	}
	return counts
}

// budget returns what the group wants running and how few healthy ones its
// migrate block allows, and false if there is no such group.
func budget(s State, g cluster.GroupKey) (count, limit int, ok bool) {
	job := s.Job(g.Job)
	if job == nil {
		return 0, 0, false
	}
	for _, tg := range job.TaskGroups {
		if tg == nil || tg.Name != g.Name {
			continue
		}
		count, maxParallel := tg.Count, 1
		if tg.Migrate != nil {
			maxParallel = tg.Migrate.MaxParallel
		}
		if job.Stop {
			count = 0
		}
		return count, count - maxParallel, true
	}
	return 0, 0, false
}

// live reports whether the allocation may still run something.
func live(a *cluster.Allocation) bool {
	return a.ClientStatus != "complete" && a.ClientStatus != "failed" && a.ClientStatus != "lost"
}

// turn is the place of the allocation in the order of leaving.
type turn int

const (
	consumer turn = iota
	system
	plugin
)

func turnOf(a *cluster.Allocation) turn {
	if a.Job == nil {
		return consumer
	}
	for _, g := range a.Job.TaskGroups {
		if g == nil {
			continue
		}
		for _, t := range g.Tasks {
			if t != nil && t.StoragePlugin {
				return plugin
			}
		}
	}
	if a.Job.Type == "system" {
		return system
	}
	return consumer
}

// hasToLeave reports whether the drain has to wait for the allocation at all.
func hasToLeave(a *cluster.Allocation, d *cluster.Drain) bool {
	return !d.Strategy.IgnoreSystemJobs || turnOf(a) != system
}

// cutoff is when the drain begins to take what is left, and false if never.
func cutoff(d *cluster.Drain) (time.Time, bool) {
	switch deadline := d.Strategy.Deadline; {
	case deadline < 0:
		return d.UpdatedAt, true
	case deadline > 0:
		return d.Strategy.ForceDeadline, true
	}
	return time.Time{}, false
}

// stoppedBy returns when an allocation that is asked to leave at a time has to be
// gone. The delays are added one by one: the sum of two may wrap around.
func stoppedBy(a *cluster.Allocation, asked time.Time) time.Time {
	if a.Job != nil {
		for _, g := range a.Job.TaskGroups {
			if g == nil || g.Name != a.TaskGroup {
				continue
			}
			end := asked
			for _, t := range g.Tasks {
				if t == nil {
					continue
				}
				if task := asked.Add(t.ShutdownDelay).Add(t.KillTimeout); task.After(end) {
					end = task
				}
			}
			return end.Add(g.ShutdownDelay)
		}
	}
	return asked.Add(5 * time.Second) // the kill timeout of a task that names none
}

// waitOver reports whether at a time the drain of the node need no longer wait
// for an allocation on it that is still live: the deadline has taken it, and its
// stop time and the margin have passed since, or nobody can say how it goes.
func (w *Witness) waitOver(a *cluster.Allocation, node *cluster.Node, d *cluster.Drain, at time.Time) bool {
	from, ends := cutoff(d)
	if !ends || at.Before(from) || !asked(a) {
		return false
	}
	if a.ClientStatus == "unknown" || !inTouch(node) {
		return true
	}
	since := a.DesiredTransition.MarkedAt
	if !a.DesiredTransition.Migrate {
		since = a.StoppedAt
	}
	if since.After(from) {
		from = since
	}
	return !at.Before(stoppedBy(a, from).Add(w.options.StopMargin))
}

// asked reports whether somebody has asked for the allocation to go.
func asked(a *cluster.Allocation) bool {
	return a.DesiredTransition.Migrate || a.DesiredStatus != "run"
}
