package volume

import (
	"cmp"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// HoldTable lists volumes that an allocation which must end, or has ended, or that a drain has left on
// a node. There may be none.
func HoldTable(holds *wire.VolumeHolds, verbose bool) *cli.Table {
	t := cli.NewTable("Volume", "Used By", "Since", "Waits For", "Path")
	if holds == nil || len(holds.Volumes) == 0 {
		return t
	}
	for _, h := range holds.Volumes {
		t.Row(cli.JobName(h.Namespace, h.Volume), cli.ShortID(h.AllocID, verbose), cli.TimeCell(h.Since), cmp.Or(h.Reason, "-"), cmp.Or(h.Path, "-"))
	}
	if more := holds.More; more > 0 {
		t.Row(fmt.Sprintf("and %d more", more), "-", "-", "-", "-")
	}
	return t
}
