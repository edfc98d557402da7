package job

import (
	"bytes"
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/clitest"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// A job shows for each group whose allocations failed too often why its slots stay empty, and what to do.
func TestJobStatus_givenUp(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local) // the output is the same in every zone
	sum := &wire.JobSummary{JobID: "shop", GivenUp: map[string]wire.GroupGivenUp{
		"web": {Slots: 1, Failed: 11, Replaced: 10, AllocID: "0a1b2c3d-0003", NodeID: "7c6b3110-0001", Task: "main", Event: "Driver Failure",
			Message: "failed to start task:\nunknown key \"comand\"", At: wire.NewTime(at)},
		"api":   {Slots: 2, Failed: 22, Replaced: 10, AllocID: "1a1b2c3d-0003", NodeID: "7c6b3110-0001", Message: "Failed tasks"},
		"cache": {Slots: 1, Failed: 11, Replaced: 10, AllocID: "2a1b2c3d-0003", NodeID: "7c6b3110-0001"},
		"old":   {Slots: 1, Failed: 11, Replaced: 10, AllocID: "3a1b2c3d-0003", NodeID: "7c6b3110-0001", Task: "main", Event: "Killed", At: wire.NewTime(at)},
	}}
	var out bytes.Buffer
	printGivenUp(&out, &wire.JobSummary{}, false)
	printGivenUp(&out, sum, false)
	out.WriteString("\nWith whole ids:\n")
	printGivenUp(&out, &wire.JobSummary{JobID: "shop", GivenUp: map[string]wire.GroupGivenUp{"web": sum.GivenUp["web"]}}, true)
	clitest.Golden(t, "job_given_up.golden", out.String())
}
