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

func TestJob_Canonicalize(t *testing.T) {
	t.Parallel()
	job := &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{
		{Name: "plain", Tasks: []*cluster.Task{{Name: "server"}}},
		{
			Name:    "own",
			Migrate: &cluster.MigrateStrategy{MaxParallel: 7},
			Tasks:   []*cluster.Task{{Name: "server", KillTimeout: time.Minute}},
		},
	}}
	job.Canonicalize()

	must.Eq(t, &cluster.Job{
		Namespace: "default", ID: "web", Type: cluster.JobService, Priority: 50, NodePool: "default",
		TaskGroups: []*cluster.TaskGroup{
			{
				Name: "plain",
				Migrate: &cluster.MigrateStrategy{
					MaxParallel:     1,
					HealthCheck:     cluster.HealthChecks,
					MinHealthyTime:  10 * time.Second,
					HealthyDeadline: 5 * time.Minute,
				},
				Tasks: []*cluster.Task{{Name: "server", KillTimeout: 5 * time.Second}},
			},
			{
				Name:    "own",
				Migrate: &cluster.MigrateStrategy{MaxParallel: 7},
				Tasks:   []*cluster.Task{{Name: "server", KillTimeout: time.Minute}},
			},
		},
	}, job)
}

// Only service jobs have a pace.
func TestJob_Canonicalize_migrateBlock(t *testing.T) {
	t.Parallel()
	for _, jobType := range []cluster.JobType{cluster.JobBatch, cluster.JobSystem, cluster.JobSysBatch} {
		job := &cluster.Job{Type: jobType, TaskGroups: []*cluster.TaskGroup{{Name: "work"}}}
		job.Canonicalize()
		must.Nil(t, job.TaskGroups[0].Migrate, must.Sprint(jobType))
	}
}

// A body from outside may hold nulls anywhere. Validate names them and nothing panics.
func TestJob_holes(t *testing.T) {
	t.Parallel()
	job := &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{nil, {Name: "web", Tasks: []*cluster.Task{nil}}}}
	job.Canonicalize()
	must.Eq(t, []string{"Task group 0 is missing", `Task group "web": Task 0 is missing`}, lines(job.Validate()))

	must.False(t, job.StoragePlugin())
	must.Eq(t, cluster.StageConsumers, job.Stage())
	must.Eq(t, job.TaskGroups[1], job.Group("web"))
	must.Nil(t, job.Group("db"))
	must.Zero(t, job.Group("web").StopTime())
	must.Eq(t, cluster.Resources{}, job.Group("web").Resources())

	var none *cluster.Job
	must.ErrorContains(t, none.Validate(), "job is missing")
	must.True(t, none.Stopped())
	must.Nil(t, none.Group("web"))
}

