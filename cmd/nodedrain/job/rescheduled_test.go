package job

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// A job shows for each group which replacements are delayed, and what to do when there are none.
func TestJobStatus_rescheduled(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)
	var out bytes.Buffer
	printRescheduled(&out, &wire.JobSummary{}, false, now)
	printRescheduled(&out, &wire.JobSummary{Rescheduled: map[string]wire.GroupRescheduled{
		"web": {Allocs: 2, AllocID: "0a1b2c3d-0003", Attempts: 3, DueAt: wire.NewTime(now.Add(4*time.Minute + time.Millisecond))},
		"api": {Allocs: 1, AllocID: "1a1b2c3d-0003", Attempts: 1, DueAt: wire.NewTime(now)},
	}}, false, now)
	must.Eq(t, `
Group "api": 1 allocation failed and will be replaced
  * The replacement of allocation 1a1b2c3d is due now. 1 attempt before it

Group "web": 2 allocations failed and will be replaced
  * The replacement of allocation 0a1b2c3d is due in 4m0s, at 2026-11-20 12:04:00. 3 attempts before it
`, out.String())

	out.Reset()
	printGivenUp(&out, &wire.JobSummary{JobID: "shop", GivenUp: map[string]wire.GroupGivenUp{
		"web": {Slots: 1, Failed: 3, Replaced: 2, Policy: "2 within 1h0m0s", AllocID: "0a1b2c3d-0003", Message: "Failed tasks"},
	}}, false)
	must.True(t, strings.Contains(out.String(), "the attempts of its reschedule policy are spent") &&
		strings.Contains(out.String(), "The policy permits 2 within 1h0m0s") && strings.Contains(out.String(), "disk or its reschedule block"), must.Sprint(out.String()))
}
