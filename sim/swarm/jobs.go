package swarm

import (
	"fmt"
	"math"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// usualCPU is the CPU of most allocations.
const usualCPU = 1000

// drawJobs draws jobs until the target number of allocations is reached. The few jobs that run on
// every node come first.
func (m *population) drawJobs() {
	for _, kind := range []struct {
		is   trait
		name string
		t    cluster.JobType
	}{{systemJobs, "logs", cluster.JobSystem}, {sysbatchJobs, "scan", cluster.JobSysBatch}} {
		if m.draft.has(kind.is) {
			m.drawJob(kind.name, kind.t, false)
		}
	}
	if m.draft.has(plugins) {
		d := m.draft.dice("plugins")
		m.drawJob("csi", one(d, cluster.JobSystem, cluster.JobService), true)
		if d.odds(0.2) {
			m.drawJob("nfs", one(d, cluster.JobService, cluster.JobBatch, cluster.JobSysBatch), true)
		}
	}
	target := m.draft.dice("allocs").within(m.draft.shape.allocs)
	for i := 1; m.allocs < target || i <= leastJobs; i++ {
		d := m.draft.dice(fmt.Sprintf("job/%d", i))
		if m.draft.has(batchWork) && d.odds(0.3) {
			m.drawJob(fmt.Sprintf("sum%d", i), cluster.JobBatch, false)
		} else {
			m.drawJob(fmt.Sprintf("web%d", i), cluster.JobService, false)
		}
	}
}

// leastJobs is the least number of jobs besides those that run on every node.
const leastJobs = 2

// drawJob draws a job and its allocations, and perhaps jobs with the same id in other namespaces.
func (m *population) drawJob(name string, t cluster.JobType, plugin bool) {
	d, away, apart := m.draft.dice("job/"+name), m.draft.dice("away/"+name), m.draft.dice("apart/"+name)
	spaces := []cluster.Namespace{cluster.DefaultNamespace}
	if m.draft.shows(d, namespaces) {
		spaces = some(d, d.between(1, 3), []cluster.Namespace{cluster.DefaultNamespace, "blue", "green"})
	}
	for i, space := range spaces {
		if i > 0 && m.allocs >= m.draft.shape.allocs.most || t.EveryNode() && m.everywhere >= m.draft.shape.everywhere {
			return // it would fill a small world
		}
		if t.EveryNode() {
			m.everywhere++
		}
		j := scenario.Job{Key: cluster.JobKey{Namespace: space, ID: cluster.JobID(name)}}
		if t != cluster.JobService {
			j.Type = t
		}
		if d.odds(0.1) {
			j.Priority = d.between(1, 100)
		}
		j.Unregistered = m.draft.has(lateJobs) && d.odds(0.1)
		for i := range m.groupsOf(d, t) {
			g := m.drawGroup(d, t)
			drawAway(away, &g)
			g.Distinct = !t.EveryNode() && apart.odds(0.05)
			g.Name, g.Plugin = name, plugin && i == 0
			if i > 0 {
				g.Name = string(rune('a' + i))
			}
			j.Groups = append(j.Groups, g)
		}
		m.draft.s.Jobs = append(m.draft.s.Jobs, j)
		if !j.Unregistered {
			m.place(d, len(m.draft.s.Jobs)-1, t)
		}
	}
}

// groupsOf draws how many groups a job has.
func (m *population) groupsOf(d dice, t cluster.JobType) int {
	if m.draft.shows(d, manyGroups) && !t.EveryNode() {
		return d.between(2, 3)
	}
	return 1
}

// drawGroup draws a group without its name.
func (m *population) drawGroup(d dice, t cluster.JobType) scenario.Group {
	g := scenario.Group{Count: 1}
	if !t.EveryNode() {
		g.Count = m.drawCount(d)
	}
	if t == cluster.JobService {
		m.drawPace(d, &g)
	}
	m.drawStop(d, &g)
	if d.odds(0.3) {
		g.LostAfter = d.span(5*time.Second, 3*time.Minute)
	}
	if m.draft.shows(d, disks) {
		g.Sticky = d.odds(0.7)
		g.Migrate = !g.Sticky || d.odds(0.7)
	}
	if m.draft.has(tight) {
		g.CPU = one(d, int64(usualCPU), usualCPU, usualCPU, usualCPU/2, 2*usualCPU)
	}
	if m.draft.has(classes) && !t.EveryNode() && d.odds(0.3) {
		g.Classes = []string{one(d, "a", "b")}
	}
	return g
}

// drawAway draws what becomes of allocations that cannot be reached.
func drawAway(d dice, g *scenario.Group) {
	g.NoReplace = d.odds(0.1)
	g.KeepReplacement = g.LostAfter > 0 && !g.NoReplace && d.odds(0.5)
}

func (m *population) drawCount(d dice) int {
	switch {
	case m.draft.shows(d, zeroes) && d.odds(0.2):
		return 0
	case d.odds(0.2):
		return d.between(1, 2)
	}
	return d.within(m.draft.shape.count)
}

// drawPace draws the limit of a service group and the times of its health verdicts.
func (m *population) drawPace(d dice, g *scenario.Group) {
	switch draw := d.between(1, 100); {
	case m.draft.shows(d, zeroes) && draw <= 25:
		g.MaxParallel = new(0)
	case draw <= 45:
		g.MaxParallel = new(1)
	case draw <= 65:
		g.MaxParallel = new(2)
	case draw <= 80:
		g.MaxParallel = new(max(1, d.between(1, g.Count)))
	case draw <= 85:
		g.MaxParallel = new(g.Count + d.between(1, 2))
	}
	g.MinHealthy = d.span(time.Second, 20*time.Second)
	if d.odds(0.8) {
		g.HealthyDeadline = g.MinHealthy + d.span(10*time.Second, 2*time.Minute)
	}
}

// drawStop draws the stop time of the group.
func (m *population) drawStop(d dice, g *scenario.Group) {
	if d.odds(0.6) {
		g.Kill = d.span(time.Second, 30*time.Second)
	}
	if m.draft.shows(d, longKill) && d.odds(0.3) {
		g.Kill = d.span(time.Minute, 4*time.Minute)
		if d.odds(0.3) {
			g.Kill = math.MaxInt64 - d.span(time.Millisecond, time.Hour) // sums with it overflow
		}
	}
	if d.odds(0.2) {
		g.Shutdown = d.span(time.Second, 10*time.Second)
	}
}
