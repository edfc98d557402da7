//race:skip one goroutine
package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// observed is the node of the reference's samples.
func observed() *cluster.Node {
	day := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	at := func(clock string) time.Time {
		t, err := time.Parse("15:04:05.999999999", clock)
		if err != nil {
			panic(err)
		}
		return day.Add(t.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)))
	}
	return &cluster.Node{
		ID: "7c6b3110-d0f8-951f-b791-e76fce97e405", SecretID: "the secret", Name: "cl1", Datacenter: "dc1", NodePool: "default",
		HTTPAddr: "127.0.0.1:21746", Attributes: map[string]string{}, Meta: map[string]string{}, Links: map[string]string{},
		Resources: cluster.Resources{CPU: 4000, MemoryMB: 4000, DiskMB: 258019},
		LastDrain: &cluster.DrainMetadata{
			StartedAt: at("23:02:20"), UpdatedAt: at("23:02:24"), Status: cluster.DrainStatusComplete, AccessorID: "token:acls-disabled",
			Meta: map[string]string{"flag": "", "message": "kernel upgrade", "owner": "ops"},
		},
		SchedulingEligibility: cluster.NodeIneligible, Status: cluster.NodeReady, StatusUpdatedAt: 1795215744,
		Events: []cluster.NodeEvent{
			{Message: "Node registered", Subsystem: "Cluster", Timestamp: at("23:00:41")},
			{Message: "Node drain strategy set", Subsystem: "Drain", Timestamp: at("23:02:20.347997732"), CreateIndex: 33},
			{Message: "Node drain complete", Subsystem: "Drain", Timestamp: at("23:02:24.959224517"), CreateIndex: 45},
		},
		CreateIndex: 8, ModifyIndex: 45,
	}
}

// differences lists where two JSON values differ, by path.
func differences(path string, a, b any) (all []string) {
	switch a := a.(type) {
	case map[string]any:
		b, _ := b.(map[string]any)
		keys := slices.Sorted(maps.Keys(a))
		for _, key := range slices.Sorted(maps.Keys(b)) {
			if _, both := a[key]; !both {
				keys = append(keys, key)
			}
		}
		for _, key := range keys {
			left, inA := a[key]
			right, inB := b[key]
			if inA != inB {
				all = append(all, path+"."+key)
				continue
			}
			all = append(all, differences(path+"."+key, left, right)...)
		}
		return all
	case []any:
		if b, is := b.([]any); is && len(a) == len(b) {
			for i := range a {
				all = append(all, differences(fmt.Sprintf("%s[%d]", path, i), a[i], b[i])...)
			}
			return all
		}
		return []string{path}
	}
	if a != b {
		return []string{path}
	}
	return nil
}

func value(t *testing.T, b []byte) (v any) {
	t.Helper()
	must.NoError(t, json.Unmarshal(b, &v))
	return v
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	must.NoError(t, err)
	return b
}

// A list has the version of a node's client. Bug: it was empty for our client.
func TestNodeListStub_version(t *testing.T) {
	t.Parallel()
	n := observed()
	n.Attributes = map[string]string{"nodedrain.version": "v1.2.3"}
	must.EqOp(t, "v1.2.3", wire.NewNodeListStub(n).Version)
	n.Attributes["nomad.version"] = "2.0.6"
	must.EqOp(t, "2.0.6", wire.NewNodeListStub(n).Version)
}

