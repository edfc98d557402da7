package machine

import (
	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// disks are the effects of a client that move the data of ephemeral disks.
type disks struct{ run *run }

// noData is why the data of ephemeral disks does not arrive.
const noData = "the simulator does not move data yet"

// CopyData answers that there is no data.
func (d *disks) CopyData(alloc *cluster.Allocation, _ func(client.DataProgress), reply func(client.DataAnswer)) {
	if !d.run.begins("CopyData", string(alloc.ID)) {
		return
	}
	d.run.after(folderTime, func() {
		d.run.answers("CopyData", func() { reply(client.DataAnswer{Result: client.DataRefused, Why: noData}) })
	})
}

// DropData removes nothing, because no data arrives.
func (d *disks) DropData(alloc cluster.AllocID, reply func(error)) {
	if !d.run.begins("DropData", string(alloc)) {
		return
	}
	d.run.after(folderTime, func() { d.run.answers("DropData", func() { reply(nil) }) })
}

// PlaceData moves nothing, because no double reads folders.
func (d *disks) PlaceData(alloc *cluster.Allocation, _ cluster.AllocID, reply func(error)) {
	if !d.run.begins("PlaceData", string(alloc.ID)) {
		return
	}
	d.run.after(folderTime, func() { d.run.answers("PlaceData", func() { reply(nil) }) })
}
