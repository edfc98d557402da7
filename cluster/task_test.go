package cluster_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Each field that an older server does not have needs the version that has it, alone and with all
// others. Such a field has a tag that leaves it out of an encoding while it is not set.
func TestNeededVersion_OfEachField(t *testing.T) {
	t.Parallel()
	const older = cluster.VersionOfDrivers - 1
	versionOf := func(path string) cluster.Version {
		switch path[strings.LastIndexByte(path, '.')+1:] {
		case "Devices":
			return cluster.VersionOfDevices
		case "Ports", "Network":
			return cluster.VersionOfPorts
		case "Volumes", "VolumeMounts", "CSIPlugin", "StoragePlugins", "VolumeAllowance", "HoldLimit", "VolumeHolds":
			return cluster.VersionOfVolumes
		case "AwaySince", "Unlisted", "ConfirmedAt", "NoReplace", "KeepReplacement":
			return cluster.VersionOfConfirmation
		case "MemoryMaxMB", "Cores", "MaxRunDuration":
			return cluster.VersionOfLimits
		case "MaxSurge", "Standby", "Surge", "SurgeAt":
			return cluster.VersionOfSurge
		case "EndedAt":
			return cluster.VersionOfRescheduling
		case "StartTook":
			return cluster.VersionOfLearnedTimes
		}
		if strings.Contains(path, ".Data") || strings.Contains(path, ".Update") || strings.Contains(path, ".DistinctHosts") || strings.Contains(path, ".Reschedule") || strings.Contains(path, ".Services") {
			return cluster.VersionOfData
		}
		return cluster.VersionOfDrivers
	}
	tagged := map[string]bool{}
	check := func(root reflect.Value, needed func() cluster.Version) {
		for path, one := range taggedFields(root.Elem(), root.Type().Elem().Name()) {
			must.LessEq(t, older, needed())
			fill(one, 7)
			must.Eq(t, versionOf(path), needed(), must.Sprint(path))
			one.SetZero()
			tagged[path] = true
		}
	}
	job := &cluster.Job{TaskGroups: []*cluster.TaskGroup{{Name: "g", Tasks: []*cluster.Task{{Name: "t", KillTimeout: 1}}}}}
	check(reflect.ValueOf(job), job.NeededVersion)
	node := &cluster.Node{ID: "n", Attributes: map[string]string{"a": "b"}}
	check(reflect.ValueOf(node), node.NeededVersion)
	alloc := &cluster.Allocation{ID: "a", Job: job}
	check(reflect.ValueOf(alloc), alloc.NeededVersion)
	report := &cluster.AllocReport{Alloc: "a"}
	check(reflect.ValueOf(report), report.NeededVersion)
	must.MapLen(t, 99, tagged)

	whole := &cluster.Job{TaskGroups: []*cluster.TaskGroup{{Name: "g", Tasks: []*cluster.Task{{Name: "t", KillTimeout: 1}}}}}
	for _, one := range taggedFields(reflect.ValueOf(whole).Elem(), "Job") {
		fill(one, 7)
	}
	must.Eq(t, cluster.VersionOfRollouts, whole.NeededVersion())
	must.Eq(t, job, whole.At(older))

	job.Meta = map[string]string{"owner": "web"}
	must.Eq(t, cluster.VersionOfDrivers, alloc.NeededVersion(), must.Sprint("the job of an allocation"))
	must.Eq(t, cluster.MinVersion, (*cluster.Job)(nil).NeededVersion())
	must.Eq(t, cluster.MinVersion, (*cluster.Node)(nil).NeededVersion())
	must.Eq(t, cluster.MinVersion, (*cluster.Allocation)(nil).NeededVersion())
}

// taggedFields are the fields below a struct that an encoding may leave out.
func taggedFields(v reflect.Value, path string) map[string]reflect.Value {
	found := map[string]reflect.Value{}
	for i := range v.NumField() {
		f, at := v.Type().Field(i), v.Field(i)
		name := path + "." + f.Name
		if f.Tag.Get("codec") == ",omitempty" {
			found[name] = at
			continue
		}
		for at.Kind() == reflect.Pointer || (at.Kind() == reflect.Slice && at.Len() > 0) {
			if at.Kind() == reflect.Slice {
				at = at.Index(0)
			} else {
				if at.IsNil() && !strings.HasPrefix(name, "Job") {
					break // a client sends no drain, and an allocation is checked with its job
				}
				if at.IsNil() {
					at.Set(reflect.New(at.Type().Elem()))
				}
				at = at.Elem()
			}
		}
		if at.Kind() == reflect.Struct && at.Type() != timeType {
			for path, field := range taggedFields(at, name) {
				found[path] = field
			}
		}
	}
	return found
}