// Our shapes are the reference's, except for fields that nodes of this system do not have.
func TestShapes_AreTheReferences(t *testing.T) {
	t.Parallel()
	eligible := observed()
	eligible.SchedulingEligibility, eligible.LastDrain, eligible.ModifyIndex = cluster.NodeEligible, nil, 13
	eligible.Attributes["nomad.version"] = "2.0.6-dev"
	draining := observed()
	draining.Drain = &cluster.Drain{Strategy: cluster.DrainStrategy{StartedAt: time.Date(2026, 11, 20, 23, 9, 45, 95099120, time.UTC)}}

	for file, test := range map[string]struct {
		we     any
		differ []string
	}{
		"nodes.json": {[]*wire.NodeListStub{wire.NewNodeListStub(eligible)}, []string{"[0].Drivers.mock_driver"}},
		"node.json": {wire.NewNode(observed()), []string{
			".LastAllocUpdateIndex", ".NodeResources.Cpu.ReservableCpuCores", ".NodeResources.Cpu.TotalCpuCores",
			".NodeResources.MaxDynamicPort", ".NodeResources.MinDynamicPort", ".ComputedClass",
		}},
		"drain-strategy.json":        {wire.NewNode(draining).DrainStrategy, nil},
		"drain-enabled.json":         {wire.DrainResponse{Index: 33, NodeModifyIndex: 33}, nil},
		"drain-disabled.json":        {wire.DrainResponse{EvalCreateIndex: 454, EvalIDs: []string{"050e2217-…", "36baa6e0-…"}, Index: 453, NodeModifyIndex: 453}, nil},
		"eligibility-unchanged.json": {wire.EligibilityResponse{}, nil},
		"eligibility-changed.json":   {wire.EligibilityResponse{EvalCreateIndex: 53, EvalIDs: []string{"c6dff301-…"}, Index: 52}, nil},
		"purged.json":                {wire.NodeUpdateResponse{EvalCreateIndex: 475, EvalIDs: []string{"050e2217-…"}, Index: 474, NodeModifyIndex: 474}, nil},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			reference, err := os.ReadFile(filepath.Join("testdata", "reference", file))
			must.NoError(t, err)
			must.Eq(t, test.differ, differences("", value(t, reference), value(t, encode(t, test.we))))
		})
	}
}

// No shape holds a node's secret or the keys of requests.
func TestNode_OmitsItsSecret(t *testing.T) {
	t.Parallel()
	n := observed()
	n.Drain = &cluster.Drain{ID: "d1", Keys: []string{"key of a request"}}
	for _, v := range []any{wire.NewNode(n), wire.NewNodeListStub(n), wire.NewDrain(n.Drain, nil)} {
		text := string(encode(t, v))
		must.StrNotContains(t, text, n.SecretID)
		must.StrNotContains(t, text, "key of a request")
	}
}

// A registration carries the secret and all other fields of a client.
func TestRegistration_ComesBack(t *testing.T) {
	t.Parallel()
	n := observed()
	n.Resources.GPU, n.Reserved, n.MaxAllocs, n.Cores = 2000, cluster.Resources{CPU: 100, MemoryMB: 10, DiskMB: 1, GPU: 1}, 7, cluster.Cores{0, 3}
	var request wire.RegisterRequest
	must.NoError(t, json.Unmarshal(encode(t, wire.NewRegistration(n)), &request))
	want := n.Copy()
	want.LastDrain, want.Events, want.StatusUpdatedAt, want.CreateIndex, want.ModifyIndex = nil, nil, 0, 0, 0
	must.Eq(t, want, request.Node.Node())
}

func TestTime(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Time{
		`null`:                                  {},
		`"0001-01-01T00:00:00Z"`:                {},
		`"2026-11-20T23:02:20.347997732Z"`:      time.Date(2026, 11, 20, 23, 2, 20, 347997732, time.UTC),
		`"2026-11-20T23:02:20.347997732+02:00"`: time.Date(2026, 11, 20, 21, 2, 20, 347997732, time.UTC),
	} {
		var got wire.Time
		must.NoError(t, json.Unmarshal([]byte(text), &got))
		must.Eq(t, want, got.Time)
		var again wire.Time
		must.NoError(t, json.Unmarshal(encode(t, got), &again))
		must.Eq(t, got, again)
	}
	must.Eq(t, "null", string(encode(t, wire.Time{})))
	for _, text := range []string{`""`, `5`, `"yesterday"`, `"9999-12-31T23:59:59-12:00"`, `"0000-01-01T00:00:00+12:00"`} {
		must.Error(t, json.Unmarshal([]byte(text), new(wire.Time)))
	}
}

