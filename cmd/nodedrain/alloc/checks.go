package alloc

import (
	"cmp"
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
	for _, one := range slices.SortedFunc(maps.Values(all), func(a, b wire.AllocCheckStatus) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Check, b.Check), cmp.Compare(a.ID, b.ID))
	}) {
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
