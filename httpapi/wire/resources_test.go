//race:skip one goroutine
package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Cores replace cpu. A job with both is refused, unless it is the one that the servers return.
func TestJob_coresReplaceCPU(t *testing.T) {
	t.Parallel()
	for resources, why := range map[string]string{
		`{"Cores":2}`: "", `{"Cores":2,"CPU":0}`: "", `{"Cores":2,"CPU":2000}`: "",
		`{"Cores":2,"CPU":500}`: "cpu is 500, and the 2 cores of the task count as 2000: cores replace cpu, so leave it out",
	} {
		var w wire.Job
		must.NoError(t, json.Unmarshal([]byte(`{"ID":"web","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t","Driver":"raw_exec","Resources":`+resources+`}]}]}`), &w))
		j, err := w.Job()
		if why != "" {
			must.ErrorContains(t, err, why)
			continue
		}
		must.NoError(t, err)
		j.Canonicalize()
		must.Eq(t, 2, j.TaskGroups[0].Tasks[0].Cores)
		must.Eq(t, int64(2*cluster.CPUOfCore), j.TaskGroups[0].Tasks[0].Resources.CPU)
	}
}
