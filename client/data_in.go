package client

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// DataIn is the part of a [Record] about the move of the data of an ephemeral disk into the allocation.
type DataIn struct {
	State DataInState
	// Peer is the allocation whose data it is. The servers name it when the copy begins; before that it is
	// the one that the allocation replaces. From is the allocation of this node in whose folders the data is,
	// or empty.
	Peer cluster.AllocID
	From cluster.AllocID `json:",omitempty"`
	// Why states what the allocation waits for, or why the data was given up.
	Why            string `json:",omitempty"`
	Bytes, Skipped int64  `json:",omitempty"`
	// Mounts names the folders that are left out because another file system is mounted there, or is empty.
	Mounts string `json:",omitempty"`
	// StartedAt is when the data began to arrive, or zero. EndedAt is when the wait for the data ended, or
	// zero.
	StartedAt time.Time
	EndedAt   time.Duration `json:",omitempty"`
}

// DataInState is how far the data has moved into an allocation.
type DataInState string

// The states of [DataIn].
const (
	// DataInWaiting: the other allocation has not ended, or other copies run first.
	DataInWaiting DataInState = "waiting"
	// DataInCopying: data has begun to arrive. The tasks do not see it.
	DataInCopying DataInState = "copying"
	// DataInReceived: all data is on this node, and is moved into the folders of the tasks. From here on the
	// move is completed, also after a crash.
	DataInReceived DataInState = "received"
	// DataInPlaced: the tasks have the data.
	DataInPlaced DataInState = "placed"
	// DataInGivenUp: the tasks start without the data.
	DataInGivenUp DataInState = "given up"
)

const (
	// dataPatience is how long nothing may arrive after the data has begun to arrive.
	dataPatience = time.Minute
	// dataReportInterval is the least time between two reports of the bytes that have arrived.
	dataReportInterval = 10 * time.Second
	// dataEvent is the type of the events of tasks about their data.
	dataEvent = "Ephemeral Disk"
)

// dataIn moves the data of an ephemeral disk into an allocation before its first task starts. Its state is
// that of the record, and what is in flight.
//
// Data that is all on the node is placed also if the allocation must stop, because the allocation then keeps it for
// the next replacement. An allocation that must stop before all data is on its node leaves the move unfinished: the next
// replacement takes the data from the same allocation.
type dataIn struct {
	alloc *allocRunner
	// copying, dropping and placing: a call of [Shell.CopyData], [Shell.DropData] or [Shell.PlaceData] is
	// in flight. arriving: the call of CopyData in flight has reported data. dirty: it may have left data.
	// full: the disk had no room for the data or its placement, and ended allocations are removed.
	copying, dropping, placing, arriving, dirty, full bool
	// needs is the version of the record that must be on disk before the data is placed.
	needs uint64
	// retryAt is when the core retries a failed call, and failures counts the failed calls.
	retryAt  time.Duration
	failures int
	// quietSince is since when nothing has arrived, or zero while the data cannot arrive: its allocation has
	// not ended, or other copies run first. problem is why the last call failed.
	quietSince time.Duration
	problem    string
	// newest is the last progress, and reportAt is the earliest time to report it.
	newest   DataProgress
	reportAt time.Duration
}

// pending reports whether the tasks may not start yet.
func (d *dataIn) pending() bool {
	rec := d.alloc.rec.DataIn
	return rec != nil && rec.State != DataInPlaced && rec.State != DataInGivenUp
}

// busy reports whether the end of the allocation must wait: something is in flight, or is completed in any case.
func (d *dataIn) busy() bool {
	return d.copying || d.dropping || d.placing || d.pending() && d.alloc.rec.DataIn.State == DataInReceived && d.failures == 0
}

// begin decides whether data moves into a new allocation. Only the data of a group that migrates it comes from
// another node.
func (d *dataIn) begin() {
	a := d.alloc
	row := a.rec.Alloc
	switch {
	case a.core.version < cluster.VersionOfData, row.PreviousAllocation == "", row.ServerTerminal(), row.ClientStatus != cluster.ClientPending:
	case row.DataIn != nil && !row.DataIn.Pending():
	case a.group.MovesData(), a.group.EphemeralDisk.Sticky && d.source() != nil:
		a.rec.DataIn = &DataIn{State: DataInWaiting, Peer: row.PreviousAllocation}
	}
}

// source returns the allocation of this node whose data the allocation takes, or nil if it is not on this
// node. It passes over replacements that ended before they had the data.
func (d *dataIn) source() *allocRunner {
	a := d.alloc
	for range a.core.allocs { // the bound protects from a cycle in data of the servers
		previous := a.core.alloc(a.rec.Alloc.PreviousAllocation)
		if previous == nil || previous == d.alloc || previous.orphan() {
			return nil
		}
		if !previous.rec.Ended || !previous.in.pending() || previous.order.anyStarted() {
			return previous
		}
		a = previous
	}
	return nil
}

