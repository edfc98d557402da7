package dev

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// The programs of the example tasks. A server prints a line each second. When it must stop, it first
// finishes three requests.
const (
	serves = `trap 'for i in 3 2 1; do echo "$(date +%T) stopping: $i requests to finish"; sleep 1; done; echo "$(date +%T) stopped"; exit 0' TERM
n=0
while :; do n=$((n+1)); echo "$(date +%T) $NOMAD_ALLOC_NAME served request $n"; sleep 1; done`
	computes = `i=0
while [ $i -lt 30 ]; do i=$((i+1)); echo "$(date +%T) $NOMAD_ALLOC_NAME: part $i of 30"; sleep 1; done
echo "$(date +%T) the report is ready"`
)

// killTimeout is how long an example task may take to stop.
const killTimeout = 10 * time.Second

// exampleJobs returns two services and a batch job.
func (c *Cluster) exampleJobs() ([]*cluster.Job, error) {
	var jobs []*cluster.Job
	for _, j := range []struct {
		id     cluster.JobID
		kind   cluster.JobType
		count  int
		script string
		mock   map[string]string
	}{
		{"web", cluster.JobService, 4, serves, simulatedService()},
		{"api", cluster.JobService, 2, serves, simulatedService()},
		{"report", cluster.JobBatch, 1, computes, map[string]string{"run_for": "30s", "stdout_string": "the report takes 30 seconds\n"}},
	} {
		settings := any(map[string]any{"command": "/bin/sh", "args": []string{"-c", j.script}})
		if c.config.Simulated {
			settings = j.mock
		}
		config, err := json.Marshal(settings)
		if err != nil {
			return nil, fmt.Errorf("the config of job %s: %w", j.id, err)
		}
		group := &cluster.TaskGroup{Name: "main", Count: j.count, Tasks: []*cluster.Task{{
			Name: "main", Driver: c.driver(), Config: config, User: c.config.User, KillSignal: "SIGTERM", KillTimeout: killTimeout,
			Resources: cluster.Resources{CPU: 100, MemoryMB: 32},
		}}}
		if j.kind == cluster.JobService {
			group.Migrate = cluster.DefaultMigrateStrategy()
			group.Migrate.MinHealthyTime = 2 * time.Second
		}
		jobs = append(jobs, &cluster.Job{ID: j.id, Type: j.kind, TaskGroups: []*cluster.TaskGroup{group}})
	}
	return jobs, nil
}

// simulatedService is the config of a task of mock that needs three seconds to stop.
func simulatedService() map[string]string {
	return map[string]string{"kill_after": "3s", "stdout_string": "a simulated task serves\n"}
}
