package cluster_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// The texts are those of the compatible API. Users search for them.
func TestMigrateStrategy_Validate(t *testing.T) {
	t.Parallel()
	edit := func(f func(*cluster.MigrateStrategy)) *cluster.MigrateStrategy {
		m := cluster.DefaultMigrateStrategy()
		f(m)
		return m
	}
	for name, test := range map[string]struct {
		block *cluster.MigrateStrategy
		want  []string
	}{
		"the default": {block: cluster.DefaultMigrateStrategy()},
		"task states": {
			block: edit(func(m *cluster.MigrateStrategy) { m.HealthCheck = cluster.HealthTaskStates }),
		},
		"negative max_parallel": {
			block: edit(func(m *cluster.MigrateStrategy) { m.MaxParallel = -1 }),
			want:  []string{"MaxParallel must be >= 0 but found -1"},
		},
		"no health check": {
			block: edit(func(m *cluster.MigrateStrategy) { m.HealthCheck = "" }),
			want:  []string{"Missing HealthCheck"},
		},
		"no health check needed when nothing moves": {
			block: edit(func(m *cluster.MigrateStrategy) { m.HealthCheck, m.MaxParallel = "", 0 }),
		},
		"unknown health check": {
			block: edit(func(m *cluster.MigrateStrategy) { m.HealthCheck = "vibes" }),
			want:  []string{`Invalid HealthCheck: "vibes"`},
		},
		"negative min_healthy_time": {
			block: edit(func(m *cluster.MigrateStrategy) { m.MinHealthyTime = -time.Second }),
			want:  []string{"MinHealthyTime is -1s and must be >= 0"},
		},
		"negative healthy_deadline": {
			block: edit(func(m *cluster.MigrateStrategy) { m.MinHealthyTime, m.HealthyDeadline = -2*time.Minute, -time.Minute }),
			want: []string{
				"MinHealthyTime is -2m0s and must be >= 0",
				"HealthyDeadline is -1m0s and must be >= 0",
			},
		},
		"min_healthy_time longer than the deadline": {
			block: edit(func(m *cluster.MigrateStrategy) { m.MinHealthyTime = m.HealthyDeadline + 1 }),
			want:  []string{"MinHealthyTime must be less than HealthyDeadline"},
		},
		"min_healthy_time equal to the deadline": {
			block: edit(func(m *cluster.MigrateStrategy) { m.MinHealthyTime = m.HealthyDeadline }),
		},
		"everything at once": {
			block: &cluster.MigrateStrategy{MaxParallel: -3, HealthCheck: "?", MinHealthyTime: -1, HealthyDeadline: -2},
			want: []string{
				"MaxParallel must be >= 0 but found -3",
				`Invalid HealthCheck: "?"`,
				"MinHealthyTime is -1ns and must be >= 0",
				"HealthyDeadline is -2ns and must be >= 0",
				"MinHealthyTime must be less than HealthyDeadline",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			must.Eq(t, test.want, lines(test.block.Validate()))
		})
	}
}