// full is an allocation with everything that an allocation can have.
func full() *cluster.Allocation {
	at := func(s int) time.Time { return time.Date(2026, 11, 20, 12, 0, s, 5, time.UTC) }
	return &cluster.Allocation{
		ID: "a1", Namespace: "default", EvalID: "e1", Name: "web.front[0]", NodeID: "n1", NodeName: "one", JobID: "web", TaskGroup: "front",
		Job: service(), Resources: cluster.Resources{CPU: 500, MemoryMB: 128, DiskMB: 300, GPU: 1500},
		DesiredStatus: cluster.DesiredStop, DesiredDescription: cluster.DescMigrating,
		DesiredTransition: cluster.DesiredTransition{
			Migrate: true, MigrateDisablePlacement: true, Reschedule: true, ForceReschedule: true, NoShutdownDelay: true,
			Drain: "d1", Class: cluster.MarkDeadline, MarkedAt: at(1), Surge: "d1", SurgeAt: at(0),
		},
		StoppedAt: at(2), ClientStatus: cluster.ClientRunning, ClientDescription: "fine", ConfirmedAt: at(6), PreviousAllocation: "a0", NextAllocation: "a2", Standby: true, DeploymentID: "dep",
		DeploymentStatus: &cluster.DeploymentStatus{Healthy: new(true), Timestamp: at(3), Canary: true, ModifyIndex: 7},
		DataIn:           &cluster.DataMove{State: cluster.DataCopied, Peer: "a0", Bytes: 10, Skipped: 1, StartedAt: at(0), EndedAt: at(1)},
		DataOut:          &cluster.DataMove{State: cluster.DataGivenUp, Peer: "a2", Why: "the disk is full", StartedAt: at(3), EndedAt: at(4)},
		Cores:            &cluster.AssignedCores{All: []cluster.TaskCores{{Task: "csi", Cores: cluster.Cores{0, 5}}}},
		CreateTime:       at(0), ModifyTime: at(4), CreateIndex: 5, ModifyIndex: 9, AllocModifyIndex: 8,
	}
}

func service() *cluster.Job {
	j := &cluster.Job{
		Namespace: "default", ID: "web", Type: cluster.JobService, Priority: 60, Version: 3, Datacenters: []string{"dc1", "dc2"}, NodePool: "all",
		TaskGroups: []*cluster.TaskGroup{{
			Name: "front", Count: 0, NodeClasses: []string{"big", "bigger"}, ShutdownDelay: time.Second, MaxRunDuration: time.Hour,
			Migrate:       &cluster.MigrateStrategy{MaxParallel: 0, HealthCheck: "task_states", MinHealthyTime: time.Second, HealthyDeadline: time.Minute},
			EphemeralDisk: cluster.EphemeralDisk{Sticky: true, Migrate: true, SizeMB: 300}, Disconnect: cluster.DisconnectStrategy{LostAfter: time.Hour},
			Tasks: []*cluster.Task{
				{Name: "main", Resources: cluster.Resources{CPU: 500, MemoryMB: 128, GPU: 1500}, MemoryMaxMB: 256, KillTimeout: 20 * time.Second, ShutdownDelay: time.Second},
				{Name: "csi", Cores: 2, Resources: cluster.Resources{CPU: 2 * cluster.CPUOfCore}, KillTimeout: time.Second, StoragePlugin: true},
			},
		}},
		CreateIndex: 2, ModifyIndex: 4, JobModifyIndex: 3,
	}
	return j
}

// A client that decodes an allocation gets the server's allocation. Bug: it got no moves of data, and a restarted client
// deleted data that a replacement waited for.
func TestAllocation_ComesBack(t *testing.T) {
	t.Parallel()
	var w wire.Allocation
	must.NoError(t, json.Unmarshal(encode(t, wire.NewAllocation(full(), "global")), &w))
	back, err := w.Allocation()
	must.NoError(t, err)
	must.Eq(t, full(), back)
}

// An allocation leaves out zero fields; the reference's client reads it all the same.
func TestAllocation_LeavesOutWhatIsZero(t *testing.T) {
	t.Parallel()
	empty := wire.NewAllocation(&cluster.Allocation{ID: "a1"}, "global")
	empty.Job, empty.Metrics = nil, nil
	must.Eq(t, `{"ID":"a1","Resources":{"CPU":0,"MemoryMB":0,"DiskMB":0,"Cores":0,"MemoryMaxMB":0,"SecretsMB":0,"IOPS":0},`+
		`"AllocatedResources":{"Tasks":{},"Shared":{"DiskMB":0,"Networks":null,"Ports":null}}}`, string(encode(t, empty)))
	must.Eq(t, `{"ID":"e1"}`, string(encode(t, wire.NewEvaluation(&cluster.Evaluation{ID: "e1"}))))

	marked := &cluster.Allocation{DesiredTransition: cluster.DesiredTransition{Migrate: true}}
	must.StrContains(t, string(encode(t, wire.NewAllocation(marked, "global"))),
		`"DesiredTransition":{"Migrate":true,"Reschedule":null,"ForceReschedule":null,"NoShutdownDelay":null,"MigrateDisablePlacement":null}`)
}

