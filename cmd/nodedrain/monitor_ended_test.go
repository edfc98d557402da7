package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/drain"
)

// The watch of a drain that has ended judges it like one that saw the end. Bug: it printed only "No drain
// strategy set" and returned 0, with a volume mounted, a task alive, or after a cancel.
func TestMonitor_ofAnEndedDrain(t *testing.T) {
	t.Parallel()
	const id = "aaaaaaaa-0000-4000-8000-000000000001"
	const stopped = `{"ID":"a1","JobID":"web","TaskGroup":"web","DesiredStatus":"stop","ClientStatus":"complete","CreateIndex":5}`
	const alive = `{"ID":"a2","JobID":"slow","TaskGroup":"db","DesiredStatus":"stop","ClientStatus":"running","CreateIndex":5}`
	const after = `{"ID":"a3","JobID":"new","TaskGroup":"db","DesiredStatus":"run","ClientStatus":"running","CreateIndex":21}`
	const system = `{"ID":"a4","JobID":"logs","TaskGroup":"s","DesiredStatus":"run","ClientStatus":"running","CreateIndex":5,"Job":{"Type":"system"}}`
	const volume = `"VolumesLeft":{"Volumes":[{"Namespace":"default","Volume":"data","AllocID":"a1","Path":"/mnt/data","Reason":"busy"}]},`
	const copied = "Outcome: complete; data of 1 allocation not copied"
	const notCopied = `The data of 1 allocation on node "` + id + `" was not copied when the drain ended: nodedrain alloc status ALLOC shows why`
	const again = "To drain it again, use no -idempotency-token of an earlier request: nodedrain node drain -enable " + id
	for _, test := range []struct {
		name                 string
		node, record, allocs string
		code                 int
		want                 []string // suffixes of the lines after the first
	}{
		{"complete", `"Status":"ready","SchedulingEligibility":"ineligible"`, `"Outcome":"complete"`, stopped, 0, []string{
			"Drain complete for node " + id, `All allocations on node "` + id + `" have stopped`}},
		// Bug: "All allocations have stopped" and 0, with tasks that run.
		{"the node is eligible again", `"Status":"ready","SchedulingEligibility":"eligible"`, `"Outcome":"complete"`, stopped, 1, []string{
			"Drain complete for node " + id, `Node "` + id + `" takes work again: it is eligible`, again}},
		{"allocations came after the drain", `"Status":"ready","SchedulingEligibility":"ineligible"`, `"Outcome":"complete"`, stopped + "," + after, 1, []string{
			"Drain complete for node " + id, `Node "` + id + `" takes work again: it has 1 allocation that came after the drain`, again}},
		{"the node runs work again", `"Status":"ready","SchedulingEligibility":"eligible"`, volume + `"Outcome":"complete"`, stopped + "," + after, 1, []string{
			"Drain complete for node " + id, "Left on the node: volume data of allocation a1 at /mnt/data: busy",
			`Node "` + id + `" takes work again: it is eligible, and it has 1 allocation that came after the drain`,
			`Still on node "` + id + `": volume data of allocation a1 at /mnt/data: busy`, again}},
		{"what came after the drain has ended", `"Status":"ready"`, `"Outcome":"complete"`, stopped + "," + strings.ReplaceAll(after, "running", "complete"), 0, []string{
			"Drain complete for node " + id, `All allocations on node "` + id + `" have stopped`}},
		{"what came after the drain is lost", `"Status":"down"`, `"Outcome":"complete"`, stopped + "," + strings.ReplaceAll(after, "running", "lost"), 1, []string{
			"Drain complete for node " + id, `Node "` + id + `" takes work again: it has 1 allocation that came after the drain`, again}},
		{"a volume is left", `"Status":"ready"`, volume + `"Outcome":"complete"`, stopped, int(drain.ExitVolumesLeft), []string{
			"Drain complete for node " + id, "Left on the node: volume data of allocation a1 at /mnt/data: busy",
			`All allocations on node "` + id + `" have stopped`, `Still on node "` + id + `": volume data of allocation a1 at /mnt/data: busy`}},
		{"data was not copied", `"Status":"ready"`, `"DataNotCopied":{"Count":1,"Allocs":["a1"]},"Outcome":"complete"`, stopped, int(drain.ExitNotCopied), []string{
			"Drain complete for node " + id, copied, "Data not copied: allocation a1", `All allocations on node "` + id + `" have stopped`, notCopied}},
		{"data and a volume are left", `"Status":"ready"`, volume + `"DataNotCopied":{"Count":1,"Allocs":["a1"]},"Outcome":"complete"`, stopped, int(drain.ExitNotCopied), []string{
			"Drain complete for node " + id, copied, "Data not copied: allocation a1", "Left on the node: volume data of allocation a1 at /mnt/data: busy",
			`All allocations on node "` + id + `" have stopped`, `Still on node "` + id + `": volume data of allocation a1 at /mnt/data: busy`, notCopied}},
		{"data was not copied before the cancel", `"LastDrain":{"Status":"canceled"}`, `"DataNotCopied":{"Count":1,"Allocs":["a1"]},"Outcome":"cancelled"`, stopped, 2, []string{
			`Drain of node "` + id + `" was cancelled`, "Outcome: cancelled; data of 1 allocation not copied", "Data not copied: allocation a1"}},
		{"all have stopped since", `"Status":"ready"`, `"Outcome":"deadline reached","StillStopping":1`, stopped, 0, []string{
			"Drain complete for node " + id, "Outcome: deadline reached; 1 allocation still stopping", `All allocations on node "` + id + `" have stopped`}},
		{"cancelled", `"LastDrain":{"Status":"canceled"}`, `"Outcome":"cancelled","StillStopping":2`, stopped + "," + alive + "," + after, 2, []string{
			`Drain of node "` + id + `" was cancelled`, "Outcome: cancelled; 2 allocations still stopping", `1 allocation still stops on node "` + id + `"`}},
		{"a system job stays", `"Status":"ready"`, `"Strategy":{"IgnoreSystemJobs":true},"Outcome":"complete"`, stopped + "," + system, 0, []string{
			"Drain complete for node " + id, `All other allocations on node "` + id + `" have stopped; 1 allocation stays by request: logs`}},
		{"the node is down", `"Status":"down"`, `"Outcome":"complete"`, stopped, 0, []string{
			"Drain complete for node " + id, `No allocations are left on node "` + id + `", which is down`}},
		{"nothing was there", `"Status":"ready"`, `"Outcome":"complete"`, "", 0, []string{
			"Drain complete for node " + id, `No allocation had to leave node "` + id + `"`}},
	} {
		address := answers(t, map[string]any{
			"/v1/nodes":                       json.RawMessage(`[{"ID":"` + id + `"}]`),
			"/v1/node/" + id:                  json.RawMessage(`{"ID":"` + id + `",` + test.node + `}`),
			"/v1/node/" + id + "/allocations": json.RawMessage(`[` + test.allocs + `]`),
			"/v1/node/" + id + "/drain":       json.RawMessage(`{"State":"ended","Drain":{"ID":"d1","EndIndex":20,` + test.record + `}}`),
			"/v1/volumes":                     json.RawMessage(`[{"ID":"data","Namespace":"default"}]`),
			"/v1/volume/csi/data":             json.RawMessage(`{"ID":"data","Namespace":"default","Claims":[{"Volume":"data","Namespace":"default","AllocID":"a1","NodeID":"` + id + `","State":0}]}`),
		})
		code, out, errs := commandAt(t.Context(), address, "", "node drain -monitor "+id)
		must.EqOp(t, test.code, code, must.Sprint(test.name, out, errs))
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		must.EqOp(t, "No drain strategy set", lines[0])
		must.EqOp(t, len(test.want), len(lines)-1, must.Sprint(test.name, out))
		for i, want := range test.want {
			if want != again {
				want = ": " + want
			}
			must.StrHasSuffix(t, want, lines[i+1], must.Sprint(test.name))
		}
	}
}