func TestJob_Validate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit func(*cluster.Job, *cluster.TaskGroup, *cluster.Task)
		want []string
	}{
		"a sound job": {func(*cluster.Job, *cluster.TaskGroup, *cluster.Task) {}, nil},
		"no id, type, priority": {
			func(j *cluster.Job, _ *cluster.TaskGroup, _ *cluster.Task) {
				j.ID, j.Type, j.Priority = "", "cron", 101
			},
			[]string{
				"Missing job ID", `Invalid job type: "cron"`, "Job priority must be between [1, 100] but found 101",
				`Task group "web": Job type "cron" does not allow migrate block`,
			},
		},
		"no groups": {
			func(j *cluster.Job, _ *cluster.TaskGroup, _ *cluster.Task) { j.TaskGroups = nil },
			[]string{"Missing job task groups"},
		},
		"the same group twice": {
			func(j *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) { j.TaskGroups = append(j.TaskGroups, g) },
			[]string{`Task group "web" is defined twice`},
		},
		"a migrate block where nothing is paced": {
			func(j *cluster.Job, _ *cluster.TaskGroup, _ *cluster.Task) { j.Type = cluster.JobBatch },
			[]string{`Task group "web": Job type "batch" does not allow migrate block`},
		},
		"a wrong migrate block": {
			func(_ *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) { g.Migrate.MaxParallel = -1 },
			[]string{`Task group "web": MaxParallel must be >= 0 but found -1`},
		},
		"a nameless group": {
			func(_ *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) { g.Name = "" },
			[]string{`Task group 0: Missing task group name`},
		},
		"negative numbers": {
			func(_ *cluster.Job, g *cluster.TaskGroup, t *cluster.Task) {
				g.Count, g.ShutdownDelay, g.Disconnect.LostAfter, g.EphemeralDisk.SizeMB = -1, -2, -3, -4
				t.KillTimeout, t.Resources.CPU = -5, -6
			},
			[]string{
				`Task group "web": Count must be >= 0 but found -1`,
				`Task group "web": ShutdownDelay is -2ns and must be >= 0`,
				`Task group "web": LostAfter is -3ns and must be >= 0`,
				`Task group "web": EphemeralDisk.SizeMB must be >= 0 but found -4`,
				`Task group "web": Task "server": KillTimeout and ShutdownDelay must be >= 0`,
				`Task group "web": Task "server": resources must be >= 0`,
			},
		},
		"no tasks": {
			func(_ *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) { g.Tasks = nil },
			[]string{`Task group "web": Missing tasks`},
		},
		"resources that wrap around": {
			func(_ *cluster.Job, g *cluster.TaskGroup, t *cluster.Task) {
				t.Resources.MemoryMB = math.MaxInt64
				g.Tasks = append(g.Tasks, &cluster.Task{Name: "second", Resources: t.Resources})
			},
			[]string{`Task group "web": Task "second": resources of the group add up to too much`},
		},
		"disk that wraps around": {
			func(_ *cluster.Job, g *cluster.TaskGroup, t *cluster.Task) {
				g.EphemeralDisk.SizeMB, t.Resources.DiskMB = math.MaxInt64, 1
			},
			[]string{`Task group "web": Task "server": resources of the group add up to too much`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{
				{Name: "web", Count: 3, Tasks: []*cluster.Task{{Name: "server", Resources: cluster.Resources{CPU: 100}}}},
			}}
			job.Canonicalize()
			test.edit(job, job.TaskGroups[0], job.TaskGroups[0].Tasks[0])
			must.Eq(t, test.want, lines(job.Validate()))
		})
	}
}

// The cost of a job for the servers is bounded, and so is the length of a refusal.
func TestJob_Validate_bounds(t *testing.T) {
	t.Parallel()
	job := func(groups, tasks, count int) *cluster.Job {
		j := &cluster.Job{ID: "web"}
		for i := range groups {
			g := &cluster.TaskGroup{Name: fmt.Sprint("g", i), Count: count}
			for range tasks {
				g.Tasks = append(g.Tasks, &cluster.Task{Name: "t"})
			}
			j.TaskGroups = append(j.TaskGroups, g)
		}
		j.Canonicalize()
		return j
	}
	must.NoError(t, job(cluster.MaxJobGroups, cluster.MaxJobTasks/cluster.MaxJobGroups, cluster.MaxJobCount/cluster.MaxJobGroups).Validate())
	for _, test := range []struct {
		groups, tasks, count int
		want                 string
	}{
		{1, 1, cluster.MaxJobCount + 1, "Counts of a job add up to at most 1000000"},
		{2, 1, math.MaxInt, "Counts of a job add up to at most 1000000"},
		{3, 1, cluster.MaxJobCount / 2, "Counts of a job add up to at most 1000000"},
		{cluster.MaxJobGroups + 1, 0, -1, "A job has at most 1000 task groups but found 1001"},
		{1, cluster.MaxJobTasks + 1, 1, "A job has at most 2000 tasks but found 2001"},
	} {
		must.Eq(t, []string{test.want}, lines(job(test.groups, test.tasks, test.count).Validate()))
	}

	wrong := job(500, 4, -1)
	for _, g := range wrong.TaskGroups {
		g.Tasks[0].Name, g.Name = "", ""
	}
	must.Between(t, 10, len(lines(wrong.Validate())), 50)
	nulls := job(1, 0, 1)
	nulls.TaskGroups[0].Tasks = make([]*cluster.Task, cluster.MaxJobTasks)
	must.Len(t, 11, lines(nulls.Validate()))
}