// An allocation whose record has lost its job still has a job: without one, the reference's monitor
// would take the allocation for ended, and its command would panic.
func TestAllocation_HasAJob(t *testing.T) {
	t.Parallel()
	lost := func(job cluster.JobID) *cluster.Allocation {
		return &cluster.Allocation{ID: "a1", Namespace: "default", JobID: job, ClientStatus: cluster.ClientRunning}
	}
	var list []api.Allocation
	must.NoError(t, json.Unmarshal(encode(t, wire.NewAllocations([]*cluster.Allocation{lost("web"), full(), lost("other")}, "global")), &list))
	must.Eq(t, "web", *list[0].Job.ID)
	must.Eq(t, "service", *list[0].Job.Type)
	must.Zero(t, *list[0].Job.Version)
	must.Eq(t, 3, *list[1].Job.Version)
	must.Eq(t, "other", *list[2].Job.ID)
	must.Eq(t, "service", wire.NewAllocationListStub(lost("web")).JobType)
}

// The reference's client decodes the values that the server encoded.
func TestReferenceClient_Decodes(t *testing.T) {
	t.Parallel()
	var a api.Allocation
	decoder := json.NewDecoder(bytes.NewReader(encode(t, wire.NewAllocation(full(), "global"))))
	must.NoError(t, decoder.Decode(&a))
	must.True(t, a.DesiredTransition.ShouldMigrate())
	must.True(t, *a.DeploymentStatus.Healthy)
	must.Eq(t, full().CreateTime.UnixNano(), a.CreateTime)
	must.Eq(t, 3, *a.Job.Version)
	must.Eq(t, 0, *a.Job.TaskGroups[0].Count)
	must.Eq(t, time.Hour, *a.Job.TaskGroups[0].Disconnect.LostAfter)
	must.NotNil(t, a.Job.TaskGroups[0].Tasks[1].CSIPluginConfig)
	must.Eq(t, 128, *a.Resources.MemoryMB)

	var e api.Evaluation
	must.NoError(t, json.Unmarshal(encode(t, wire.NewEvaluation(&cluster.Evaluation{
		ID: "e1", TriggeredBy: cluster.TriggerNodeDrain, Status: cluster.EvalBlocked, Queued: map[string]int{"front": 2}, SnapshotIndex: 4,
	})), &e))
	must.Eq(t, 2, e.QueuedAllocations["front"])
	must.Eq(t, "node-drain", e.TriggeredBy)
}

// A job comes back from its own JSON unchanged, defaults included.
func TestJob_ComesBack(t *testing.T) {
	t.Parallel()
	for _, want := range []*cluster.Job{service(), batch()} {
		var w wire.Job
		must.NoError(t, json.Unmarshal(encode(t, wire.NewJob(want, "global")), &w))
		got, err := w.Job()
		must.NoError(t, err)
		must.Eq(t, want, got)
		must.NoError(t, got.Validate())
	}
}

func batch() *cluster.Job {
	j := &cluster.Job{ID: "sum", Type: cluster.JobBatch, TaskGroups: []*cluster.TaskGroup{{
		Name: "g", Count: 2, NodeClasses: []string{"big"}, Tasks: []*cluster.Task{{Name: "t"}},
	}}}
	j.Canonicalize()
	return j
}

