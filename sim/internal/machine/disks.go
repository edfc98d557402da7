package machine

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// Disk is the ephemeral disk of an allocation. Each task of the allocation writes the id of the allocation
// to it when it starts.
type Disk struct {
	Alloc cluster.AllocID
	// Writers are the allocations whose tasks have written to it. Bytes is its size.
	Writers []cluster.AllocID
	Bytes   int64
	// Partial: it has only a part of the data that moves into it.
	Partial bool
	// Removed is when it was removed, or its data moved to another one, or zero. The other fields then show
	// what it had before.
	Removed time.Time
	// StartedAt is when the first task of the allocation has started, or zero, and Found are the
	// allocations that had written before. FoundPartial: a task has started while it was Partial.
	StartedAt    time.Time
	Found        []cluster.AllocID
	FoundPartial bool
}

// Incoming is what has arrived of the data of another allocation. No task sees it.
type Incoming struct {
	// Of is the disk with the data.
	Of    *Disk
	Bytes int64
	// At is when the last part arrived.
	At time.Time
}

// Disks are the ephemeral disks of a node. Only the doubles write to them.
type Disks struct {
	node     *Node
	all      map[cluster.AllocID]*Disk
	incoming map[cluster.AllocID]*Incoming
	// changes counts the changes of the process table that are on the disks.
	changes int
	// used are the disks in the order of the first start of a task.
	used []*Disk
}

// DisksOf returns the disks of a node.
func DisksOf(n *Node) *Disks { return &n.disks }

// Disk returns the disk of an allocation, or nil.
func (d *Disks) Disk(alloc cluster.AllocID) *Disk { return d.all[alloc] }

// All yields the disks by allocation, also those that were removed.
func (d *Disks) All() iter.Seq[*Disk] {
	return func(yield func(*Disk) bool) {
		for _, id := range slices.Sorted(maps.Keys(d.all)) {
			if !yield(d.all[id]) {
				return
			}
		}
	}
}

// Used returns the disks in the order of the first start of a task, from a number on. It leaves out those of
// allocations that ran at the beginning.
func (d *Disks) Used(from int) []*Disk { return d.used[from:] }

// Incoming returns what has arrived for an allocation, or nil.
func (d *Disks) Incoming(alloc cluster.AllocID) *Incoming { return d.incoming[alloc] }

// build returns the disk of an allocation, and creates it if there is none.
func (d *Disks) build(alloc cluster.AllocID) *Disk {
	disk := d.all[alloc]
	if disk == nil || !disk.Removed.IsZero() {
		disk = &Disk{Alloc: alloc}
		d.all[alloc] = disk
	}
	return disk
}

// remove removes the disk of an allocation, and what has arrived for it.
func (d *Disks) remove(alloc cluster.AllocID) {
	if disk := d.all[alloc]; disk != nil && disk.Removed.IsZero() {
		disk.Removed = d.node.clock.now
	}
	delete(d.incoming, alloc)
}

// write makes the tasks that have started write to their disks.
func (d *Disks) write() {
	changes := d.node.machine.Changes(d.changes)
	d.changes += len(changes)
	for _, c := range changes {
		p, _ := d.node.machine.Process(c.Process)
		if c.What != scripted.Started || p.Kind != scripted.TaskProcess {
			continue
		}
		alloc, _ := SplitCgroup(p.Cgroup)
		disk := d.build(alloc)
		if disk.StartedAt.IsZero() {
			disk.StartedAt, disk.Found = d.node.clock.now, slices.Clone(disk.Writers)
			if !d.node.adopting {
				d.used = append(d.used, disk)
			}
		}
		disk.FoundPartial = disk.FoundPartial || disk.Partial
		if !slices.Contains(disk.Writers, alloc) {
			disk.Writers = append(disk.Writers, alloc)
			disk.Bytes += d.writes(alloc)
		}
	}
}

// writes returns how many bytes the tasks of an allocation write.
func (d *Disks) writes(alloc cluster.AllocID) int64 {
	if d.node.options.Writes == nil {
		return 1 << 20
	}
	return d.node.options.Writes(alloc)
}

// restart removes what a new client removes: what an earlier one has received, unless its record states that it is
// complete, and the disks of allocations that it does not have.
func (d *Disks) restart(records []*client.Record) {
	left, received := map[cluster.AllocID]bool{}, map[cluster.AllocID]bool{}
	for _, r := range records {
		left[r.Alloc.ID] = true
		received[r.Alloc.ID] = r.DataIn != nil && r.DataIn.State == client.DataInReceived && !r.Ended
	}
	for id := range d.all {
		if !left[id] {
			d.remove(id)
		}
	}
	for id := range d.incoming {
		if !received[id] {
			delete(d.incoming, id)
		}
	}
}

// disks are the effects of a client that move the data of ephemeral disks.
type disks struct {
	run *run
	// copies are the calls of CopyData in flight.
	copies map[cluster.AllocID]*Copy
}

// Copy is a request of a client for the data of an allocation. Its methods have no effect after its end.
type Copy struct {
	Alloc    *cluster.Allocation
	run      *run
	progress func(client.DataProgress)
	reply    func(client.DataAnswer)
	// source is the allocation with the data, as the servers name it.
	source cluster.AllocID
	// streams: data comes. reported is when the client last got the progress.
	streams  bool
	reported time.Time
}

// CopyData passes a request to the servers.
func (d *disks) CopyData(alloc *cluster.Allocation, progress func(client.DataProgress), reply func(client.DataAnswer)) {
	if !d.run.begins("CopyData", string(alloc.ID)) {
		return
	}
	c := &Copy{Alloc: alloc, run: d.run, progress: progress, reply: reply}
	d.copies[alloc.ID] = c
	if d.run.node.options.Copy == nil {
		d.run.after(folderTime, func() { c.Answer(client.DataRefused, "no server moves data") })
		return
	}
	d.run.node.options.Copy(c)
}

