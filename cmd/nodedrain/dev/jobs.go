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

// exampleJobs returns two services and a batch job. Their tasks run as a user, or as that of the client.
func exampleJobs(user string) ([]*cluster.Job, error) {
	var jobs []*cluster.Job
	for _, j := range []struct {
		id     cluster.JobID
		kind   cluster.JobType
		count  int
		script string
	}{
		{"web", cluster.JobService, 4, serves},
		{"api", cluster.JobService, 2, serves},
		{"report", cluster.JobBatch, 1, computes},
	} {
		task, err := shellTask(j.script)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", j.id, err)
		}
		task.User, task.KillTimeout = user, killTimeout
		group := &cluster.TaskGroup{Name: "main", Count: j.count, Tasks: []*cluster.Task{task}}
		if j.kind == cluster.JobService {
			group.Migrate = cluster.DefaultMigrateStrategy()
			group.Migrate.MinHealthyTime = 2 * time.Second
		}
		jobs = append(jobs, &cluster.Job{ID: j.id, Type: j.kind, TaskGroups: []*cluster.TaskGroup{group}})
	}
	return jobs, nil
}

// shellTask returns a task of raw_exec with the name main, whose shell runs a script.
func shellTask(script string) (*cluster.Task, error) {
	config, err := json.Marshal(map[string]any{"command": "/bin/sh", "args": []string{"-c", script}})
	if err != nil {
		return nil, fmt.Errorf("the config of a task: %w", err)
	}
	return &cluster.Task{
		Name: "main", Driver: rawExec, Config: config, KillSignal: "SIGTERM",
		Resources: cluster.Resources{CPU: 100, MemoryMB: 32},
	}, nil
}
