package setting

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// defaultAge is the default age of an allocation at the beginning.
const defaultAge = time.Hour

// Allocs returns the allocations of a declaration, with j as their job.
func Allocs(a scenario.Alloc, j *cluster.Job, now time.Time, newID func() cluster.AllocID) []*cluster.Allocation {
	first, count := a.Indexes.First, a.Indexes.Count
	if count == 0 {
		count = len(a.On)
	}
	allocs := make([]*cluster.Allocation, count)
	for i := range allocs {
		allocs[i] = alloc(a, j, first+i, a.On[i%len(a.On)], now)
		allocs[i].ID = newID()
	}
	return allocs
}

// JobAllocs returns the allocations of all declarations of one job. It links replacements to the
// allocations that they have replaced.
func JobAllocs(declared []scenario.Alloc, j *cluster.Job, now time.Time, newID func() cluster.AllocID) []*cluster.Allocation {
	var built []*cluster.Allocation
	byIndex := map[int]*cluster.Allocation{}
	for _, d := range declared {
		for _, a := range Allocs(d, j, now, newID) {
			if d.Replaces != nil && byIndex[*d.Replaces] != nil {
				old := byIndex[*d.Replaces]
				a.PreviousAllocation, old.NextAllocation = old.ID, a.ID
			}
			if index, ok := Index(a); ok {
				byIndex[index] = a
			}
			built = append(append(built, failed(a, d.Failures, newID)...), a)
		}
	}
	return built
}

// failed returns n allocations that failed one after the other on the node of an allocation, which has
// replaced the last of them.
func failed(a *cluster.Allocation, n int, newID func() cluster.AllocID) []*cluster.Allocation {
	all := make([]*cluster.Allocation, n)
	for next := a; n > 0; next = all[n] {
		n--
		all[n] = next.Copy()
		all[n].ID, all[n].NextAllocation, all[n].PreviousAllocation = newID(), next.ID, ""
		all[n].CreateTime = next.CreateTime.Add(-time.Minute)
		all[n].ClientStatus, all[n].DesiredStatus = cluster.ClientFailed, cluster.DesiredStop
		all[n].DesiredDescription, all[n].StoppedAt = cluster.DescRescheduled, next.CreateTime
		next.PreviousAllocation = all[n].ID
	}
	return all
}

func alloc(a scenario.Alloc, j *cluster.Job, index int, on cluster.NodeID, now time.Time) *cluster.Allocation {
	built := &cluster.Allocation{
		Namespace: a.Group.Job.Namespace, JobID: a.Group.Job.ID, TaskGroup: a.Group.Name, Job: j,
		Name:   fmt.Sprintf("%s.%s[%d]", a.Group.Job.ID, a.Group.Name, index),
		NodeID: on, NodeName: string(on),
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning,
		CreateTime: now.Add(-age(a)), DeploymentStatus: health(a, j, now),
	}
	if g := j.Group(a.Group.Name); g != nil {
		built.Resources = g.Resources()
	}
	if a.Client != "" {
		built.ClientStatus = a.Client
	}
	if a.Desired != "" {
		built.DesiredStatus = a.Desired
	}
	if built.DesiredStatus != cluster.DesiredRun {
		built.StoppedAt = now
	}
	built.DesiredTransition.Migrate = a.Marked
	return built
}

func age(a scenario.Alloc) time.Duration {
	if a.Age == 0 {
		return defaultAge
	}
	return a.Age
}

func health(a scenario.Alloc, j *cluster.Job, now time.Time) *cluster.DeploymentStatus {
	verdict := a.Health
	if verdict == "" && j != nil && !j.Type.ToCompletion() {
		verdict = "good"
	}
	if verdict == "" || verdict == "none" {
		if !a.Canary {
			return nil
		}
		return &cluster.DeploymentStatus{Canary: true}
	}
	healthy := verdict == "good"
	return &cluster.DeploymentStatus{Healthy: &healthy, Timestamp: now.Add(-age(a)), Canary: a.Canary}
}

// Index returns the index in an allocation's name. ok is false if there is none.
func Index(a *cluster.Allocation) (index int, ok bool) {
	place, ok := strings.CutPrefix(a.Name, string(a.JobID)+"."+a.TaskGroup+"[")
	place, closed := strings.CutSuffix(place, "]")
	index, err := strconv.Atoi(place)
	return index, ok && closed && err == nil
}
