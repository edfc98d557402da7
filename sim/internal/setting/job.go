package setting

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Job returns a job of the scenario for its registration.
func Job(s *scenario.Scenario, j scenario.Job) *cluster.Job {
	job := &cluster.Job{
		Namespace: j.Key.Namespace, ID: j.Key.ID, Type: j.Type, Priority: j.Priority, Stop: j.Stop,
	}
	if job.Type == "" {
		job.Type = cluster.JobService
	}
	for _, g := range j.Groups {
		job.TaskGroups = append(job.TaskGroups, group(s, g, job.Type))
	}
	job.Canonicalize()
	return job
}

func group(s *scenario.Scenario, g scenario.Group, t cluster.JobType) *cluster.TaskGroup {
	built := &cluster.TaskGroup{
		Name: g.Name, Count: g.Count, ShutdownDelay: g.GroupShutdown, MaxRunDuration: g.MaxRun, NodeClasses: slices.Clone(g.Classes), DistinctHosts: g.Distinct,
		EphemeralDisk: cluster.EphemeralDisk{SizeMB: g.DiskMB, Sticky: g.Sticky, Migrate: g.Migrate},
		Disconnect: cluster.DisconnectStrategy{
			LostAfter: g.LostAfter, StopOnClientAfter: g.StopAway, NoReplace: g.NoReplace, KeepReplacement: g.KeepReplacement,
		},
		Tasks: []*cluster.Task{{
			Name: g.Name, KillTimeout: g.Kill, ShutdownDelay: g.Shutdown, StoragePlugin: g.Plugin, Cores: g.Cores,
			Resources: cluster.Resources{CPU: g.CPU, MemoryMB: g.MemoryMB, GPU: g.GPUMilli},
			Devices:   deviceRequests(g.Devices), CSIPlugin: csiPlugin(g),
		}},
		Volumes: volumeRequests(s, g), Ports: portRequests(g.Ports), Services: services(g, t),
	}
	for _, r := range built.Volumes {
		built.Tasks[0].VolumeMounts = append(built.Tasks[0].VolumeMounts, cluster.VolumeMount{Volume: r.Name, Destination: "/" + r.Name, ReadOnly: r.ReadOnly})
	}
	built.Tasks = append(built.Tasks, lifecycleTasks(g)...)
	if t == cluster.JobService {
		built.Migrate = migrate(g)
	}
	if !t.ToCompletion() {
		built.Update = update(g)
	}
	if !t.EveryNode() && g.Reschedule != nil {
		built.Reschedule = new(*g.Reschedule)
	}
	if g.Restart > 0 {
		built.RestartPolicy = restarts(g.Restart)
	}
	return built
}

// lifecycleTasks are the tasks of a group beside its main task.
func lifecycleTasks(g scenario.Group) (tasks []*cluster.Task) {
	for _, l := range []struct {
		has       bool
		name      string
		lifecycle cluster.Lifecycle
	}{
		{g.Prestart, "prestart", cluster.Lifecycle{Hook: cluster.HookPrestart}},
		{g.Poststart, "poststart", cluster.Lifecycle{Hook: cluster.HookPoststart}},
		{g.Sidecar, "sidecar", cluster.Lifecycle{Hook: cluster.HookPrestart, Sidecar: true}},
		{g.Poststop, "poststop", cluster.Lifecycle{Hook: cluster.HookPoststop}},
	} {
		if l.has {
			tasks = append(tasks, &cluster.Task{Name: g.Name + "-" + l.name, KillTimeout: g.Kill, Lifecycle: &l.lifecycle})
		}
	}
	return tasks
}

// restarts is a policy that starts a task again after a delay, without a limit: so many restarts never
// fit into its interval.
func restarts(delay time.Duration) *cluster.RestartPolicy {
	const attempts = 1000
	return &cluster.RestartPolicy{
		Attempts: attempts, Delay: delay, Interval: max(cluster.MinRestartInterval, attempts*delay), Mode: cluster.RestartDelay,
	}
}

func update(g scenario.Group) *cluster.UpdateStrategy {
	if g.Update == nil {
		return nil
	}
	u := cluster.DefaultUpdateStrategy()
	u.MaxParallel = *g.Update
	u.MinHealthyTime = cmp.Or(g.MinHealthy, u.MinHealthyTime)
	u.HealthyDeadline = cmp.Or(g.HealthyDeadline, u.HealthyDeadline)
	return &u
}

func migrate(g scenario.Group) *cluster.MigrateStrategy {
	m := cluster.DefaultMigrateStrategy()
	m.MaxSurge = g.MaxSurge
	if g.MaxParallel != nil {
		m.MaxParallel = *g.MaxParallel
	}
	if g.MinHealthy != 0 {
		m.MinHealthyTime = g.MinHealthy
	}
	if g.HealthyDeadline != 0 {
		m.HealthyDeadline = g.HealthyDeadline
	}
	return m
}

// Writes returns how many MiB the tasks of an allocation write to its disk.
func Writes(s *scenario.Scenario, a *cluster.Allocation) int64 {
	for j, g := range s.EachGroup() {
		if j.Key == a.JobKey() && g.Name == a.TaskGroup && g.WritesMB > 0 {
			return g.WritesMB
		}
	}
	return 1
}

// DeclaredJob returns the job that the scenario declares, or nil.
func DeclaredJob(s *scenario.Scenario, key cluster.JobKey) *cluster.Job {
	for _, j := range s.Jobs {
		if j.Key == key {
			return Job(s, j)
		}
	}
	return nil
}

// Edit returns an edited copy of a job.
func Edit(j *cluster.Job, e *scenario.Edit) (*cluster.Job, error) {
	if j == nil {
		return nil, fmt.Errorf("editing job %s: there is none", e.Job)
	}
	edited := j.Copy()
	if e.Remove {
		edited.TaskGroups = slices.DeleteFunc(edited.TaskGroups, func(g *cluster.TaskGroup) bool { return g.Name == e.Group })
		return edited, nil
	}
	for _, g := range edited.TaskGroups {
		if e.Group != "" && g.Name != e.Group {
			continue
		}
		if e.Count != nil {
			g.Count = *e.Count
		}
		if e.MaxParallel != nil && edited.Type == cluster.JobService {
			g.Migrate.MaxParallel = *e.MaxParallel
		}
		if e.MaxSurge != nil && edited.Type == cluster.JobService {
			g.Migrate.MaxSurge = *e.MaxSurge
		}
		if e.Service != nil {
			for i := range g.Services {
				g.Services[i].Tags = []string{"v" + strconv.Itoa(*e.Service)}
			}
		}
		if e.Version != nil {
			for _, t := range g.Tasks {
				t.Env = map[string]string{"VERSION": strconv.Itoa(*e.Version)}
			}
		}
		if e.Rename != "" {
			g.Name = e.Rename
		}
	}
	return edited, nil
}
