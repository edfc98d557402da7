package wire_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// driverJob has every field of real clients.
func driverJob() *cluster.Job {
	j := &cluster.Job{
		ID: "web", Meta: map[string]string{"owner": "ops"},
		Constraints: []cluster.Constraint{{LTarget: "${attr.kernel.name}", Operand: "=", RTarget: "linux"}},
		TaskGroups: []*cluster.TaskGroup{{
			Name: "front", Count: 2, NodeClasses: []string{"big"}, Meta: map[string]string{"tier": "1"},
			Constraints:   []cluster.Constraint{{LTarget: "${meta.rack}", Operand: "is_set"}},
			RestartPolicy: &cluster.RestartPolicy{Attempts: 5, Interval: time.Hour, Delay: time.Second, Mode: cluster.RestartDelay},
			Disconnect:    cluster.DisconnectStrategy{StopOnClientAfter: time.Minute},
			Tasks: []*cluster.Task{{
				Name: "server", Driver: "raw_exec", User: "www", Leader: true, KillSignal: "SIGTERM", Config: json.RawMessage(`{"args":[1,2.50],"command":"x"}`),
				Env: map[string]string{"PORT": "80"}, Meta: map[string]string{"a": "b"},
				Constraints:   []cluster.Constraint{{LTarget: "${driver.raw_exec.version}", Operand: "version", RTarget: ">= 1"}},
				RestartPolicy: &cluster.RestartPolicy{Attempts: 1, Interval: time.Hour, Delay: time.Second, Mode: cluster.RestartFail},
				LogConfig:     &cluster.LogConfig{MaxFiles: 2, MaxFileSizeMB: 3},
			}, {
				Name: "proxy", Driver: "raw_exec", Lifecycle: &cluster.Lifecycle{Hook: cluster.HookPrestart, Sidecar: true},
			}},
		}},
	}
	j.Canonicalize()
	return j
}

// A job with every field comes back from our shape and from the reference's.
func TestDrivers_AJobComesBack(t *testing.T) {
	t.Parallel()
	want := driverJob()
	must.NoError(t, want.Validate())
	ours := encode(t, wire.NewJob(want, "global"))
	var reference api.Job
	must.NoError(t, json.Unmarshal(ours, &reference))
	task := reference.TaskGroups[0].Tasks[0]
	must.Eq(t, "raw_exec", task.Driver)
	must.Eq(t, "x", task.Config["command"])
	must.Eq(t, 1, *task.RestartPolicy.Attempts)
	must.Eq(t, 3, *task.LogConfig.MaxFileSizeMB)
	must.Eq(t, time.Minute, *reference.TaskGroups[0].Disconnect.StopOnClientAfter)
	must.Eq(t, "delay", *reference.TaskGroups[0].RestartPolicy.Mode)
	must.Eq(t, "prestart", reference.TaskGroups[0].Tasks[1].Lifecycle.Hook)
	must.True(t, reference.TaskGroups[0].Tasks[1].Lifecycle.Sidecar)

	for _, text := range [][]byte{ours, encode(t, &reference)} {
		var w wire.Job
		must.NoError(t, json.Unmarshal(text, &w))
		got, err := w.Job()
		must.NoError(t, err)
		must.StrContains(t, string(got.TaskGroups[0].Tasks[0].Config), `"command":"x"`)
		got.TaskGroups[0].Tasks[0].Config = want.TaskGroups[0].Tasks[0].Config // 2.50 is 2.5 to the reference
		must.Eq(t, want, got)
	}
}

// What the reference's client fills in by itself is no field of real clients, but the driver.
func TestDrivers_TheReferencesDefaultsAreOurs(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"service", "batch", "system", "sysbatch"} {
		reference := &api.Job{ID: new("web"), Type: &kind, TaskGroups: []*api.TaskGroup{{Name: new("web"), Tasks: []*api.Task{{Name: "main"}}}}}
		reference.Canonicalize()
		var w wire.Job
		must.NoError(t, json.Unmarshal(encode(t, reference), &w))
		j, err := w.Job()
		must.NoError(t, err)
		must.NoError(t, j.Validate())
		must.Eq(t, cluster.DefaultReschedulePolicy(j.Type), j.TaskGroups[0].Reschedule, must.Sprint(kind))
		j.TaskGroups[0].Reschedule = nil
		must.Eq(t, cluster.MinVersion, j.NeededVersion(), must.Sprint(kind))
	}
}