// A task whose work differs in any field is another task.
func TestTask_Equal(t *testing.T) {
	t.Parallel()
	full := func() *cluster.Task {
		task := new(cluster.Task)
		fill(reflect.ValueOf(task).Elem(), 1)
		return task
	}
	must.True(t, full().Equal(full()))
	must.True(t, (*cluster.Task)(nil).Equal(nil))
	must.False(t, full().Equal(nil))
	must.False(t, (*cluster.Task)(nil).Equal(full()))
	must.True(t, (&cluster.Task{}).Equal(&cluster.Task{Env: map[string]string{}, Config: json.RawMessage{}}))
	for i := range reflect.TypeFor[cluster.Task]().NumField() {
		other := full()
		field := reflect.ValueOf(other).Elem().Field(i)
		field.SetZero()
		name := reflect.TypeFor[cluster.Task]().Field(i).Name
		must.False(t, full().Equal(other), must.Sprint(name))
		if field.Kind() != reflect.Bool {
			fill(field, 50)
			must.False(t, full().Equal(other), must.Sprint(name))
		}
	}
}

func driverJob() *cluster.Job {
	job := &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{{Name: "web", Count: 1, Tasks: []*cluster.Task{{
		Name: "server", Driver: "raw_exec", Config: json.RawMessage(`{"command": "/bin/sleep"}`), User: "www",
		Env: map[string]string{"PORT": "80"}, KillSignal: "SIGTERM", Leader: true,
		RestartPolicy: &cluster.RestartPolicy{Attempts: 1, Interval: time.Minute, Delay: time.Second, Mode: cluster.RestartDelay},
		Constraints:   []cluster.Constraint{{LTarget: "${attr.kernel.name}", Operand: "=", RTarget: "linux"}},
		LogConfig:     &cluster.LogConfig{MaxFiles: 3, MaxFileSizeMB: 5},
	}, {
		Name: "proxy", Driver: "raw_exec", Lifecycle: &cluster.Lifecycle{Hook: cluster.HookPrestart, Sidecar: true},
	}, {
		Name: "cleanup", Driver: "raw_exec", Lifecycle: &cluster.Lifecycle{Hook: cluster.HookPoststop},
	}}}}}
	job.Canonicalize()
	return job
}

