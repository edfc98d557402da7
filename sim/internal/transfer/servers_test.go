//race:skip one goroutine
package transfer_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/datamove"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/onnode"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/transfer"
)

var begin = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// world are two machines, with the rows of their allocations and the servers that move data.
type world struct {
	t        *testing.T
	now      time.Time
	machines []*machine.Node
	rows     map[cluster.AllocID]*cluster.Allocation
	index    uint64
	servers  *transfer.Servers
	takes    time.Duration
	faults   []transfer.Fault
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: begin, rows: map[cluster.AllocID]*cluster.Allocation{}, takes: 20 * time.Second}
	w.servers = transfer.New(transfer.Options{
		View: func() datamove.View { return w },
		Node: w.machine,
		Do: func(id cluster.NodeID, do func()) error {
			_, err := w.machine(id).Advance(w.now)
			do()
			return err
		},
		Takes: func(*cluster.Allocation) time.Duration { return w.takes },
		Fault: func(cluster.NodeID) (f transfer.Fault) {
			if len(w.faults) > 0 {
				f, w.faults = w.faults[0], w.faults[1:]
			}
			return f
		},
	})
	for i := range 2 {
		id := cluster.NodeID(fmt.Sprint("n", i+1))
		m := machine.New(machine.Options{
			ID: id, Start: begin, Uptime: time.Hour, Random: rand.New(rand.NewPCG(1, uint64(i))), Drivers: []string{"mock"}, Observer: onnode.New(id),
			Script:    func(*driver.TaskConfig) scripted.Script { return scripted.Script{} },
			Fault:     func(string, scripted.Call) scripted.Fault { return scripted.Fault{} },
			Kernel:    func(machine.KernelCall) error { return nil },
			Launch:    func(client.Plugin) scripted.Launch { return scripted.Launch{} },
			Effect:    func(string, bool) bool { return true },
			Reachable: func() bool { return true },
			Contact:   func() time.Time { return w.now },
			Report:    w.report,
			Copy:      func(c *machine.Copy) { w.servers.Request(id, c) },
		})
		w.machines = append(w.machines, m)
		must.NoError(t, m.StartClient())
	}
	w.run(time.Second)
	return w
}

func (w *world) machine(id cluster.NodeID) *machine.Node {
	for _, m := range w.machines {
		if m.ID() == id {
			return m
		}
	}
	return nil
}

// ClusterVersion, Node and Alloc are the view of the servers.
func (*world) ClusterVersion() cluster.Version { return cluster.VersionOfData }

func (w *world) Node(id cluster.NodeID) *cluster.Node {
	return &cluster.Node{ID: id, Status: cluster.NodeReady}
}

func (w *world) Alloc(id cluster.AllocID) *cluster.Allocation { return w.rows[id] }

func (w *world) report(reports []cluster.AllocReport, reply func(bool)) {
	for _, r := range reports {
		row := w.rows[r.Alloc].Copy()
		row.ClientStatus, row.DataIn = r.ClientStatus, r.DataIn
		if row.DataOut == nil {
			row.DataOut = r.DataOut
		}
		w.rows[r.Alloc] = row
	}
	w.servers.Changed()
	reply(true)
}

// change stores a row and sends it to its client.
func (w *world) change(a *cluster.Allocation) {
	w.index++
	a.AllocModifyIndex, a.ModifyIndex = w.index, w.index
	w.rows[a.ID] = a
	w.servers.Changed()
	w.machine(a.NodeID).Servers(client.Changes{ClusterID: "c1", Index: w.index, Version: cluster.VersionOfData, Allocs: []*cluster.Allocation{a}})
	w.run(time.Second)
}

