package alloc

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Checks is "nodedrain alloc checks".
func Checks() *cli.Command {
	return &cli.Command{
		Short: "Show the checks of an allocation",
		Description: `
  Shows the last result of each check of the allocation's services, as its node has it.
  ALLOC is the allocation's id or a prefix of it.
`,
		Args: "ALLOC", Connects: true,
		Run: func(c *cli.Call) error {
			stub, err := allocs(c, false).Find(c, c.Args[0])
			if err != nil {
				return err
			}
			all, err := c.API.Alloc(stub.ID).Checks(c.Ctx)
			if err != nil {
				return cli.Errorf("Error querying allocation checks: %v", err)
			}
			printChecks(c, all)
			return nil
		},
	}
}

// printChecks prints checks by service and name.
func printChecks(c *cli.Call, all wire.AllocCheckStatuses) {
	if len(all) == 0 {
		fmt.Fprintln(c.Out, "No checks found")
		return
	}
	fmt.Fprintf(c.Out, "Status of %d Nomad Service Checks\n", len(all))
	for _, one := range sortedChecks(all) {
		var f cli.Facts
		f.Add("ID", one.ID)
		f.Add("Name", one.Check)
		f.Add("Group", one.Group)
		f.Add("Task", cmp.Or(one.Task, "(group)"))
		f.Add("Service", one.Service)
		f.Add("Status", one.Status)
		if one.StatusCode != 0 {
			f.Add("StatusCode", fmt.Sprint(one.StatusCode))
		}
		f.Add("Mode", one.Mode)
		if one.Timestamp != 0 {
			f.Add("Timestamp", time.Unix(one.Timestamp, 0).Format(time.RFC3339))
		}
		f.AddAny("Output", strings.TrimSpace(one.Output))
		fmt.Fprintln(c.Out)
		f.Write(c.Out)
	}
}

func sortedChecks(all wire.AllocCheckStatuses) []wire.AllocCheckStatus {
	return slices.SortedFunc(maps.Values(all), func(a, b wire.AllocCheckStatus) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Check, b.Check), cmp.Compare(a.ID, b.ID))
	})
}

// showChecks prints the checks of an allocation, with the output of those that do not pass. A node without a connection
// to the servers has none to show.
func showChecks(c *cli.Call, a *wire.Allocation) {
	if !Alive(a) {
		return
	}
	ctx, cancel := context.WithTimeout(c.Ctx, StatsTimeout)
	defer cancel()
	if all, err := c.API.Alloc(a.ID).Checks(ctx); err == nil {
		c.SectionIfAny("Checks", checkTable(all))
	}
}

// maxCheckOutput bounds the output of a check in a table, in characters: "alloc checks" shows all of it.
const maxCheckOutput = 120

// checkTable lists checks, which may be none.
func checkTable(all wire.AllocCheckStatuses) *cli.Table {
	t := cli.NewTable("Service", "Check", "Task", "Status", "Decides", "Last Run", "Output")
	for _, one := range sortedChecks(all) {
		decides, at, output := "yes", "-", "-"
		if one.Mode == readiness {
			decides = "no"
		}
		if one.Timestamp != 0 {
			at = cli.Clock(wire.NewTime(time.Unix(one.Timestamp, 0)))
		}
		if text := []rune(cli.SingleLine(one.Output)); one.Status != success && len(text) > 0 {
			if output = string(text); len(text) > maxCheckOutput {
				output = string(text[:maxCheckOutput]) + "…"
			}
		}
		t.Row(one.Service, one.Check, cmp.Or(one.Task, "-"), one.Status, decides, at, output)
	}
	return t
}

// Values of checks in the compatible API. A check with the mode readiness does not decide about health.
const (
	success   = "success"
	readiness = "readiness"
)
