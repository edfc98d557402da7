package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// A valid job comes back unchanged from its own JSON, without a warning.
func FuzzJob(f *testing.F) {
	for _, job := range []string{
		`{"ID":"x","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t"}]}]}`,
		`{"ID":"x","Type":"sysbatch","Namespace":"a/b","Priority":99,"Datacenters":["*"],"TaskGroups":[{"Name":"g","Count":0,"ShutdownDelay":1,"Tasks":[{"KillTimeout":9223372036854775807,"ShutdownDelay":2,"CSIPluginConfig":{}}]}]}`,
		`{"ID":"x","Migrate":{"MaxParallel":3},"TaskGroups":[{"Name":"g","Migrate":{"HealthCheck":"","MaxParallel":0},"MaxClientDisconnect":5,"EphemeralDisk":{"SizeMB":1},"Tasks":[{"Resources":{"GPU":1,"Devices":[{"Name":"gpu"}]}}]}]}`,
		`{"ID":"x","Constraints":[{"LTarget":"${node.class}","Operand":"set_contains_any","RTarget":"a, b,,a"}],"TaskGroups":[{"Name":"g","Constraints":[{"LTarget":"x"}],"Tasks":[{"Constraints":[{"LTarget":"${node.class}","RTarget":"a"}]}]}]}`,
		string(encode(f, wire.NewJob(service()))),
	} {
		f.Add([]byte(job))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var w wire.Job
		if json.Unmarshal(body, &w) != nil {
			return
		}
		job, _, err := w.Job()
		if err != nil || job.Validate() != nil {
			return
		}
		var again wire.Job
		must.NoError(t, json.Unmarshal(encode(t, wire.NewJob(job)), &again))
		back, warnings, err := again.Job()
		must.NoError(t, err)
		must.SliceEmpty(t, warnings)
		must.Eq(t, job, back)
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