func TestJob_Validate_drivers(t *testing.T) {
	t.Parallel()
	const task, group = `Task group "web": Task "server": `, `Task group "web": `
	for name, test := range map[string]struct {
		edit func(*cluster.Job, *cluster.TaskGroup, *cluster.Task)
		want string
	}{
		"a sound job": {func(*cluster.Job, *cluster.TaskGroup, *cluster.Task) {}, ""},
		"a signal without SIG": {
			func(_ *cluster.Job, _ *cluster.TaskGroup, t *cluster.Task) { t.KillSignal = "TERM" },
			task + `Invalid kill signal "TERM": it must be a name such as SIGTERM`,
		},
		"a config that is a list": {
			func(_ *cluster.Job, _ *cluster.TaskGroup, t *cluster.Task) { t.Config = json.RawMessage(`["a"]`) },
			task + "Config must be a JSON object",
		},
		"a config that is cut": {
			func(_ *cluster.Job, _ *cluster.TaskGroup, t *cluster.Task) { t.Config = json.RawMessage(`{"a":`) },
			task + "Config must be a JSON object",
		},
		"a config of blanks": {
			func(_ *cluster.Job, _ *cluster.TaskGroup, t *cluster.Task) { t.Config = json.RawMessage("  ") },
			task + "Config must be a JSON object",
		},
		"a config that is too large": {
			func(_ *cluster.Job, _ *cluster.TaskGroup, t *cluster.Task) {
				t.Config = json.RawMessage(`{"a":"` + strings.Repeat("x", cluster.MaxTaskConfigBytes) + `"}`)
			},
			task + "Config has at most 65536 bytes but found 65544",
		},
		"a driver that is no name": {
			func(_ *cluster.Job, _ *cluster.TaskGroup, t *cluster.Task) { t.Driver = "a\nb" },
			task + "Invalid driver: it contains a control character",
		},
		"a user that is no name": {
			func(_ *cluster.Job, _ *cluster.TaskGroup, t *cluster.Task) { t.User = "a\x00" },
			task + "Invalid user: it contains a control character",
		},
		"an environment with an empty name": {
			func(_ *cluster.Job, _ *cluster.TaskGroup, t *cluster.Task) { t.Env[""] = "x" },
			task + `Env: invalid key "": it is empty`,
		},
		"an environment with a large value": {
			func(_ *cluster.Job, _ *cluster.TaskGroup, t *cluster.Task) {
				t.Env["BIG"] = strings.Repeat("x", cluster.MaxMapValueBytes+1)
			},
			task + `Env: the value of "BIG" has at most 32768 bytes but found 32769`,
		},
		"an environment with many entries": {
			func(_ *cluster.Job, _ *cluster.TaskGroup, t *cluster.Task) {
				for i := range cluster.MaxMapEntries {
					t.Env[fmt.Sprint(i)] = ""
				}
			},
			task + "Env has at most 1000 entries but found 1001",
		},
		"less memory at most than at least": {
			func(_ *cluster.Job, _ *cluster.TaskGroup, t *cluster.Task) {
				t.Resources.MemoryMB, t.MemoryMaxMB = 300, 200
			},
			task + "MemoryMaxMB must be at least MemoryMB, which is 300, or -1 for no limit, but found 200",
		},
		"fewer than no cores": {
			func(_ *cluster.Job, _ *cluster.TaskGroup, t *cluster.Task) { t.Cores = -1 },
			task + "Cores must be between [0, 4096] but found -1",
		},
		"memory without a limit": {
			func(_ *cluster.Job, _ *cluster.TaskGroup, t *cluster.Task) {
				t.Resources.MemoryMB, t.MemoryMaxMB = 300, -1
			}, "",
		},
		"no logs": {
			func(_ *cluster.Job, _ *cluster.TaskGroup, t *cluster.Task) { t.LogConfig.MaxFiles = 0 },
			task + "Logs need at least 1 file of 1 MiB but found 0 files of 5 MiB",
		},
		"restarts that never are": {
			func(_ *cluster.Job, _ *cluster.TaskGroup, t *cluster.Task) { t.RestartPolicy.Attempts = 0 },
			task + "RestartPolicy: mode delay needs at least 1 attempt",
		},
		"an unknown restart mode": {
			func(_ *cluster.Job, _ *cluster.TaskGroup, t *cluster.Task) { t.RestartPolicy.Mode = "maybe" },
			task + `RestartPolicy: invalid mode "maybe"`,
		},
		"a short restart interval": {
			func(_ *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) {
				g.RestartPolicy = &cluster.RestartPolicy{Interval: time.Second, Mode: cluster.RestartFail}
			},
			group + "RestartPolicy: Interval is 1s and must be >= 5s",
		},
		"restarts that do not fit": {
			func(_ *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) {
				g.RestartPolicy = &cluster.RestartPolicy{Attempts: 3, Delay: 4 * time.Second, Interval: 10 * time.Second, Mode: cluster.RestartFail}
			},
			group + "RestartPolicy: 3 attempts with a delay of 4s do not fit into an interval of 10s",
		},
		"a negative restart delay": {
			func(_ *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) {
				g.RestartPolicy = &cluster.RestartPolicy{Delay: -1, Interval: time.Minute, Mode: cluster.RestartFail}
			},
			group + "RestartPolicy: Attempts and Delay must be >= 0",
		},
		"a client that stops in the past": {
			func(_ *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) { g.Disconnect.StopOnClientAfter = -1 },
			group + "StopOnClientAfter is -1ns and must be >= 0",
		},
		"an end before the start": {
			func(_ *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) { g.MaxRunDuration = -1 },
			group + "MaxRunDuration is -1ns and must be >= 0",
		},
		"two leaders": {
			func(_ *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) {
				g.Tasks[1].Lifecycle, g.Tasks[1].Leader = nil, true
			},
			group + "A group has at most 1 leader task but found 2",
		},
		"a leader that is a sidecar": {
			func(_ *cluster.Job, g *cluster.TaskGroup, t *cluster.Task) { t.Leader, g.Tasks[1].Leader = false, true },
			group + `Task "proxy": the leader must be a main task`,
		},
		"no main task": {
			func(_ *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) { g.Tasks = g.Tasks[1:] },
			group + "A group needs at least 1 task without a lifecycle block",
		},
		"a poststop sidecar": {
			func(_ *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) { g.Tasks[2].Lifecycle.Sidecar = true },
			group + `Task "cleanup": A poststop task cannot be a sidecar`,
		},
		"a hook that is none": {
			func(_ *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) { g.Tasks[2].Lifecycle.Hook = "prestop" },
			group + `Task "cleanup": Invalid lifecycle hook: "prestop"`,
		},
		"no hook": {
			func(_ *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) { g.Tasks[2].Lifecycle.Hook = "" },
			group + `Task "cleanup": Missing lifecycle hook`,
		},
		"one task twice": {
			func(_ *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) { g.Tasks[2].Name = "proxy" },
			group + `Task "proxy" is defined twice`,
		},
		"a constraint with another operand": {
			func(j *cluster.Job, _ *cluster.TaskGroup, _ *cluster.Task) {
				j.Constraints = []cluster.Constraint{{LTarget: "${attr.x}", Operand: "distinct_hosts", RTarget: "true"}}
			},
			`Constraint "${attr.x} distinct_hosts true": the operand "distinct_hosts" is not supported`,
		},
		"a constraint on a fact that no node has": {
			func(j *cluster.Job, _ *cluster.TaskGroup, _ *cluster.Task) {
				j.Constraints = []cluster.Constraint{{LTarget: "x", RTarget: "${device.vendor}"}}
			},
			`Constraint "x = ${device.vendor}": the target "${device.vendor}" is not supported`,
		},
		"a long regular expression": {
			func(_ *cluster.Job, _ *cluster.TaskGroup, t *cluster.Task) {
				t.Constraints = []cluster.Constraint{{LTarget: "x", Operand: "regexp", RTarget: strings.Repeat("a", cluster.MaxRegexpBytes+1)}}
			},
			task + `Constraint "x regexp ` + strings.Repeat("a", cluster.MaxRegexpBytes+1) + `": a regular expression has at most 128 bytes`,
		},
		"many regular expressions": {
			func(j *cluster.Job, g *cluster.TaskGroup, t *cluster.Task) {
				one := cluster.Constraint{LTarget: "x", Operand: "regexp", RTarget: "x"}
				j.Constraints, g.Constraints = slices.Repeat([]cluster.Constraint{one}, 4), slices.Repeat([]cluster.Constraint{one}, 4)
				t.Constraints = slices.Repeat([]cluster.Constraint{one}, 3)
			},
			"A job has at most 10 constraints with a regular expression but found 11",
		},
		"a constraint without a version": {
			func(_ *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) {
				g.Constraints = []cluster.Constraint{{LTarget: "${attr.x}", Operand: "version"}}
			},
			group + `Constraint "${attr.x} version ": the right side is missing`,
		},
		"a constraint without a left side": {
			func(_ *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) {
				g.Constraints = []cluster.Constraint{{Operand: "is_set"}}
			},
			group + `Constraint " is_set": the left side is missing`,
		},
		"an operand without sides": {
			func(_ *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) {
				g.Constraints = []cluster.Constraint{{Operand: "distinct_hosts"}}
			},
			group + `Constraint "distinct_hosts": the operand "distinct_hosts" is not supported`,
		},
		"a constraint that is too long": {
			func(_ *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) {
				g.Constraints = []cluster.Constraint{{LTarget: strings.Repeat("x", cluster.MaxConstraintBytes+1)}}
			},
			group + "Constraint: a target has at most 1024 bytes",
		},
		"many constraints": {
			func(_ *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) {
				g.Constraints = make([]cluster.Constraint, cluster.MaxConstraints+1)
			},
			group + "There are at most 100 constraints but found 101",
		},
		"a job that is too large": {
			func(j *cluster.Job, g *cluster.TaskGroup, _ *cluster.Task) {
				j.Meta = map[string]string{}
				for i := range 1 + cluster.MaxJobTextBytes/cluster.MaxMapValueBytes {
					j.Meta[fmt.Sprintf("%02d", i)] = strings.Repeat("x", cluster.MaxMapValueBytes)
				}
				g.Tasks = g.Tasks[:1]
				*g.Tasks[0] = cluster.Task{Name: "server"}
			},
			"Config, Env, Meta, Constraints and Devices of a job have at most 1048576 bytes but found 1081410",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := driverJob()
			test.edit(job, job.TaskGroups[0], job.TaskGroups[0].Tasks[0])
			if test.want == "" {
				must.NoError(t, job.Validate())
				return
			}
			must.Eq(t, []string{test.want}, lines(job.Validate()))
		})
	}
}

