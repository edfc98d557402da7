package moved

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// The checks of this package.
const (
	Partial invariant.Check = "S4 partial data"    // a task sees a part of the data
	Early   invariant.Check = "S4 starts early"    // a task starts before the end of the wait for data
	Lost    invariant.Check = "S4 data lost"       // a replacement starts without data that could move
	Ended   invariant.Check = "S4 ends too early"  // a drain ends before a replacement has the data
	Stays   invariant.Check = "S4 stays for ever"  // something of a move is left
	Waits   invariant.Check = "S4 waits for ever"  // a replacement waits for data that is ready
	Orphan  invariant.Check = "S4 no record of it" // a disk without a record
	Dropped invariant.Check = "S4 dropped early"   // a client no longer keeps data whose move has not ended
	Unended invariant.Check = "S4 end not written" // data is still kept for the servers, and a replacement has it
	Stalled invariant.Check = "S4 stalled copy"    // a copy that brings nothing is not given up
)

// Checks returns all checks.
func Checks() []invariant.Check {
	return []invariant.Check{Partial, Early, Lost, Ended, Stays, Waits, Orphan, Dropped, Unended, Stalled}
}

const (
	// maxViolations is the largest number of violations that a judge keeps.
	maxViolations = 20
	// before is how long before a move trouble may have begun that is the cause of its end.
	before = 3 * time.Minute
	// slow is longer than copies take that wait for each other, without faults.
	slow = 40 * time.Minute
)

// Options are the facts that a judge cannot observe.
type Options struct {
	// Retention is how long clients keep data.
	Retention time.Duration
	// Marked: drains end when all allocations are marked.
	Marked bool
	// Machines returns the machines in the order of their nodes.
	Machines func() []*machine.Node
}

// Judge collects the violations of one run. Create it with [New]. A Judge is not safe for concurrent use, and changes
// nothing that it reads.
type Judge struct {
	invariant.Findings
	options Options
	// started counts the judged starts of each machine.
	started map[cluster.NodeID]int
	// trouble is the end of the last trouble of a node, lostAt when it last lost a record.
	trouble, lostAt map[cluster.NodeID]time.Time
	// clientAt is when the client of a node last started.
	clientAt map[cluster.NodeID]time.Time
	// endedAt are the times at which the servers got the ends of allocations. untrue are those whose end a scenario
	// made.
	endedAt map[cluster.AllocID]time.Time
	untrue  map[cluster.AllocID]bool
	// wasLost are the allocations that were lost. Their clients may have kept no data.
	wasLost map[cluster.AllocID]bool
	// placedAt are the times at which allocations were placed, by the clock of the world.
	placedAt map[cluster.AllocID]time.Time
	// restored: the servers were restored, and may have lost ends of moves.
	restored bool
	// streams are the copies that run.
	streams map[cluster.AllocID]*stream
	// reported are what was reported once.
	reported map[finding]bool
}

type finding struct {
	check invariant.Check
	alloc cluster.AllocID
	node  cluster.NodeID
}

// New returns a judge of a run that begins.
func New(o Options) *Judge {
	return &Judge{
		options: o, started: map[cluster.NodeID]int{}, trouble: map[cluster.NodeID]time.Time{}, lostAt: map[cluster.NodeID]time.Time{}, clientAt: map[cluster.NodeID]time.Time{},
		endedAt: map[cluster.AllocID]time.Time{}, untrue: map[cluster.AllocID]bool{}, wasLost: map[cluster.AllocID]bool{}, placedAt: map[cluster.AllocID]time.Time{},
		streams: map[cluster.AllocID]*stream{}, reported: map[finding]bool{},
	}
}

func (j *Judge) find(now time.Time, c invariant.Check, node cluster.NodeID, alloc cluster.AllocID, format string, args ...any) {
	key := finding{c, alloc, node}
	if !j.reported[key] {
		j.reported[key] = true
		j.Add(maxViolations, c, invariant.Violation{At: now, Node: node, Alloc: alloc}, format, args...)
	}
}

