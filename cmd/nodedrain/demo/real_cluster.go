package demo

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/dev"
)

// The programs of real tasks. A server needs a second to finish its requests. A report ends by itself,
// a training does not.
const (
	serves   = `trap 'sleep 1; exit 0' TERM; while :; do sleep 1; done`
	reports  = `sleep 10`
	trains   = `while :; do sleep 1; done`
	realKill = 5 * time.Second
	// realHealthy is how long a server must run until it is healthy.
	realHealthy = 2 * time.Second
)

// realCluster has service groups with tight and loose limits, and batch jobs that end before the
// deadline and after it. Its nodes only have names: the clients register them.
func realCluster(nodes int) (*Cluster, error) {
	c := &Cluster{Origin: fmt.Sprintf("%d clients on this machine", nodes)}
	for i := range nodes {
		c.Nodes = append(c.Nodes, &cluster.Node{Name: dev.NodeName(i)})
	}
	for _, j := range []struct {
		id              cluster.JobID
		kind            cluster.JobType
		count, parallel int
		script          string
	}{
		{"web", cluster.JobService, max(2, 3*nodes/2), 2, serves},
		{"api", cluster.JobService, nodes, 1, serves},
		{"mail", cluster.JobService, 3, 1, serves},
		{"report", cluster.JobBatch, max(1, nodes/3), 0, reports},
		{"training", cluster.JobBatch, max(1, nodes/3), 0, trains},
	} {
		task, err := dev.ShellTask(j.script)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", j.id, err)
		}
		task.KillTimeout = realKill
		group := &cluster.TaskGroup{Name: "main", Count: j.count, Tasks: []*cluster.Task{task}}
		job := &cluster.Job{ID: j.id, Type: j.kind, TaskGroups: []*cluster.TaskGroup{group}}
		job.Canonicalize()
		if j.kind == cluster.JobService {
			group.Migrate.MaxParallel, group.Migrate.MinHealthyTime = j.parallel, realHealthy
		}
		c.Jobs = append(c.Jobs, job)
	}
	return c, nil
}

// runAs makes a user run all tasks; empty is the user of this process.
func (c *Cluster) runAs(user string) {
	for _, j := range c.Jobs {
		for _, g := range j.TaskGroups {
			for _, t := range g.Tasks {
				t.User = user
			}
		}
	}
}