func (w *world) place(id, previous cluster.AllocID, node cluster.NodeID) {
	group := &cluster.TaskGroup{Name: "g", Count: 1, EphemeralDisk: cluster.EphemeralDisk{SizeMB: 1 << 20, Migrate: true}, Tasks: []*cluster.Task{{Name: "web", Driver: "mock", KillTimeout: time.Second}}}
	if previous != "" {
		p := w.rows[previous].Copy()
		p.NextAllocation = id
		w.rows[previous] = p
	}
	w.change(&cluster.Allocation{
		ID: id, NodeID: node, JobID: "j", TaskGroup: "g", PreviousAllocation: previous, DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending,
		Job: &cluster.Job{ID: "j", Type: cluster.JobService, TaskGroups: []*cluster.TaskGroup{group}},
	})
}

func (w *world) stop(id cluster.AllocID) {
	a := w.rows[id].Copy()
	a.DesiredStatus = cluster.DesiredStop
	w.change(a)
}

// run lets time pass.
func (w *world) run(d time.Duration) {
	w.t.Helper()
	for end := w.now.Add(d); ; {
		must.NoError(w.t, w.servers.Advance(w.now))
		next := w.servers.Next(w.now)
		for _, m := range w.machines {
			at, err := m.Advance(w.now)
			must.NoError(w.t, err)
			if next.IsZero() || !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		if at := w.servers.Next(w.now); !at.IsZero() && at.Before(next) {
			next = at
		}
		if next.IsZero() || next.After(end) {
			w.now = end
			return
		}
		if next.After(w.now) {
			w.now = next
		}
	}
}

// state returns the state of the move into an allocation.
func (w *world) state(id cluster.AllocID) cluster.DataState { return w.rows[id].DataIn.StateOf() }

// moving places p on n1 and its replacement r on n2, and stops p.
func moving(t *testing.T, faults ...transfer.Fault) *world {
	w := newWorld(t)
	w.faults = faults
	w.place("p", "", "n1")
	w.run(10 * time.Second)
	w.place("r", "p", "n2")
	w.run(time.Minute)
	must.EqOp(t, cluster.DataWaiting, w.state("r"), must.Sprint("p has not ended"))
	w.stop("p")
	return w
}

// A copy takes its time, and the servers give its turn back.
func TestServers_copies(t *testing.T) {
	t.Parallel()
	w := moving(t)
	w.run(10 * time.Second)
	must.EqOp(t, cluster.DataCopying, w.state("r"))
	running, waiting := w.servers.Counts()
	must.Eq(t, []int{1, 0}, []int{running, waiting})
	w.run(30 * time.Second)
	must.EqOp(t, cluster.DataCopied, w.state("r"))
	must.SliceContains(t, machine.DisksOf(w.machine("n2")).Disk("r").Found, "p")
	running, waiting = w.servers.Counts()
	must.Eq(t, []int{0, 0}, []int{running, waiting})
	must.True(t, w.servers.Next(w.now).IsZero())
}

// A copy that is cut, or ended by a newer request, continues; one that stands still for a minute is given up.
func TestServers_faults(t *testing.T) {
	t.Parallel()
	w := moving(t, transfer.Fault{Cut: true, CutAfter: 5 * time.Second})
	w.run(10 * time.Second)
	w.servers.Newer("r")
	w.run(time.Minute)
	must.EqOp(t, cluster.DataCopied, w.state("r"))

	w = moving(t, transfer.Fault{SlowFor: time.Hour}, transfer.Fault{SlowFor: time.Hour}, transfer.Fault{SlowFor: time.Hour}, transfer.Fault{SlowFor: time.Hour}, transfer.Fault{SlowFor: time.Hour})
	w.run(3 * time.Minute)
	must.EqOp(t, cluster.DataGivenUp, w.state("r"))
	must.StrContains(t, w.rows["r"].DataIn.Why, "nothing has arrived for")
}

// The old allocation is lost: the answer has the reason of the servers.
func TestServers_gone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.place("p", "", "n1")
	w.run(10 * time.Second)
	lost := w.rows["p"].Copy()
	lost.ClientStatus = cluster.ClientLost
	w.rows["p"] = lost
	w.place("r", "p", "n2")
	w.run(time.Minute)
	must.EqOp(t, cluster.DataGivenUp, w.state("r"))
	must.EqOp(t, "no earlier allocation has data", w.rows["r"].DataIn.Why)
}
