package placement

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Still checks a state in which nothing happens: no node has room for a group whose evaluation is
// blocked, and no replacement is overdue. Call it when the effects of all faults have ended. It ignores groups that request
// devices, volumes or attributes of nodes.
func (j *Judge) Still(now time.Time, s *statestore.Snapshot) {
	j.judgeOverdue(now, s)
	for e := range s.WorkView().BlockedEvals() {
		key := cluster.JobKey{Namespace: e.Namespace, ID: e.JobID}
		job := s.Job(key)
		if job == nil || job.Stop || len(job.Constraints) > 0 {
			continue
		}
		p := &plan{judge: j, now: now, index: s.Index(), after: s, key: key, job: job}
		for _, g := range job.TaskGroups {
			if e.Queued[g.Name] > 0 && plain(g) {
				p.judgeRoom(g)
			}
		}
	}
}

// plain reports whether a group requests resources, ports and cores only.
func plain(g *cluster.TaskGroup) bool {
	for _, t := range g.Tasks {
		if len(t.Devices) > 0 || len(t.Constraints) > 0 || t.Driver != "" {
			return false
		}
	}
	return len(g.Constraints) == 0 && len(g.Volumes) == 0
}

// judgeRoom checks that no node has room for another allocation of a group that lacks one.
func (p *plan) judgeRoom(g *cluster.TaskGroup) {
	held := make(map[cluster.NodeID]bool)
	if onEveryNode(p.job) {
		for a := range p.after.AllocsByJob(p.key) {
			if a.TaskGroup == g.Name && (Holds(p.after, a, g, p.now) || runs(a)) {
				held[a.NodeID] = true
			}
		}
	}
	if distinct(p.job, g) {
		for a := range p.after.AllocsByJob(p.key) {
			if a.TaskGroup == g.Name && staysThere(a) {
				held[a.NodeID] = true
			}
		}
	}
	for n := range p.after.Nodes() {
		if accepts(n) && matches(n, p.job, g) && !held[n.ID] && hasRoom(p, n, resourcesOf(g)) && p.hasPorts(n, g) && hasCores(p, n, g) {
			p.add(BlockedWithRoom, invariant.Violation{Node: n.ID, Group: cluster.GroupKey{Job: p.key, Name: g.Name}},
				"the group waits for room, and the node has room for it")
			return
		}
	}
}

// hasRoom reports whether a node has room for one more allocation with these resources.
func hasRoom(p *plan, n *cluster.Node, need cluster.Resources) bool {
	live, sum := p.used(n)
	return (n.MaxAllocs <= 0 || live < n.MaxAllocs) && fits(n, plus(sum, need))
}