// The watch of an ended drain waits for a task that still stops. Bug: it returned 0.
func TestMonitor_ofAnEndedDrainThatStillStops(t *testing.T) {
	t.Parallel()
	const id = "aaaaaaaa-0000-4000-8000-000000000001"
	address := answers(t, map[string]any{
		"/v1/nodes":                       json.RawMessage(`[{"ID":"` + id + `"}]`),
		"/v1/node/" + id:                  json.RawMessage(`{"ID":"` + id + `","Status":"ready"}`),
		"/v1/node/" + id + "/allocations": json.RawMessage(`[{"ID":"a2","JobID":"slow","TaskGroup":"db","DesiredStatus":"stop","ClientStatus":"running","CreateIndex":5}]`),
		"/v1/node/" + id + "/drain":       json.RawMessage(`{"State":"ended","Drain":{"ID":"d1","EndIndex":20,"Outcome":"deadline reached","StillStopping":1}}`),
	})
	ctx, interrupt := context.WithCancel(t.Context())
	stdout := &watching{words: "1 of 1 allocation left", do: interrupt}
	code, errs := runAt(ctx, address, strings.NewReader(""), stdout, "node", "drain", "-monitor", id)
	must.EqOp(t, 130, code, must.Sprint(stdout.String(), errs))
	must.StrContains(t, stdout.String(), ": Outcome: deadline reached; 1 allocation still stopping\n")
	must.StrContains(t, stdout.String(), `The drain of node "`+id+`" has ended. 1 allocation still to stop`)
	must.StrNotContains(t, stdout.String(), "have stopped")
}