// Names from outside appear in lists, logs, labels and paths.
func TestJob_Validate_names(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"web/front end ✓": "", strings.Repeat("x", cluster.MaxIDBytes): "", "...": "",
		strings.Repeat("x", cluster.MaxIDBytes+1): "it is longer than 256 bytes",
		"a\x00b": "it contains a control character", "a\nb": "it contains a control character", "a\u0085b": "it contains a control character",
		"a\xff": "it is not valid UTF-8", ".": "it is a step in a path", "..": "it is a step in a path",
	} {
		for what, edit := range map[string]func(*cluster.Job){
			"Invalid job ID: ":                                            func(j *cluster.Job) { j.ID = cluster.JobID(name) },
			"Invalid namespace: ":                                         func(j *cluster.Job) { j.Namespace = cluster.Namespace(name) },
			`Task group "web": Task 0: Invalid name: `:                    func(j *cluster.Job) { j.TaskGroups[0].Tasks[0].Name = name },
			fmt.Sprintf("Task group %q: Invalid task group name: ", name): func(j *cluster.Job) { j.TaskGroups[0].Name = name },
		} {
			j := &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{{Name: "web", Tasks: []*cluster.Task{{Name: "t"}}}}}
			j.Canonicalize()
			edit(j)
			if want == "" {
				must.NoError(t, j.Validate())
				continue
			}
			must.EqError(t, j.Validate(), what+want)
		}
	}
	must.EqError(t, cluster.CheckID(cluster.NodeID("")), "it is empty")
}

func TestTaskGroup_StopTime(t *testing.T) {
	t.Parallel()
	group := &cluster.TaskGroup{ShutdownDelay: time.Second, Tasks: []*cluster.Task{
		{KillTimeout: 30 * time.Second},
		{KillTimeout: 20 * time.Second, ShutdownDelay: 15 * time.Second},
	}}
	must.Eq(t, 36*time.Second, group.StopTime())

	// A task that needs centuries must not overflow to no time.
	group.Tasks[0].KillTimeout, group.Tasks[0].ShutdownDelay = math.MaxInt64, math.MaxInt64
	must.Eq(t, math.MaxInt64, group.StopTime())

	a := &cluster.Allocation{TaskGroup: "web"}
	must.Eq(t, cluster.DefaultKillTimeout, a.StopTime(), must.Sprint("an allocation that has lost its job"))
}

func TestTaskGroup_Resources(t *testing.T) {
	t.Parallel()
	group := &cluster.TaskGroup{EphemeralDisk: cluster.EphemeralDisk{SizeMB: 300}, Tasks: []*cluster.Task{
		{Resources: cluster.Resources{CPU: 500, MemoryMB: 256}},
		{Resources: cluster.Resources{CPU: 250, MemoryMB: 64, DiskMB: 1, GPU: 1000}},
	}}
	must.Eq(t, cluster.Resources{CPU: 750, MemoryMB: 320, DiskMB: 301, GPU: 1000}, group.Resources())
}

func TestResources_Fits(t *testing.T) {
	t.Parallel()
	room := cluster.Resources{CPU: 1, MemoryMB: 1, DiskMB: 1, GPU: 1}
	must.True(t, room.Fits(room))
	must.True(t, cluster.Resources{}.Fits(room))
	for _, more := range []cluster.Resources{{CPU: 1}, {MemoryMB: 1}, {DiskMB: 1}, {GPU: 1}} {
		must.False(t, room.Plus(more).Fits(room))
		must.True(t, room.Fits(room.Plus(more)))
		must.Eq(t, room, room.Plus(more).Minus(more))
	}
}

