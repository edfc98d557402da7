package wire_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// A valid job comes back unchanged from its own JSON, without a warning.
func FuzzJob(f *testing.F) {
	for _, job := range []string{
		`{"ID":"x","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t"}]}]}`,
		`{"ID":"x","Type":"sysbatch","Namespace":"a/b","Priority":99,"Datacenters":["*"],"TaskGroups":[{"Name":"g","Count":0,"ShutdownDelay":1,"Tasks":[{"KillTimeout":9223372036854775807,"ShutdownDelay":2,"CSIPluginConfig":{}}]}]}`,
		`{"ID":"x","Migrate":{"MaxParallel":3},"TaskGroups":[{"Name":"g","Migrate":{"HealthCheck":"","MaxParallel":0},"MaxClientDisconnect":5,"EphemeralDisk":{"SizeMB":1},"Tasks":[{"Resources":{"GPU":1,"Devices":[{"Name":"gpu"}]}}]}]}`,
		`{"ID":"x","Constraints":[{"LTarget":"${node.class}","Operand":"set_contains_any","RTarget":"a, b,,a"}],"TaskGroups":[{"Name":"g","Constraints":[{"LTarget":"x"}],"Tasks":[{"Constraints":[{"LTarget":"${node.class}","RTarget":"a"}]}]}]}`,
		string(encode(f, wire.NewJob(service(), "global"))),
		string(encode(f, wire.NewJob(driverJob(), "global"))),
		string(encode(f, wire.NewJob(deviceJob(), "global"))),
		`{"ID":"x","TaskGroups":[{"Name":"g","RestartPolicy":{"Attempts":0},"Networks":[{"Mode":"host"}],"Tasks":[{"Name":"t","Config":{"b":"<","a":[1e400]},"LogConfig":{"MaxFiles":1},"Lifecycle":{"Hook":"poststop"}},{"Name":"m","Env":{}}]}]}`,
	} {
		f.Add([]byte(job))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var w wire.Job
		if json.Unmarshal(body, &w) != nil {
			return
		}
		job, err := w.Job()
		if err != nil || job.Validate() != nil {
			return
		}
		var again wire.Job
		must.NoError(t, json.Unmarshal(encode(t, wire.NewJob(job, "global")), &again))
		back, err := again.Job()
		must.NoError(t, err)
		must.Eq(t, job, back)
	})
}

// A report with states of tasks gives bounded states, and their JSON gives the same states again.
func FuzzReport(f *testing.F) {
	f.Add([]byte(`{"ID":"a","ClientStatus":"running","TaskStates":{"server":{"State":"running","StartedAt":"2026-11-20T23:02:20Z","Events":[{"Type":"x","Time":5,"Details":{"a":"b"}},null]},"proxy":null}}`))
	f.Add([]byte(`{"ID":"a","ClientStatus":"running","TaskStates":{"server":{"State":"dead","Waiting":{"For":"grace","Detail":"\ud800"}}}}`))
	group := driverJob().TaskGroups[0]
	f.Fuzz(func(t *testing.T, body []byte) {
		var report wire.AllocReport
		if json.Unmarshal(body, &report) != nil {
			return
		}
		reports, err := (&wire.AllocsRequest{Allocs: []wire.AllocReport{report}}).Reports("n", time.Time{})
		if err != nil {
			return
		}
		states := reports[0].TaskStates.Bounded(group)
		if states == nil {
			return
		}
		must.LessEq(t, len(group.Tasks), len(states.Tasks))
		must.LessEq(t, 100_000, len(encode(t, states)))
		again := wire.NewAllocReport(cluster.AllocReport{Alloc: "a", TaskStates: states})
		must.NoError(t, json.Unmarshal(encode(t, again), &again))
		again.ClientStatus = "running"
		back, err := (&wire.AllocsRequest{Allocs: []wire.AllocReport{again}}).Reports("n", time.Time{})
		must.NoError(t, err)
		must.True(t, states.Equal(back[0].TaskStates))
	})
}

// FuzzTime: an accepted time can be encoded, and decodes to the same time.
func FuzzTime(f *testing.F) {
	for _, text := range []string{`null`, `"2026-11-20T23:02:20.347997732Z"`, `"0000-01-01T00:00:00+12:00"`, `"9999-12-31T23:59:59.999999999-12:00"`, `"0001-01-01T00:00:00Z"`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var read, again wire.Time
		if json.Unmarshal(text, &read) != nil {
			return
		}
		must.NoError(t, json.Unmarshal(encode(t, read), &again))
		must.True(t, read.Equal(again.Time))
	})
}
