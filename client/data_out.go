package client

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// DataOut is the part of a [Record] about the data that an ended allocation keeps for a replacement.
type DataOut struct {
	// State is [cluster.DataKept], or how the move ended, or empty if the servers have lost the end of a move that
	// they do not follow. Peer is the replacement that has the data, or empty. Moved: it is an allocation of
	// this node, and the data has left the folders of this one.
	State cluster.DataState
	Peer  cluster.AllocID `json:",omitempty"`
	Moved bool            `json:",omitempty"`
	Why   string          `json:",omitempty"`
	// Lost: the client has no record of the allocation, and its folders are gone. State is [cluster.DataKept] until
	// the servers have ended the move.
	Lost bool `json:",omitempty"`
	// Since is the end of the allocation, or of the last copy.
	Since time.Duration
}

// dataOut keeps the folders and the record of an ended allocation until a replacement has its data, or until
// the retention is over.
type dataOut struct {
	alloc *allocRunner
	// readers counts the copies in flight.
	readers int
	// request is the report that gives the data up.
	request uint64
}

// DataSent posts that a copy of the data of an ended allocation of this node begins or ends.
func DataSent(c *Core, alloc cluster.AllocID, begins bool) {
	c.inbox.post(func() {
		a := c.alloc(alloc)
		if a == nil {
			return
		}
		if begins {
			a.out.readers++
		} else {
			a.out.readers = max(0, a.out.readers-1)
		}
		a.out.extend()
	})
}

func (o *dataOut) kept() bool {
	out := o.alloc.rec.DataOut
	return out != nil && out.State == cluster.DataKept
}

// keep decides at the end of the allocation whether its data is kept. There is none if no task has started, unless
// it came from another allocation, or from an earlier start whose record is lost. Work that has run to completion gets no replacement. The cluster version may be
// unknown, after an upgrade of the client or with a full disk. Then the client keeps the data: the row of an older
// cluster ends that.
func (o *dataOut) keep() {
	a := o.alloc
	in := a.rec.DataIn
	switch {
	case a.core.version > 0 && a.core.version < cluster.VersionOfData, !a.group.MovesData(), a.report.endOnly:
	case a.diskLost():
		a.rec.DataOut = &DataOut{State: cluster.DataKept, Lost: true, Since: a.core.now.Boot}
	case !a.order.anyStarted() && (in == nil || in.State != DataInPlaced) && a.rec.Disk != DiskFound:
	case a.job.ToCompletion() && !a.rec.Stopping && !a.order.failed():
	default:
		a.rec.DataOut = &DataOut{State: cluster.DataKept, Since: a.core.now.Boot}
	}
}

// extend starts the retention again.
func (o *dataOut) extend() {
	if o.kept() {
		o.alloc.rec.DataOut.Since = o.alloc.core.now.Boot
		o.alloc.saves.note()
	}
}

// update handles a newer row of the allocation, which has the end of the move. A row with the end of the
// allocation and without its data is from servers of a lower cluster version.
func (o *dataOut) update(row *cluster.Allocation) {
	ended := row.ClientStatus == cluster.ClientComplete || row.ClientStatus == cluster.ClientFailed
	if !o.kept() || !ended || row.DataOut.Kept() {
		return
	}
	lost := o.alloc.rec.DataOut.Lost
	o.alloc.rec.DataOut = nil
	if row.DataOut != nil {
		o.alloc.rec.DataOut = &DataOut{State: row.DataOut.State, Peer: row.DataOut.Peer, Why: row.DataOut.Why, Lost: lost}
	}
	o.alloc.saves.note()
}

// forget handles that the servers do not have the allocation, so no replacement of it comes.
func (o *dataOut) forget() {
	if o.kept() {
		o.alloc.rec.DataOut = nil
		o.alloc.saves.note()
	}
}

// taken handles that a replacement on this node has the data. Its report ends the move on both rows, if the servers
// have the replacement.
func (o *dataOut) taken(by *allocRunner) {
	o.alloc.rec.DataOut = &DataOut{State: cluster.DataCopied, Peer: by.id(), Moved: true}
	o.alloc.saves.note()
	if o.alloc.listed && !by.listed {
		o.restore()
	}
}

// compare handles a row of an answer with all allocations. If the move has not ended there, the servers have lost its
// end, unless the report of a replacement on this node is on its way.
func (o *dataOut) compare(row *cluster.Allocation) {
	out := o.alloc.rec.DataOut
	switch {
	case !o.alloc.rec.Ended, row.DataOut.StateOf().Ended():
	case out == nil && row.DataOut.Kept():
		o.restore()
	case out == nil, !out.State.Ended():
	default:
		if by := o.alloc.core.alloc(out.Peer); !out.Moved || by == nil || !by.listed {
			o.restore()
		}
	}
}

// restore keeps the data again, in the folders in which it is now. If they are gone, the data is lost.
func (o *dataOut) restore() {
	a := o.alloc
	next := &DataOut{Since: a.core.now.Boot}
	if out := a.rec.DataOut; out != nil {
		next.Lost, next.Moved, next.Peer = out.Lost, out.Moved, out.Peer
	}
	if next.Moved {
		for range a.core.allocs { // the bound protects from a cycle
			by := a.core.alloc(next.Peer)
			next.Lost = by == nil
			if by == nil || by.rec.DataOut == nil || !by.rec.DataOut.Moved {
				break
			}
			next.Peer = by.rec.DataOut.Peer
		}
	} else {
		next.Peer = ""
	}
	if a.group.MovesData() {
		next.State = cluster.DataKept
	}
	a.rec.DataOut = next
	a.touch()
	if next.Lost && o.kept() {
		o.giveUp()
	}
}