func TestDrivers_JobFromRegistration(t *testing.T) {
	t.Parallel()
	task := func(rest string) string {
		return `{"ID":"x","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t"` + rest + `}]}]}`
	}
	group := func(rest string) string {
		return `{"ID":"x","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t"}]` + rest + `}]}`
	}
	for name, test := range map[string]struct {
		job   string
		check func(*cluster.TaskGroup)
		err   string
	}{
		"a policy over the group's": {
			job: `{"ID":"x","Type":"batch","TaskGroups":[{"Name":"g","RestartPolicy":{"Attempts":7},"Tasks":[{"Name":"t","RestartPolicy":{"Delay":5}},{"Name":"u","RestartPolicy":{"Attempts":7}}]}]}`,
			check: func(g *cluster.TaskGroup) {
				want := cluster.RestartPolicy{Attempts: 7, Interval: 24 * time.Hour, Delay: 15 * time.Second, Mode: cluster.RestartFail}
				must.Eq(t, &want, g.RestartPolicy)
				want.Delay = 5
				must.Eq(t, &want, g.Tasks[0].RestartPolicy)
				must.Nil(t, g.Tasks[1].RestartPolicy)
			},
		},
		"a config that is not sorted": {task(`,"Config":{ "b" : "<", "a" : [ 1.50 ] }`), func(g *cluster.TaskGroup) { must.Eq(t, `{"a":[1.50],"b":"\u003c"}`, string(g.Tasks[0].Config)) }, ""},
		"an empty config":             {task(`,"Config":{ }`), func(g *cluster.TaskGroup) { must.Eq(t, 0, len(g.Tasks[0].Config)) }, ""},
		"no config":                   {task(`,"Config":null`), func(g *cluster.TaskGroup) { must.Eq(t, 0, len(g.Tasks[0].Config)) }, ""},
		"an old word": {
			group(`,"StopAfterClientDisconnect":9`), func(g *cluster.TaskGroup) { must.Eq(t, 9, g.Disconnect.StopOnClientAfter) }, "",
		},
		"volumes of a group": {
			group(`,"Volumes":{"data":{"Type":"csi","Source":"vol","AccessMode":"single-node-writer","PerAlloc":true}}`),
			func(g *cluster.TaskGroup) {
				must.Eq(t, []cluster.VolumeRequest{{
					Name: "data", Type: cluster.VolumeCSI, Source: "vol", PerAlloc: true,
					Capability: cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem},
				}}, g.Volumes)
			}, "",
		},
		"a volume under two names": {
			group(`,"Volumes":{"data":{"Name":"other","Type":"csi"}}`), nil,
			`Task group "g": Volume "data" has another name: "other"`,
		},
		"a volume that is missing": {group(`,"Volumes":{"data":null}`), nil, `Task group "g": Volume "data" is missing`},
		"mounts of volumes": {
			task(`,"VolumeMounts":[{"Volume":"data","Destination":"/data"}]`),
			func(g *cluster.TaskGroup) {
				must.Eq(t, []cluster.VolumeMount{{Volume: "data", Destination: "/data"}}, g.Tasks[0].VolumeMounts)
			}, "",
		},
		"a mount that is missing": {task(`,"VolumeMounts":[null]`), nil, `Task group "g": Task "t": Volume mount 0 is missing`},
		"a storage plugin": {
			task(`,"CSIPluginConfig":{"ID":"disks","Type":"node","MountDir":"/csi"}`),
			func(g *cluster.TaskGroup) {
				must.Eq(t, &cluster.CSIPlugin{ID: "disks", Type: cluster.PluginNode, MountDir: "/csi"}, g.Tasks[0].CSIPlugin)
				must.True(t, g.Tasks[0].StoragePlugin)
			}, "",
		},
		"no volumes": {group(`,"Volumes":{}`), func(*cluster.TaskGroup) {}, ""},
		"devices": {
			task(`,"Driver":"raw_exec","Resources":{"Devices":[{"Name":"gpu"}, {"Name":"nvidia/gpu","Count":2,"Constraints":[{"LTarget":"${device.attr.memory}","Operand":"is","RTarget":"2 GiB"}],"Affinities":[{"LTarget":"${device.model}","RTarget":"A100"}]}]}`),
			func(g *cluster.TaskGroup) {
				must.Eq(t, []cluster.DeviceRequest{{Name: "gpu", Count: 1}, {
					Name: "nvidia/gpu", Count: 2,
					Constraints: []cluster.Constraint{{LTarget: "${device.attr.memory}", Operand: "=", RTarget: "2 GiB"}},
					Affinities:  []cluster.Affinity{{Constraint: cluster.Constraint{LTarget: "${device.model}", Operand: "=", RTarget: "A100"}, Weight: 50}},
				}}, g.Tasks[0].Devices)
				must.Eq(t, cluster.Resources{}, g.Tasks[0].Resources)
			}, "",
		},
		"too many devices": {
			task(`,"Driver":"raw_exec","Resources":{"Devices":[{"Name":"gpu","Count":18446744073709551615}]}`), nil,
			`Task group "g": Task "t": device "gpu": Count is at most 1024 but found 18446744073709551615`,
		},
		"devices without a driver": {
			task(`,"Resources":{"Devices":[{"Name":"nvidia/gpu","Count":2}]}`),
			func(g *cluster.TaskGroup) {
				must.Eq(t, cluster.Resources{GPU: 2000}, g.Tasks[0].Resources)
				must.SliceEmpty(t, g.Tasks[0].Devices)
			}, "",
		},
		"other words of operands": {
			group(`,"Constraints":[{"LTarget":"a","Operand":"is","RTarget":"a"},{"LTarget":"a","Operand":"not","RTarget":"b"},{"LTarget":"a","Operand":"set_contains_all","RTarget":"a"},{"LTarget":"${node.class}","Operand":"!=","RTarget":"x"}]`),
			func(g *cluster.TaskGroup) {
				must.Eq(t, []cluster.Constraint{
					{LTarget: "a", Operand: "=", RTarget: "a"}, {LTarget: "a", Operand: "!=", RTarget: "b"},
					{LTarget: "a", Operand: "set_contains", RTarget: "a"}, {LTarget: "${node.class}", Operand: "!=", RTarget: "x"},
				}, g.Constraints)
			}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w wire.Job
			must.NoError(t, json.NewDecoder(strings.NewReader(test.job)).Decode(&w))
			j, err := w.Job()
			if test.err != "" {
				must.EqError(t, err, test.err)
				return
			}
			must.NoError(t, err)
			test.check(j.TaskGroups[0])
		})
	}
}