// A refusal of many constraints is bounded, too.
func TestJob_Validate_manyWrongConstraints(t *testing.T) {
	t.Parallel()
	job := driverJob()
	job.Constraints = make([]cluster.Constraint, cluster.MaxConstraints)
	must.Between(t, 10, len(lines(job.Validate())), 15)
}

func TestRestartPolicyOf(t *testing.T) {
	t.Parallel()
	service := cluster.RestartPolicy{Attempts: 2, Interval: 30 * time.Minute, Delay: 15 * time.Second, Mode: cluster.RestartFail}
	batch := cluster.RestartPolicy{Attempts: 3, Interval: 24 * time.Hour, Delay: 15 * time.Second, Mode: cluster.RestartFail}
	own := cluster.RestartPolicy{Attempts: 9}
	group, task := &cluster.TaskGroup{}, &cluster.Task{}
	must.Eq(t, service, group.RestartPolicyOf(task, cluster.JobService))
	must.Eq(t, service, group.RestartPolicyOf(nil, cluster.JobSystem))
	must.Eq(t, batch, group.RestartPolicyOf(task, cluster.JobBatch))
	must.Eq(t, batch, group.RestartPolicyOf(task, cluster.JobSysBatch))
	group.RestartPolicy = &batch
	must.Eq(t, batch, group.RestartPolicyOf(task, cluster.JobService))
	task.RestartPolicy = &own
	must.Eq(t, own, group.RestartPolicyOf(task, cluster.JobService))
	must.Eq(t, cluster.LogConfig{MaxFiles: 10, MaxFileSizeMB: 10}, task.Logs())
	must.Eq(t, cluster.LogConfig{MaxFiles: 3, MaxFileSizeMB: 5}, driverJob().TaskGroups[0].Tasks[0].Logs())
}