// holder returns the allocation of this node in whose folders the data of this one is, or nil if it is gone.
func (o *dataOut) holder() *allocRunner {
	if out := o.alloc.rec.DataOut; out != nil && out.Moved && !out.State.Ended() {
		return o.alloc.core.alloc(out.Peer)
	}
	return o.alloc
}

// step gives the data up when the retention is over. Data that is lost is given up when the servers have the end of the
// allocation: they accept no earlier report.
func (o *dataOut) step() {
	a := o.alloc
	if o.kept() && a.rec.DataOut.Lost && o.request == 0 && a.report.endTaken {
		o.giveUp()
		return
	}
	if !o.kept() || o.readers > 0 || !a.core.reached(later(a.rec.DataOut.Since, a.core.options.DataRetention)) {
		return
	}
	o.giveUp()
}

// giveUp reports that the client gives the data up. The servers refuse this while a replacement waits. So the data stays
// until the row of the allocation has the end of the move, and the client repeats the report after a further retention.
func (o *dataOut) giveUp() {
	o.extend()
	o.alloc.report.noteUrgent()
	o.request = o.alloc.report.version
}

// settled reports whether the folders of the ended allocation are no longer needed.
func (o *dataOut) settled() bool { return !o.kept() }

// report returns the data that is kept or given up for the servers, or nil.
func (o *dataOut) report() *cluster.DataMove {
	switch {
	case !o.kept():
		return nil
	case o.request > o.alloc.report.taken:
		return &cluster.DataMove{State: cluster.DataGivenUp, Why: o.why()}
	}
	return &cluster.DataMove{State: cluster.DataKept}
}

// why is why the client gives the data up.
func (o *dataOut) why() string {
	if o.alloc.rec.DataOut.Lost {
		return DataLost
	}
	return "no replacement has taken the data within " + o.alloc.core.options.DataRetention.String()
}

// DataLost is why the data of an allocation without a record and folders is given up.
const DataLost = "the client has no record of the allocation, whose data is lost"

// forsaken handles the row of an ended allocation whose data the client must keep, and that the client
// does not have: its record is lost. The client keeps the data if it has found it, and reports otherwise that it is
// given up. It unmounts the volumes that the allocation has left.
func forsaken(c *Core, row *cluster.Allocation, disk DiskLeft) {
	a := newAllocRunner(c, &Record{
		Alloc: row, ClusterID: c.agreement.cluster, BootID: c.options.BootID, Received: c.now.Boot,
		ClientStatus: row.ClientStatus, Ended: true, EndedAt: c.now.Wall, VolumesLeft: row.VolumeHolds.Count() > 0,
		DataOut: &DataOut{State: cluster.DataKept, Lost: disk != DiskFound, Since: c.now.Boot}, Disk: disk,
	})
	c.add(a)
	if a.rec.VolumesLeft && c.volumes != nil {
		c.adoptVolumes(row)
		c.volumes.Unmount(row.ID)
	}
	if a.rec.DataOut.Lost {
		a.out.giveUp()
	}
	a.touch()
}

// keepsDisk reports whether the folders of an orphan stay for its allocation, because its group keeps their data. They
// do not stay for an allocation that copies its data from another node, because the copy needs empty folders.
func keepsDisk(a *allocRunner) bool {
	row := a.pending
	switch {
	case !a.orphan(), a.rec.Disk != DiskFound, row == nil, a.pendingUnreadable != "":
		return false
	case row.NodeID != a.core.options.Node, row.ClientStatus == cluster.ClientLost, row.ClientTerminal() && !row.DataOut.Kept():
		return false
	case awaitsData(row) && a.core.alloc(row.PreviousAllocation) == nil:
		return false
	}
	return keepsData(row.Job.Group(row.TaskGroup))
}

// keepsData reports whether a replacement gets the data of the group's ephemeral disk.
func keepsData(g *cluster.TaskGroup) bool {
	return g != nil && (g.EphemeralDisk.Sticky || g.EphemeralDisk.Migrate)
}

// awaitsData reports whether an allocation has not started and gets the data of another one, as far as the servers know.
func awaitsData(row *cluster.Allocation) bool {
	return row.ClientStatus == cluster.ClientPending && row.PreviousAllocation != "" && !row.DataIn.StateOf().Ended()
}

// diskLeft returns what is left of the disk of an allocation that the client receives without a record of it. found is
// [DiskFound] if its folders are on the node. An allocation that awaits its data leaves it to the one that has it.
func diskLeft(row *cluster.Allocation, g *cluster.TaskGroup, found DiskLeft) DiskLeft {
	switch {
	case !keepsData(g), awaitsData(row), row.ClientStatus == cluster.ClientLost:
		return ""
	case found == DiskFound:
		return DiskFound
	case row.ClientStatus != cluster.ClientPending, row.DataIn.StateOf() == cluster.DataCopied:
		return DiskLost
	}
	return ""
}

// diskLost reports whether the data of an earlier start is lost and no later start has made other data.
func (a *allocRunner) diskLost() bool { return a.rec.Disk == DiskLost && !a.order.anyStarted() }