func (d *dataIn) step() {
	a := d.alloc
	rec := a.rec.DataIn
	switch {
	case !d.pending() || d.dropping || d.placing:
	case rec.State == DataInReceived:
		d.place()
	case a.order.ending():
		if d.dirty {
			d.drop(func() {})
		}
	case d.copying:
		d.noteBytes()
		if d.arriving && a.core.reached(later(d.quietSince, dataPatience)) {
			d.giveUp(d.quiet())
		}
	case d.quietSince != 0 && a.core.reached(later(d.quietSince, dataPatience)):
		d.giveUp(d.quiet())
	case !a.built || a.saves.failures > 0 || !a.core.contacted || d.full && len(removable(a.core)) > 0:
	default:
		d.full = false
		if source := d.source(); source != nil {
			d.take(source)
		} else {
			d.copy()
		}
	}
}

// quiet is why the data is given up when nothing arrives.
func (d *dataIn) quiet() string {
	text := "nothing has arrived for " + dataPatience.String()
	if d.problem != "" {
		text += ": " + d.problem
	}
	return text
}

// take begins the move from an allocation of this node, after its end.
func (d *dataIn) take(source *allocRunner) {
	rec, holder := d.alloc.rec.DataIn, source.out.holder()
	switch out := source.rec.DataOut; {
	case !source.rec.Ended || source.saves.saved != source.saves.version || source.discarding:
		return // its end, its save and its removal mark this allocation
	case holder != nil && (!holder.rec.Ended || holder.saves.saved != holder.saves.version || holder.discarding):
		return
	case out != nil && out.State == cluster.DataCopied && out.Peer != d.alloc.id():
		rec.Peer = source.id()
		d.giveUp(fmt.Sprintf("the data has moved to allocation %s", out.Peer))
		return
	case holder == nil, out != nil && out.Lost, holder.diskLost():
		rec.Peer = source.id()
		d.giveUp(DataLost)
		return
	}
	d.failures, d.retryAt = 0, 0
	rec.State, rec.Peer, rec.From, rec.StartedAt = DataInReceived, source.id(), holder.id(), d.alloc.core.now.Wall
	d.changed()
}

// copy requests the data from the servers.
func (d *dataIn) copy() {
	a := d.alloc
	if !a.group.MovesData() {
		d.giveUp("the node no longer has the data")
		return
	}
	if !a.core.reached(d.retryAt) {
		return
	}
	d.copying, d.arriving, d.dirty = true, false, true
	a.core.options.Shell.CopyData(a.rec.Alloc, allocReply(a, d.arrived), allocReply(a, d.answered))
}

// arrived handles a report that data arrives.
func (d *dataIn) arrived(p DataProgress) {
	if !d.copying {
		return // the core has ended the call
	}
	rec, now := d.alloc.rec.DataIn, d.alloc.core.now
	d.arriving = true
	if d.quietSince == 0 || p.Bytes > d.newest.Bytes || p.Entries > d.newest.Entries {
		d.quietSince, d.failures, d.problem = max(1, now.Boot), 0, "" // zero means that the data cannot arrive
	}
	d.newest = p
	if rec.State == DataInWaiting || p.Source != "" && rec.Peer != p.Source || rec.Why != "" {
		rec.State, rec.Why = DataInCopying, ""
		if rec.StartedAt.IsZero() {
			rec.StartedAt = now.Wall
		}
		d.setPeer(p.Source)
		d.reportAt = later(now.Boot, dataReportInterval)
		d.changed()
	}
}

func (d *dataIn) setPeer(source cluster.AllocID) {
	if source != "" {
		d.alloc.rec.DataIn.Peer = source
	}
}

// noteBytes reports the bytes that have arrived, from time to time.
func (d *dataIn) noteBytes() {
	rec := d.alloc.rec.DataIn
	if d.arriving && rec.Bytes != d.newest.Bytes && d.alloc.core.reached(d.reportAt) {
		rec.Bytes, d.reportAt = d.newest.Bytes, later(d.alloc.core.now.Boot, dataReportInterval)
		d.changed()
	}
}

// answered handles the answer to a call of CopyData.
func (d *dataIn) answered(answer DataAnswer) {
	if !d.copying {
		return // the core has ended the call
	}
	d.copying, d.arriving = false, false
	rec, now := d.alloc.rec.DataIn, d.alloc.core.now.Boot
	d.setPeer(answer.Source)
	d.problem = answer.Why
	switch answer.Result {
	case DataArrived:
		d.failures, d.retryAt = 0, 0
		rec.State, rec.Why, rec.Bytes, rec.Skipped = DataInReceived, "", answer.Bytes, answer.Skipped
		rec.Mounts = cluster.CutText(answer.Mounts)
		d.changed()
		return
	case DataNoRoom:
		d.makeRoom()
		return
	case DataRefused:
		d.giveUp(answer.Why)
		return
	case DataWaits:
		d.quietSince = 0
	case DataFailed, DataUnreached:
		if d.quietSince == 0 && (answer.Result == DataFailed || rec.State == DataInCopying) {
			d.quietSince = max(1, now)
		}
	}
	d.retry()
	if rec.Why != answer.Why {
		rec.Why = answer.Why
		d.changed()
	}
}

