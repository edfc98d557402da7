package job

import (
	"bytes"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// A job shows for each group how far the new version has come, and what it waits for.
func TestJobStatus_rollouts(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	printRollouts(&out, &wire.JobSummary{}, false)
	printRollouts(&out, &wire.JobSummary{Rollouts: map[string]wire.GroupRollout{
		"web": {Outdated: 3, UnhealthyAllocID: "0a1b2c3d-0003", UnhealthyBecause: "The check \"up\" of service \"web\" fails: HTTP 503\n\x1b[2J", Why: "allocation 0a1b2c3d-0003 of the new version is unhealthy"},
		"api": {Outdated: 1, Why: "group api already replaces 2, and max_parallel of its update is 2"},
		"log": {Outdated: 2},
	}}, false)
	must.Eq(t, `
Group "api": the new version has still to replace 1 allocation
  * It waits: group api already replaces 2, and max_parallel of its update is 2

Group "log": the new version has still to replace 2 allocations

Group "web": the new version has still to replace 3 allocations
  * The rollout has stopped: allocation 0a1b2c3d of the new version is unhealthy
  * The check "up" of service "web" fails: HTTP 503 \ufffd[2J
  * It continues when this allocation has recovered, or with a newer version. See: nodedrain alloc status 0a1b2c3d
`, strings.ReplaceAll(out.String(), "\ufffd", `\ufffd`))
}