func TestJob_FromRegistration(t *testing.T) {
	t.Parallel()
	group := func(rest string) string { return `{"ID":"x","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t"}]` + rest }
	for name, test := range map[string]struct {
		job   string
		check func(*cluster.Job)
		err   string
	}{
		"defaults": {job: group(`}]}`), check: func(j *cluster.Job) {
			must.Eq(t, cluster.JobService, j.Type)
			must.Eq(t, 1, j.TaskGroups[0].Count)
			must.Eq(t, cluster.DefaultMigrateStrategy(), j.TaskGroups[0].Migrate)
			must.Eq(t, 5*time.Second, j.TaskGroups[0].Tasks[0].KillTimeout)
			must.Eq(t, "default", j.Namespace)
			must.Eq(t, 50, j.Priority)
		}},
		"none wanted": {job: group(`,"Count":0}]}`), check: func(j *cluster.Job) { must.Eq(t, 0, j.TaskGroups[0].Count) }},
		"the job's migrate block, and the group's over it": {
			job: group(`,"Migrate":{"MaxParallel":0}}],"Migrate":{"MaxParallel":7,"MinHealthyTime":1000000000}}`),
			check: func(j *cluster.Job) {
				must.Eq(t, &cluster.MigrateStrategy{MaxParallel: 0, HealthCheck: "checks", MinHealthyTime: time.Second, HealthyDeadline: 5 * time.Minute}, j.TaskGroups[0].Migrate)
			},
		},
		"health checks": {
			job:   group(`,"Migrate":{"HealthCheck":"checks"}}]}`),
			check: func(j *cluster.Job) { must.Eq(t, cluster.DefaultMigrateStrategy(), j.TaskGroups[0].Migrate) },
		},
		"states of tasks": {job: group(`,"Migrate":{"HealthCheck":"task_states"}}]}`), check: func(j *cluster.Job) {
			must.Eq(t, cluster.HealthTaskStates, j.TaskGroups[0].Migrate.HealthCheck)
		}},
		"an update block of another form": {job: group(`,"Update":{"Canary":"x"}}],"Update":7}`), check: func(*cluster.Job) {}},
		"an old word":                     {job: group(`,"MaxClientDisconnect":5}]}`), check: func(j *cluster.Job) { must.Eq(t, 5, j.TaskGroups[0].Disconnect.LostAfter) }},
		"the third old word":              {job: group(`,"PreventRescheduleOnLost":true}]}`), check: func(j *cluster.Job) { must.True(t, j.TaskGroups[0].Disconnect.NoReplace) }},
		"the block over the old word": {
			job:   group(`,"PreventRescheduleOnLost":true,"Disconnect":{"Replace":true}}]}`),
			check: func(j *cluster.Job) { must.False(t, j.TaskGroups[0].Disconnect.NoReplace) },
		},
		"another way to reconcile": {
			job: group(`,"Disconnect":{"Reconcile":"none"}}]}`),
			err: `Task group "g": Reconcile "none" of Disconnect is none of keep_original, keep_replacement, best_score and longest_running`,
		},
		"both words": {job: group(`,"MaxClientDisconnect":5,"Disconnect":{"LostAfter":6}}]}`), check: func(j *cluster.Job) { must.Eq(t, 6, j.TaskGroups[0].Disconnect.LostAfter) }},
		"anywhere":   {job: group(`}],"Datacenters":["dc1","*"]}`), check: func(j *cluster.Job) { must.SliceEmpty(t, j.Datacenters) }},
		"devices": {
			job:   `{"ID":"x","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t","Resources":{"GPU":500,"Devices":[{"Name":"nvidia/gpu/a100","Count":2},{"Name":"gpu"}]}}]}]}`,
			check: func(j *cluster.Job) { must.Eq(t, 3500, j.TaskGroups[0].Tasks[0].Resources.GPU) },
		},
		"devices of another type": {
			job: `{"ID":"x","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t","Resources":{"Devices":[{"Name":"gpu"},{"Name":"x/y/gpu"}]}}]}]}`,
			err: `Task group "g": Task "t": device "x/y/gpu" is not supported: only devices of type gpu are counted for a task without a driver`,
		},
		"a constraint on a device without a driver": {
			job: `{"ID":"x","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t","Resources":{"Devices":[{"Name":"gpu","Constraints":[{"LTarget":"${device.model}","RTarget":"a"}]}]}}]}]}`,
			err: `Task group "g": Task "t": device "gpu": constraints and affinities need a task with a driver`,
		},
		"too many devices": {
			job: `{"ID":"x","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t","Resources":{"Devices":[{"Name":"gpu","Count":9223372036854776}]}}]}]}`,
			err: `Task group "g": Task "t": device "gpu": invalid count 9223372036854776`,
		},
		"node classes that all constraints allow": {
			job:   group(`,"Constraints":[{"LTarget":"${node.class}","Operand":"set_contains_any","RTarget":"a, b,c"}]}],"Constraints":[{"LTarget":"${node.class}","Operand":"set_contains_any","RTarget":"b,c,d"}]}`),
			check: func(j *cluster.Job) { must.Eq(t, []string{"b", "c"}, j.TaskGroups[0].NodeClasses) },
		},
		"node classes that exclude each other": {
			job: group(`,"Constraints":[{"LTarget":"${node.class}","RTarget":"a"}]}],"Constraints":[{"LTarget":"${node.class}","RTarget":"b"}]}`),
			err: `Task group "g": no node can have the class that its constraints require`,
		},
		"a task that is none": {job: `{"ID":"x","TaskGroups":[{"Name":"g","Tasks":[null]}]}`, err: `Task group "g": Task 0 is missing`},
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
			must.NoError(t, j.Validate())
			if test.check != nil {
				test.check(j)
			}
		})
	}
}