func TestStage(t *testing.T) {
	t.Parallel()
	job := func(jobType cluster.JobType, plugin bool) *cluster.Job {
		return &cluster.Job{Type: jobType, TaskGroups: []*cluster.TaskGroup{
			{Name: "first", Tasks: []*cluster.Task{{Name: "task"}}},
			{Name: "second", Tasks: []*cluster.Task{{Name: "task"}, {Name: "plugin", StoragePlugin: plugin}}},
		}}
	}
	for _, test := range []struct {
		jobType       cluster.JobType
		plain, plugin cluster.Stage
	}{
		{cluster.JobService, cluster.StageConsumers, cluster.StagePlugins},
		{cluster.JobBatch, cluster.StageConsumers, cluster.StagePlugins},
		{cluster.JobSysBatch, cluster.StageConsumers, cluster.StagePlugins},
		{cluster.JobSystem, cluster.StageSystem, cluster.StagePlugins},
	} {
		must.Eq(t, test.plain, job(test.jobType, false).Stage())
		must.Eq(t, test.plugin, job(test.jobType, true).Stage())
		must.Eq(t, test.plugin, (&cluster.Allocation{Job: job(test.jobType, true)}).Stage())
	}

	lost := &cluster.Allocation{}
	must.Eq(t, cluster.StageConsumers, lost.Stage(), must.Sprint("an allocation that has lost its job"))
	must.Eq(t, cluster.JobService, lost.JobType())
}

// Stages leave in the order of their values, and each has its own name.
func TestStages(t *testing.T) {
	t.Parallel()
	texts := map[string]bool{}
	for i, stage := range cluster.Stages() {
		must.Eq(t, cluster.Stage(i), stage)
		texts[stage.String()] = true
	}
	must.MapLen(t, int(cluster.StageCount), texts)
	must.MapNotContainsKey(t, texts, cluster.StageCount.String())
}

func TestMarkClass_String(t *testing.T) {
	t.Parallel()
	texts := map[string]bool{}
	for class := range cluster.MarkClassCount {
		must.NotEq(t, "", class.String())
		texts[class.String()] = true
	}
	must.MapLen(t, int(cluster.MarkClassCount), texts)
	must.MapNotContainsKey(t, texts, cluster.MarkClassCount.String())
}

// A job is the same work as its record, and as itself before defaults were filled in.
func TestJob_SameWork(t *testing.T) {
	t.Parallel()
	bare := func() *cluster.Job {
		return &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{{Name: "g", Count: 2, Tasks: []*cluster.Task{{Name: "t", Driver: "mock"}}}}}
	}
	for name, test := range map[string]struct {
		change func(*cluster.Job)
		same   bool
	}{
		"nothing":        {func(*cluster.Job) {}, true},
		"defaults":       {(*cluster.Job).Canonicalize, true},
		"servers' field": {func(j *cluster.Job) { j.Version, j.CreateIndex, j.ModifyIndex, j.JobModifyIndex = 1, 2, 3, 4 }, true},
		"empty lists": {func(j *cluster.Job) {
			j.Datacenters, j.Meta, j.TaskGroups[0].NodeClasses = []string{}, map[string]string{}, []string{}
		}, true},
		"stop":       {func(j *cluster.Job) { j.Stop = true }, false},
		"priority":   {func(j *cluster.Job) { j.Priority = 51 }, false},
		"namespace":  {func(j *cluster.Job) { j.Namespace = "other" }, false},
		"count":      {func(j *cluster.Job) { j.TaskGroups[0].Count = 3 }, false},
		"task":       {func(j *cluster.Job) { j.TaskGroups[0].Tasks[0].Config = []byte(`{"a":1}`) }, false},
		"datacenter": {func(j *cluster.Job) { j.Datacenters = []string{"dc1"} }, false},
		"no groups":  {func(j *cluster.Job) { j.TaskGroups = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := bare()
			test.change(changed)
			before := changed.Copy()
			must.Eq(t, test.same, bare().SameWork(changed))
			must.Eq(t, test.same, changed.SameWork(bare()))
			must.Eq(t, before, changed, must.Sprint("a comparison changes nothing"))
			must.False(t, changed.SameWork(nil))
		})
	}
	var none *cluster.Job
	must.False(t, none.SameWork(bare()))
	must.False(t, none.SameWork(nil))
}