// makeRoom repeats the copy after all ended allocations that nothing needs are removed. Without one it gives up.
func (d *dataIn) makeRoom() {
	if len(removable(d.alloc.core)) == 0 {
		d.giveUp(d.problem)
		return
	}
	d.drop(func() { d.full, d.quietSince = true, max(1, d.alloc.core.now.Boot) })
}

func (d *dataIn) retry() {
	o := d.alloc.core.options
	d.failures++
	d.retryAt = later(d.alloc.core.now.Boot, backoff(d.failures, o.MinRetry, o.MaxRetry))
}

// changed marks the record as changed.
func (d *dataIn) changed() {
	d.alloc.touch()
	d.needs = d.alloc.saves.version
}

// giveUp lets the tasks start without the data, after what has arrived is removed.
func (d *dataIn) giveUp(why string) {
	d.drop(func() {
		a := d.alloc
		if a.order.ending() {
			return // the next replacement may get the data
		}
		a.rec.DataIn.State, a.rec.DataIn.Why = DataInGivenUp, cluster.CutText(why)
		d.ended(fmt.Sprintf("The task starts without the data of allocation %s: %s", a.rec.DataIn.Peer, why))
	})
}

// drop ends the copy and removes what has arrived. If this fails, it stays until the folders of the allocation
// are removed.
func (d *dataIn) drop(then func()) {
	a := d.alloc
	d.dropping, d.copying, d.arriving = true, false, false
	a.core.options.Shell.DropData(a.id(), allocReply(a, func(err error) {
		d.dropping, d.dirty, d.quietSince = false, false, 0
		if err != nil {
			a.core.options.Logger.Warn("data that has arrived for an allocation could not be removed", "alloc", a.id(), "error", err)
		}
		then()
	}))
}

// place moves the data into the folders of the tasks.
func (d *dataIn) place() {
	a := d.alloc
	rec := a.rec.DataIn
	stops := a.order.ending()
	switch {
	case a.saves.saved < d.needs, a.building, !a.built && !stops:
		return
	case d.failures > 0 && stops, !a.core.reached(d.retryAt):
		return
	}
	d.placing, d.full = true, false
	a.core.options.Shell.PlaceData(a.rec.Alloc, rec.From, allocReply(a, func(err error) {
		d.placing = false
		if err != nil {
			d.full = noRoom(err)
			d.retry()
			a.core.options.Logger.Error("the data of an allocation could not be moved to its folders; the client retries", "alloc", a.id(), "error", err)
			if d.failures == 1 {
				d.event("The client could not move the data to the folders of the task, and retries: " + err.Error())
			}
			return
		}
		rec.State, rec.Why = DataInPlaced, ""
		if rec.Mounts != "" {
			rec.Why = "other file systems are mounted in the data, and are not copied: " + rec.Mounts
		}
		text := fmt.Sprintf("The task has the data of allocation %s", rec.Peer)
		if rec.From == "" {
			text += fmt.Sprintf(": %d bytes, and %d special files are left out", rec.Bytes, rec.Skipped)
			if rec.Why != "" {
				text += "; " + rec.Why
			}
		} else if source := a.core.alloc(rec.Peer); source != nil {
			if holder := source.out.holder(); holder != nil {
				holder.out.taken(a)
			}
			source.out.taken(a)
		}
		d.ended(text)
	}))
}

// ended ends the wait for the data.
func (d *dataIn) ended(text string) {
	d.alloc.rec.DataIn.EndedAt = max(1, d.alloc.core.now.Boot)
	d.event(text)
	d.changed()
	d.alloc.report.noteUrgent()
}

func (d *dataIn) event(text string) {
	for _, t := range d.alloc.tasks {
		t.event(dataEvent, text)
	}
}

// text describes for operators what the allocation waits for.
func (d *dataIn) text() string {
	rec := d.alloc.rec.DataIn
	switch {
	case rec.Why != "":
		return fmt.Sprintf("waiting for the data of allocation %s: %s", rec.Peer, rec.Why)
	case rec.State == DataInWaiting:
		return fmt.Sprintf("waiting for the data of allocation %s", rec.Peer)
	}
	return fmt.Sprintf("copying the data of allocation %s", rec.Peer)
}

// report returns the move as the servers have it, or nil without one.
func (d *dataIn) report() *cluster.DataMove {
	rec := d.alloc.rec.DataIn
	if rec == nil {
		return nil
	}
	m := &cluster.DataMove{
		Peer: rec.Peer, Why: cluster.CutText(rec.Why), Bytes: rec.Bytes, Skipped: rec.Skipped, StartedAt: rec.StartedAt,
	}
	if trouble := diskTrouble(d.alloc); trouble != "" && d.pending() {
		m.Why = trouble
	}
	switch rec.State {
	case DataInWaiting:
		m.State = cluster.DataWaiting
	case DataInPlaced:
		m.State = cluster.DataCopied
	case DataInGivenUp:
		m.State = cluster.DataGivenUp
	default:
		m.State = cluster.DataCopying
	}
	return m
}