// The phases of a stop follow each other. In a phase the tasks stop together.
func TestTaskGroup_StopTime_phases(t *testing.T) {
	t.Parallel()
	task := func(delay, kill time.Duration, hook cluster.Hook, sidecar bool) *cluster.Task {
		t := &cluster.Task{ShutdownDelay: delay * time.Second, KillTimeout: kill * time.Second}
		if hook != "" {
			t.Lifecycle = &cluster.Lifecycle{Hook: hook, Sidecar: sidecar}
		}
		return t
	}
	group := &cluster.TaskGroup{ShutdownDelay: time.Second, Tasks: []*cluster.Task{
		task(1, 10, "", false),
		task(2, 10, "", false),
		task(0, 13, cluster.HookPrestart, false),
		task(0, 5, cluster.HookPoststart, false),
	}}
	must.Eq(t, 14*time.Second, group.StopTime(), must.Sprint("one phase"))
	group.Tasks[1].Leader = true
	must.Eq(t, 26*time.Second, group.StopTime(), must.Sprint("the leader first"))
	group.Tasks = append(group.Tasks, task(1, 3, cluster.HookPrestart, true), task(0, 2, cluster.HookPoststart, true))
	must.Eq(t, 30*time.Second, group.StopTime(), must.Sprint("then sidecars"))
	group.Tasks = append(group.Tasks, task(9, 7, cluster.HookPoststop, false))
	must.Eq(t, 37*time.Second+cluster.PoststopLimit, group.StopTime(), must.Sprint("then poststop tasks run"))
	group.Tasks = append(group.Tasks, task(0, 9_223_372_030, "", false))
	must.Eq(t, 1<<63-1, group.StopTime(), must.Sprint("no overflow"))
}