// The registration of a node carries its drivers. An old client that sends an empty object does not
// report drivers.
func TestDrivers_ANodeComesBack(t *testing.T) {
	t.Parallel()
	for _, want := range []*cluster.Node{
		{ID: "n", SecretID: "s"},
		{ID: "n", SecretID: "s", ReportsDrivers: true, MaxKillTimeout: time.Minute},
		{ID: "n", SecretID: "s", ReportsDrivers: true, Drivers: map[string]*cluster.DriverInfo{
			"raw_exec": {Attributes: map[string]string{"driver.raw_exec": "1"}, Detected: true, Healthy: true, HealthDescription: "well", UpdateTime: time.Unix(5, 0).UTC()},
			"exec":     {},
		}},
	} {
		var w wire.RegisterRequest
		must.NoError(t, json.Unmarshal(encode(t, wire.NewRegistration(want)), &w))
		must.Eq(t, want, w.Node.Node())
		var n api.Node
		must.NoError(t, json.Unmarshal(encode(t, wire.NewNode(want)), &n))
		must.NotNil(t, n.Drivers)
		must.MapLen(t, len(want.Drivers), n.Drivers)
		if d := n.Drivers["raw_exec"]; d != nil {
			must.True(t, d.Healthy && d.Detected)
			must.Eq(t, "well", d.HealthDescription)
			must.Eq(t, 5, d.UpdateTime.Unix())
		}
		must.MapLen(t, len(want.Drivers), wire.NewNodeListStub(want).Drivers)
	}
}

// The states of tasks travel from the client to the servers, and to the reference's client.
func TestDrivers_TaskStatesComeBack(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 5).UTC()
	states := &cluster.TaskStates{Tasks: []cluster.TaskState{
		{Name: "proxy", State: cluster.TaskDead, Failed: true},
		{Name: "server", State: cluster.TaskRunning, Restarts: 2, LastRestart: at, StartedAt: at,
			Waiting: &cluster.TaskWait{For: cluster.WaitGrace, Until: at, Detail: "pid 7"},
			Events: []cluster.TaskEvent{
				{Type: "Started", Time: at, Message: "Task started by client"},
				{Type: "Terminated", Time: at, Message: "Exit Code: 1", Details: map[string]string{"exit_code": "1"}},
			}},
	}}
	report := cluster.AllocReport{Alloc: "a", Node: "n", ClientStatus: cluster.ClientRunning, TaskStates: states, At: at}
	var request wire.AllocsRequest
	must.NoError(t, json.Unmarshal(encode(t, wire.AllocsRequest{Allocs: []wire.AllocReport{wire.NewAllocReport(report)}}), &request))
	reports, err := request.Reports("n", at)
	must.NoError(t, err)
	must.Eq(t, []cluster.AllocReport{report}, reports)
	must.Eq(t, 1, strings.Count(string(encode(t, wire.NewAllocReport(report))), "Task started by client"), must.Sprint("a text travels once"))

	var a api.Allocation
	must.NoError(t, json.Unmarshal(encode(t, wire.NewAllocation(&cluster.Allocation{ID: "a", TaskStates: states}, "global")), &a))
	server := a.TaskStates["server"]
	must.Eq(t, "running", server.State)
	must.Eq(t, 2, server.Restarts)
	must.Eq(t, at, server.StartedAt.UTC())
	must.Eq(t, at.UnixNano(), server.Events[0].Time)
	must.Eq(t, "Task started by client", server.Events[0].DisplayMessage)
	must.Eq(t, "1", server.Events[1].Details["exit_code"])
	must.True(t, a.TaskStates["proxy"].Failed)

	plain := cluster.AllocReport{Alloc: "a", ClientStatus: cluster.ClientRunning}
	must.StrNotContains(t, string(encode(t, wire.NewAllocReport(plain))), "TaskStates")
}