// lines splits a joined error, nil for nil.
func lines(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

func TestPaceOf(t *testing.T) {
	t.Parallel()
	block := &cluster.MigrateStrategy{MaxParallel: 3, HealthCheck: cluster.HealthChecks, HealthyDeadline: time.Hour}
	job := &cluster.Job{Type: cluster.JobService, TaskGroups: []*cluster.TaskGroup{
		nil, // a damaged record
		{Name: "web", Count: 10, Migrate: block},
		{Name: "bare", Count: 4},
		{Name: "still", Count: 4, Migrate: &cluster.MigrateStrategy{}},
	}}
	stopped := job.Copy()
	stopped.Stop = true

	for name, test := range map[string]struct {
		job    *cluster.Job
		group  string
		want   cluster.Pace
		exists bool
	}{
		"its own block": {job, "web", cluster.Pace{Count: 10, MaxParallel: 3, HealthyDeadline: time.Hour}, true},
		"no block is the default block": {
			job, "bare", cluster.Pace{Count: 4, MaxParallel: 1, HealthyDeadline: 5 * time.Minute}, true,
		},
		"no deadline for health is the default one": {
			job, "still", cluster.Pace{Count: 4, HealthyDeadline: 5 * time.Minute}, true,
		},
		"a stopped job needs nothing healthy": {
			stopped, "web", cluster.Pace{MaxParallel: 3, HealthyDeadline: time.Hour}, true,
		},
		"a group that is gone": {job, "renamed", cluster.Pace{}, false},
		"a job that is gone":   {nil, "web", cluster.Pace{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, exists := cluster.PaceOf(test.job, test.group)
			must.Eq(t, test.want, got)
			must.Eq(t, test.exists, exists)
		})
	}
}

// The kinds of allocations that a budget distinguishes.
type kind string

const (
	here         kind = "healthy on a draining node"
	elsewhere    kind = "healthy on another node"
	marked       kind = "marked"
	noVerdict    kind = "no verdict yet"
	unhealthy    kind = "judged unhealthy"
	canary       kind = "healthy canary"
	ended        kind = "complete"
	stopping     kind = "desired stop, still running"
	pending      kind = "pending with an old verdict"
	disconnected kind = "healthy at the last report"
	onDownNode   kind = "on a node that is down"
	onNoNode     kind = "on a node that does not exist"
)

func (k kind) alloc() (*cluster.Allocation, *cluster.Node) {
	node := &cluster.Node{Status: cluster.NodeReady}
	verdict := true
	a := &cluster.Allocation{
		DesiredStatus:    cluster.DesiredRun,
		ClientStatus:     cluster.ClientRunning,
		DeploymentStatus: &cluster.DeploymentStatus{Healthy: &verdict},
	}
	switch k {
	case here:
		node.Drain = &cluster.Drain{ID: "drain"}
	case elsewhere:
	case marked:
		a.DesiredTransition.Migrate = true
	case noVerdict:
		a.DeploymentStatus = nil
	case unhealthy:
		verdict = false
	case canary:
		a.DeploymentStatus.Canary = true
	case ended:
		a.ClientStatus = cluster.ClientComplete
	case stopping:
		a.DesiredStatus = cluster.DesiredStop
	case pending:
		a.ClientStatus = cluster.ClientPending
	case disconnected:
		node.Status, a.ClientStatus = cluster.NodeDisconnected, cluster.ClientUnknown
	case onDownNode:
		node.Status = cluster.NodeDown
	case onNoNode:
		node = nil
	}
	return a, node
}

// Worked examples of the room that a budget leaves. In those after the blank line, counting every
// verdict as health would be wrong.
func TestPace_Room(t *testing.T) {
	t.Parallel()
	type counts map[kind]int
	for _, test := range []struct {
		count, maxParallel int
		group              counts
		want               int
	}{
		{10, 1, counts{here: 10}, 1},
		{10, 1, counts{here: 9, marked: 1}, 0},
		{10, 5, counts{here: 6, marked: 4}, 1},
		{10, 10, counts{here: 10}, 10},
		{10, 2, counts{here: 8, elsewhere: 1, ended: 1}, 1},
		{10, 5, counts{here: 3, elsewhere: 5, ended: 2}, 3},
		{10, 3, counts{here: 4, elsewhere: 4, noVerdict: 1, ended: 1}, 1},
		{10, 1, counts{here: 5, noVerdict: 5}, -4},
		{10, 1, counts{elsewhere: 10}, 1},
		{1, 3, counts{here: 1}, 3},
		{1, 1, counts{noVerdict: 1}, 0},
		{2, 1, counts{noVerdict: 1, elsewhere: 1}, 0},
		{0, 1, counts{here: 3}, 4},
		{1, math.MaxInt, counts{here: 3}, 3 + 1<<30}, // and not less than none
		{4, 0, counts{here: 4}, 0},
		{4, 1, counts{here: 4}, 1},

		{3, 1, counts{here: 2, unhealthy: 1}, 0},
		{3, 1, counts{here: 3, canary: 1}, 1},
		{3, 1, counts{here: 2, disconnected: 1}, 0},
		{3, 1, counts{here: 2, stopping: 1}, 0},
		{3, 1, counts{here: 2, pending: 1}, 0},
		{3, 1, counts{here: 2, onDownNode: 1}, 0},
		{3, 1, counts{here: 2, onNoNode: 1}, 0},
	} {
		t.Run(fmt.Sprintf("%d/%d %v", test.count, test.maxParallel, test.group), func(t *testing.T) {
			t.Parallel()
			healthy := 0
			for k, n := range test.group {
				if a, node := k.alloc(); a.Healthy(node) {
					healthy += n
				}
			}
			pace := cluster.Pace{Count: test.count, MaxParallel: test.maxParallel}
			must.Eq(t, test.want, pace.Room(healthy))
		})
	}
}

// Only two kinds of allocation keep a group waiting.
func TestAllocation_Healthy(t *testing.T) {
	t.Parallel()
	var healthy []kind
	for _, k := range []kind{
		here, elsewhere, marked, noVerdict, unhealthy, canary, ended, stopping, pending, disconnected, onDownNode, onNoNode,
	} {
		if a, node := k.alloc(); a.Healthy(node) {
			healthy = append(healthy, k)
		}
	}
	must.Eq(t, []kind{here, elsewhere}, healthy)
}

// A verdict that changes several times counts from its last change to false. A false one that is
// repeated, or that no true one came before, does not begin the time.
func TestDeploymentStatus_Judge(t *testing.T) {
	t.Parallel()
	at := func(s int64) time.Time { return time.Unix(s, 0).UTC() }
	d := &cluster.DeploymentStatus{}
	for i, step := range []struct {
		healthy bool
		since   time.Time
	}{
		{false, time.Time{}}, {false, time.Time{}}, {true, time.Time{}}, {false, at(3)}, {false, at(3)}, {true, time.Time{}}, {false, at(6)},
	} {
		d.Judge(step.healthy, time.Unix(int64(i), 0))
		must.Eq(t, step.healthy, *d.Healthy, must.Sprint(i))
		must.Eq(t, step.since, d.UnhealthySince, must.Sprint(i))
		held := step.since
		if !held.IsZero() {
			held = held.Add(time.Minute)
		}
		must.Eq(t, held, (&cluster.Allocation{DeploymentStatus: d}).HeldUntil(cluster.Pace{HealthyDeadline: time.Minute}), must.Sprint(i))
	}
	must.Eq(t, time.Time{}, (&cluster.Allocation{}).HeldUntil(cluster.Pace{HealthyDeadline: time.Minute}))
}

func TestAllocation_DueAt(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := &cluster.Allocation{CreateTime: created}
	must.Eq(t, created.Add(310*time.Second), a.DueAt(cluster.Pace{HealthyDeadline: 5 * time.Minute}, 10*time.Second))

	// A verdict that is due in three hundred years is not overdue today.
	const ages = time.Duration(1<<63 - 1)
	must.True(t, a.DueAt(cluster.Pace{HealthyDeadline: ages}, time.Second).After(created.Add(ages)))
}