// Troubled records trouble of a node until a time. lost: a record of its client was lost.
func (j *Judge) Troubled(node cluster.NodeID, until time.Time, lost bool) {
	if until.After(j.trouble[node]) {
		j.trouble[node] = until
	}
	if lost {
		j.lostAt[node] = until
	}
}

// ClientStarts records the start of a client. It counts the time without progress of its copies from then on.
func (j *Judge) ClientStarts(now time.Time, node cluster.NodeID) { j.clientAt[node] = now }

// Untrue records reports that a scenario made instead of a client.
func (j *Judge) Untrue(reports []cluster.AllocReport) {
	for _, r := range reports {
		j.untrue[r.Alloc] = true
	}
}

// Applied records an entry, and judges the drains that it ends. Call it once for each entry, in the order of the log.
func (j *Judge) Applied(now time.Time, a shims.Applied) {
	switch m := a.Message.(type) {
	case *shims.AllocClientUpdate:
		for _, r := range m.Reports {
			if row := a.After.Alloc(r.Alloc); row != nil && !opinion.Live(row) && j.endedAt[r.Alloc].IsZero() {
				j.endedAt[r.Alloc] = now
			}
			j.written(now, a, r.Alloc)
		}
	case *shims.ApplyPlan:
		for _, place := range m.Plan.Places {
			j.placedAt[place.ID] = now
		}
		for _, stop := range m.Plan.Stops {
			j.wasLost[stop.Alloc] = j.wasLost[stop.Alloc] || stop.Lost
		}
	case *shims.NodeUpdateStatus:
		j.Troubled(m.Node, now, false)
	case *shims.NodeDeregister:
		for _, id := range m.Nodes {
			j.Troubled(id, now, false)
		}
	case *shims.NodesDrainComplete:
		for _, c := range m.Completions.Completions {
			j.ended(now, a, c.Drain)
		}
	}
}

// diskOf returns the disk in the group of an allocation. The zero value is that of an allocation without a group.
func diskOf(row *cluster.Allocation) (disk cluster.EphemeralDisk) {
	if row == nil || row.Job == nil {
		return disk
	}
	for _, g := range row.Job.TaskGroups {
		if g.Name == row.TaskGroup {
			return g.EphemeralDisk
		}
	}
	return disk
}

// moves reports whether the data of an allocation moves.
func moves(row *cluster.Allocation) bool { return diskOf(row).Migrate }

// machine returns the machine of a node, or nil.
func (j *Judge) machine(id cluster.NodeID) *machine.Node {
	for _, m := range j.options.Machines() {
		if m.ID() == id {
			return m
		}
	}
	return nil
}

// Quiet judges the tasks that have started. Call it at least once at each time.
func (j *Judge) Quiet(now time.Time, s *statestore.Snapshot) {
	for _, m := range j.options.Machines() {
		for _, d := range machine.DisksOf(m).Used(j.started[m.ID()]) {
			j.started[m.ID()]++
			j.start(now, s, m, d)
		}
		for d := range machine.DisksOf(m).All() {
			j.dropped(now, s, m, d)
		}
		j.stalled(now, m)
	}
}

// start judges the first start of a task of an allocation.
func (j *Judge) start(now time.Time, s *statestore.Snapshot, m *machine.Node, d *machine.Disk) {
	if d.FoundPartial {
		j.find(now, Partial, m.ID(), d.Alloc, "a task starts, and its folders have only a part of the data")
	}
	row := s.Alloc(d.Alloc)
	if !moves(row) || j.placedAt[row.ID].IsZero() {
		return
	}
	source, from := j.source(s, row)
	if source == nil || containsAll(d.Found, from.Writers) {
		return
	}
	r := m.Record(d.Alloc)
	switch {
	case r == nil || j.lostAt[m.ID()].After(j.placedAt[row.ID]):
		return // the client has received it a second time
	case r.DataIn == nil || r.DataIn.State != client.DataInPlaced && r.DataIn.State != client.DataInGivenUp:
		j.find(now, Early, m.ID(), d.Alloc, "its first task starts, and allocation %s has data of %v", source.ID, from.Writers)
	case !j.excused(now, s, row, source, from):
		j.find(now, Lost, m.ID(), d.Alloc, "its first task starts without the data of allocation %s on node %s: %s", source.ID, source.NodeID, r.DataIn.Why)
	}
}