// CopiesOf counts the requests of the client of a node that have no answer.
func CopiesOf(n *Node) int {
	if n.run == nil {
		return 0
	}
	return len(n.run.copies)
}

// StreamsOf returns the allocations for which the client of a node has an open stream.
func StreamsOf(n *Node) (allocs []cluster.AllocID) {
	if n.run == nil {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(n.run.copies)) {
		if n.run.copies[id].streams {
			allocs = append(allocs, id)
		}
	}
	return allocs
}

// Over reports whether the request has ended: it was answered, or its client has dropped it or is dead.
func (c *Copy) Over() bool { return !c.run.alive() || c.run.copies[c.Alloc.ID] != c }

// Arrived counts the bytes that have arrived.
func (c *Copy) Arrived() int64 {
	if in := c.run.node.disks.incoming[c.Alloc.ID]; in != nil {
		return in.Bytes
	}
	return 0
}

// Name stores the name of the allocation with the data.
func (c *Copy) Name(source cluster.AllocID) { c.source = source }

// Answer ends the request.
func (c *Copy) Answer(result client.DataResult, why string) {
	if c.Over() {
		return
	}
	delete(c.run.copies, c.Alloc.ID)
	a := client.DataAnswer{Result: result, Why: why, DataProgress: client.DataProgress{Source: c.source, Bytes: c.Arrived()}}
	c.run.answers("CopyData", func() { c.reply(a) })
}

// progressEvery is the least time between two reports of progress.
const progressEvery = time.Second

// Arrive passes the first bytes of a disk to the client.
func (c *Copy) Arrive(of *Disk, bytes int64) {
	if c.Over() {
		return
	}
	c.streams = true
	n := c.run.node
	limit := int64(-1)
	if g := c.Alloc.Job.Group(c.Alloc.TaskGroup); g != nil {
		limit = g.EphemeralDisk.SizeMB << 20
	}
	switch {
	case n.diskFull:
		c.Answer(client.DataNoRoom, "no space left on device")
		return
	case limit > 0 && bytes > limit:
		c.Answer(client.DataRefused, fmt.Sprintf("the data is larger than %d bytes", limit))
		return
	}
	n.disks.incoming[c.Alloc.ID] = &Incoming{Of: of, Bytes: bytes, At: n.clock.now}
	if n.clock.now.Sub(c.reported) >= progressEvery {
		c.reported = n.clock.now
		c.progress(client.DataProgress{Source: c.source, Bytes: bytes})
	}
	if bytes >= of.Bytes {
		c.Answer(client.DataArrived, "")
	}
}

// DropData ends a request, and removes what has arrived.
func (d *disks) DropData(alloc cluster.AllocID, reply func(error)) {
	if !d.run.begins("DropData", string(alloc)) {
		return
	}
	delete(d.copies, alloc)
	d.run.after(folderTime, func() {
		if d.run.alive() {
			delete(d.run.node.disks.incoming, alloc)
		}
		d.run.answers("DropData", func() { reply(nil) })
	})
}

// PlaceData moves data in two steps. The client may die between them.
func (d *disks) PlaceData(alloc *cluster.Allocation, from cluster.AllocID, reply func(error)) {
	if !d.run.begins("PlaceData", string(alloc.ID)) {
		return
	}
	table := &d.run.node.disks
	// source returns the disk with the data and how much of it there is, or nil after the move.
	source := func() (of *Disk, bytes int64) {
		if from == "" {
			if in := table.incoming[alloc.ID]; in != nil {
				return in.Of, in.Bytes
			}
		} else if of = table.all[from]; of != nil && of.Removed.IsZero() {
			return of, of.Bytes
		}
		return nil, 0
	}
	d.run.after(folderTime/2, func() {
		if of, _ := source(); d.run.alive() && of != nil {
			table.build(alloc.ID).Partial = true
		}
	})
	d.run.after(folderTime, func() {
		if of, bytes := source(); d.run.alive() && of != nil {
			disk := table.build(alloc.ID)
			disk.Writers, disk.Bytes, disk.Partial = slices.Clone(of.Writers), bytes, of.Partial || bytes < of.Bytes
			delete(table.incoming, alloc.ID)
			if from != "" {
				of.Removed = table.node.clock.now
			}
		}
		d.run.answers("PlaceData", func() { reply(nil) })
	})
}

// Sending is a copy of the data of an ended allocation, which its client sends.
type Sending struct {
	Disk *Disk
	run  *run
}

// SendData begins to send the data of an allocation. Without data it returns how the client answers, and why.
func SendData(n *Node, alloc cluster.AllocID) (s *Sending, answer client.DataResult, why string) {
	switch r := n.disk[alloc]; {
	case !Works(n):
		return nil, client.DataFailed, "the client does not answer"
	case r == nil:
		return nil, client.DataRefused, "the node does not have the allocation"
	case !r.Ended:
		return nil, client.DataWaits, "the allocation has not ended"
	case r.DataOut != nil && r.DataOut.Lost:
		return nil, client.DataRefused, client.DataLost
	case r.DataOut == nil || r.DataOut.State != cluster.DataKept:
		return nil, client.DataRefused, "the node does not keep the data"
	}
	client.DataSent(n.run.core, alloc, true)
	return &Sending{cmp.Or(n.disks.all[alloc], &Disk{Alloc: alloc}), n.run}, client.DataArrived, ""
}

// Cut reports whether the client that sends the data is dead.
func (s *Sending) Cut() bool { return !s.run.alive() }

// End ends the copy.
func (s *Sending) End() {
	if s.run.alive() {
		client.DataSent(s.run.core, s.Disk.Alloc, false)
	}
}