func TestConstraint_String(t *testing.T) {
	t.Parallel()
	must.Eq(t, "${attr.kernel.name} = windows", cluster.Constraint{LTarget: "${attr.kernel.name}", RTarget: "windows"}.String())
	must.Eq(t, "${meta.x} is_set", cluster.Constraint{LTarget: "${meta.x}", Operand: "is_set"}.String())
	must.Eq(t, "a regexp b", cluster.Constraint{LTarget: "a", Operand: "regexp", RTarget: "b"}.String())
	name, is := cluster.Target("${attr.kernel.name}")
	must.True(t, is)
	must.Eq(t, "attr.kernel.name", name)
	for _, text := range []string{"attr.kernel.name", "${attr", ""} {
		_, is := cluster.Target(text)
		must.False(t, is)
	}
}

func TestNode_HasDriver(t *testing.T) {
	t.Parallel()
	silent := &cluster.Node{}
	silent.Canonicalize()
	must.True(t, silent.HasDriver("docker"), must.Sprint("the node does not report drivers"))
	must.True(t, silent.HasDriver(""))

	node := &cluster.Node{Drivers: map[string]*cluster.DriverInfo{
		"raw_exec": {Detected: true, Healthy: true}, "exec": {Detected: true}, "java": {Healthy: true}, "none": nil,
	}}
	node.Canonicalize()
	must.True(t, node.ReportsDrivers)
	must.True(t, node.HasDriver("raw_exec"))
	for _, name := range []string{"exec", "java", "none", "docker", ""} {
		must.False(t, node.HasDriver(name), must.Sprint(name))
	}
	must.False(t, (&cluster.Node{ReportsDrivers: true}).HasDriver("raw_exec"), must.Sprint("the node reports that it has none"))
}

func TestNode_CheckDrivers(t *testing.T) {
	t.Parallel()
	driver := func(name string, d *cluster.DriverInfo) *cluster.Node {
		return &cluster.Node{Drivers: map[string]*cluster.DriverInfo{name: d}}
	}
	must.NoError(t, (&cluster.Node{}).CheckDrivers())
	must.NoError(t, driver("raw_exec", &cluster.DriverInfo{Attributes: map[string]string{"driver.raw_exec": "1"}}).CheckDrivers())
	must.EqError(t, (&cluster.Node{MaxKillTimeout: -1}).CheckDrivers(), "MaxKillTimeout is -1ns and must be >= 0")
	must.EqError(t, driver("raw_exec", nil).CheckDrivers(), `driver "raw_exec" is missing`)
	must.EqError(t, driver("", &cluster.DriverInfo{}).CheckDrivers(), `invalid driver name "": it is empty`)
	must.EqError(t, driver("a", &cluster.DriverInfo{HealthDescription: strings.Repeat("x", cluster.MaxDriverBytes+1)}).CheckDrivers(),
		"attributes and descriptions of the drivers are too large")
	many := &cluster.Node{Drivers: map[string]*cluster.DriverInfo{}}
	attributes := map[string]string{}
	for i := range max(cluster.MaxDrivers, cluster.MaxDriverAttributes) + 1 {
		attributes[fmt.Sprint(i)] = ""
		if i <= cluster.MaxDrivers {
			many.Drivers[fmt.Sprint(i)] = &cluster.DriverInfo{}
		}
	}
	must.EqError(t, many.CheckDrivers(), "a node has at most 64 drivers but found 65")
	must.EqError(t, driver("a", &cluster.DriverInfo{Attributes: attributes}).CheckDrivers(), `driver "a" has at most 256 attributes but found 257`)
}

// Entries and snapshots leave out what is empty. So no row has it: a restored row equals the live
// one.
func TestCanonicalize_makesEmptyNil(t *testing.T) {
	t.Parallel()
	none := map[string]string{}
	job := &cluster.Job{ID: "web", Constraints: []cluster.Constraint{}, Meta: none, TaskGroups: []*cluster.TaskGroup{{
		Constraints: []cluster.Constraint{}, Meta: none,
		Tasks: []*cluster.Task{{Config: json.RawMessage{}, Env: none, Meta: none, Constraints: []cluster.Constraint{}}},
	}}}
	want := &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{{Tasks: []*cluster.Task{{}}}}}
	job.Canonicalize()
	want.Canonicalize()
	must.Eq(t, want, job)

	node := &cluster.Node{Drivers: map[string]*cluster.DriverInfo{"raw_exec": {Attributes: none}}}
	node.Canonicalize()
	must.True(t, node.Drivers["raw_exec"].Attributes == nil)
	node.Drivers = map[string]*cluster.DriverInfo{}
	node.Canonicalize()
	must.True(t, node.Drivers == nil && node.ReportsDrivers)
}