func containsAll(all, some []cluster.AllocID) bool {
	return !slices.ContainsFunc(some, func(id cluster.AllocID) bool { return !slices.Contains(all, id) })
}

// source returns the newest allocation before this one that has had data, with its disk. It returns nil if there
// is none, or if the servers have deleted a row between them.
func (j *Judge) source(s *statestore.Snapshot, row *cluster.Allocation) (*cluster.Allocation, *machine.Disk) {
	for earlier := s.Alloc(row.PreviousAllocation); earlier != nil; earlier = s.Alloc(earlier.PreviousAllocation) {
		if d := j.disk(earlier.NodeID, earlier.ID); d != nil && len(d.Writers) > 0 {
			return earlier, d
		}
	}
	return nil, nil
}

// stopped reports whether the client had to stop an allocation before its end. Work that ends by itself leaves no
// data, also if its job is stopped later.
func (j *Judge) stopped(a *cluster.Allocation) bool {
	m := j.machine(a.NodeID)
	if m == nil {
		return false
	}
	r := m.Record(a.ID)
	return r != nil && r.Stopping
}

// disk returns the disk of an allocation on its node, or nil.
func (j *Judge) disk(node cluster.NodeID, alloc cluster.AllocID) *machine.Disk {
	if m := j.machine(node); m != nil {
		return machine.DisksOf(m).Disk(alloc)
	}
	return nil
}

// excused reports whether there is a cause for which data was lost on the way from source to row.
func (j *Judge) excused(now time.Time, s *statestore.Snapshot, row, source *cluster.Allocation, from *machine.Disk) bool {
	for between := s.Alloc(row.PreviousAllocation); between != nil && between.ID != source.ID; between = s.Alloc(between.PreviousAllocation) {
		switch {
		case j.untrue[between.ID], j.lostAt[between.NodeID].After(j.placedAt[between.ID]): // it had the data
			return true
		case between.DataIn.StateOf() == cluster.DataGivenUp:
			return j.excused(now, s, between, source, from)
		}
	}
	since := j.placedAt[row.ID]
	if ended := j.endedAt[source.ID]; !ended.IsZero() && ended.Before(since) {
		if since.Sub(ended) > j.options.Retention-time.Minute {
			return true
		}
		since = ended
	}
	since = since.Add(-before)
	switch most := diskOf(row).SizeMB << 20; {
	case most > 0 && from.Bytes > most:
		return true
	case j.wasLost[source.ID] || !opinion.Reachable(s.Node(source.NodeID)) || source.ClientStatus == "lost" || source.ClientStatus == "unknown":
		return true
	case j.untrue[source.ID] || j.untrue[row.ID] || !moves(source):
		return true
	case source.ClientStatus == "complete" && opinion.TypeOf(source) != "service" && !j.stopped(source):
		return true
	case j.taken(from.Alloc, row.ID):
		return true
	}
	return j.trouble[source.NodeID].After(since) || j.trouble[row.NodeID].After(since)
}

// taken reports whether an allocation other than one has found data of an allocation.
func (j *Judge) taken(data, but cluster.AllocID) bool {
	for _, m := range j.options.Machines() {
		for d := range machine.DisksOf(m).All() {
			if d.Alloc != data && d.Alloc != but && slices.Contains(d.Writers, data) {
				return true
			}
		}
	}
	return false
}
