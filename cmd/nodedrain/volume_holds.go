package main

import (
	"cmp"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// holdTable lists volumes that an allocation which must end, or has ended, or that a drain has left on
// a node, or returns nil if there is none.
func holdTable(holds *wire.VolumeHolds, verbose bool) *table {
	if holds == nil || len(holds.Volumes) == 0 {
		return nil
	}
	t := newTable("Volume", "Used By", "Since", "Waits For", "Path")
	for _, h := range holds.Volumes {
		t.row(jobName(h.Namespace, h.Volume), shortID(h.AllocID, verbose), timeCell(h.Since), cmp.Or(h.Reason, "-"), cmp.Or(h.Path, "-"))
	}
	if more := holds.More; more > 0 {
		t.row(fmt.Sprintf("and %d more", more), "-", "-", "-", "-")
	}
	return t
}
