package opinion

import (
	"math"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Live reports whether the allocation may still run: its client has not reported its end,
// and the servers have not declared it lost.
func Live(a *cluster.Allocation) bool {
	return a.ClientStatus != "complete" && a.ClientStatus != "failed" && a.ClientStatus != "lost"
}

// Stopping reports whether the servers stop the allocation.
func Stopping(a *cluster.Allocation) bool {
	return a.DesiredStatus == "stop" || a.DesiredStatus == "evict"
}

// Leaving reports whether a drain has marked the allocation or the servers stop it.
func Leaving(a *cluster.Allocation) bool { return a.DesiredTransition.Migrate || Stopping(a) }

// Reachable reports whether a node exists and can report on its allocations. A nil node
// does not exist.
func Reachable(n *cluster.Node) bool {
	return n != nil && n.Status != "down" && n.Status != "disconnected"
}

// InTouch reports whether the allocation's client can report on it. The node is the
// allocation's own, or nil.
func InTouch(a *cluster.Allocation, n *cluster.Node) bool {
	return a.ClientStatus != "unknown" && Reachable(n)
}

// Verdict returns the verdict on the allocation's health, and whether it has one.
func Verdict(a *cluster.Allocation) (healthy, exists bool) {
	if a.DeploymentStatus == nil || a.DeploymentStatus.Healthy == nil {
		return false, false
	}
	return *a.DeploymentStatus.Healthy, true
}

// Canary reports whether the allocation is a canary.
func Canary(a *cluster.Allocation) bool {
	return a.DeploymentStatus != nil && a.DeploymentStatus.Canary
}

// HealthyButForMark reports whether the allocation would count as healthy if it
// were not marked. The node is the allocation's own, or nil.
func HealthyButForMark(a *cluster.Allocation, n *cluster.Node) bool {
	if a.DesiredStatus != "run" || a.ClientStatus != "running" || Canary(a) || a.Standby {
		return false
	}
	healthy, _ := Verdict(a)
	return healthy && Reachable(n)
}

// Healthy reports whether the allocation counts towards its group's budget. The
// node is the allocation's own, or nil.
func Healthy(a *cluster.Allocation, n *cluster.Node) bool {
	return !a.DesiredTransition.Migrate && HealthyButForMark(a, n)
}

// TypeOf returns the type of the job version for which the allocation was placed.
func TypeOf(a *cluster.Allocation) cluster.JobType {
	if a.Job == nil {
		return cluster.JobService
	}
	return a.Job.Type
}

// Stage is the place of an allocation in the order of leaving.
type Stage int

// The stages in their order.
const (
	Consumer Stage = iota
	System
	Plugin

	// StageCount is the number of stages.
	StageCount
)

// StageOf returns the allocation's stage.
func StageOf(a *cluster.Allocation) Stage {
	if a.Job == nil {
		return Consumer
	}
	for _, g := range a.Job.TaskGroups {
		if g == nil {
			continue
		}
		for _, t := range g.Tasks {
			if t != nil && t.StoragePlugin {
				return Plugin
			}
		}
	}
	if a.Job.Type == "system" {
		return System
	}
	return Consumer
}

// StoppedBy returns the time by which an allocation that was requested to leave at a time must have
// stopped. Its tasks stop in turns: the leader, the other tasks, sidecars. Then poststop tasks run.
// Then its volumes leave the node. A storage plugin waits for the volumes of others too. The node
// is the allocation's own, or nil. It adds the delays one by one, because the sum of two may wrap
// around. Together they are at most the largest duration.
func StoppedBy(a *cluster.Allocation, n *cluster.Node, at time.Time) time.Time {
	if g := groupOf(a.Job, a.TaskGroup); g != nil {
		end := at.Add(g.ShutdownDelay)
		for turn := range turns {
			begun := end
			for _, t := range g.Tasks {
				if t == nil || turnOf(t) != turn {
					continue
				}
				delay := t.ShutdownDelay
				if turn == turns-1 {
					delay = 5 * time.Minute // poststop tasks are not stopped before
				}
				if task := begun.Add(delay).Add(t.KillTimeout); task.After(end) {
					end = task
				}
			}
		}
		if n != nil && len(g.Volumes) > 0 {
			end = end.Add(n.VolumeAllowance)
		}
		if n != nil && StageOf(a) == Plugin {
			end = end.Add(n.HoldLimit)
		}
		if latest := at.Add(math.MaxInt64); end.After(latest) {
			return latest
		}
		return end
	}
	return at.Add(5 * time.Second) // the default kill timeout of a task
}

// turns counts the turns in which the tasks of a group stop.
const turns = 4

// turnOf returns the turn in which a task stops. Poststop tasks have the last one.
func turnOf(t *cluster.Task) int {
	switch l := t.Lifecycle; {
	case l != nil && l.Hook == "poststop":
		return turns - 1
	case l != nil && l.Sidecar:
		return 2
	case t.Leader:
		return 0
	}
	return 1
}

func groupOf(j *cluster.Job, name string) *cluster.TaskGroup {
	if j == nil {
		return nil
	}
	for _, g := range j.TaskGroups {
		if g != nil && g.Name == name {
			return g
		}
	}
	return nil
}
