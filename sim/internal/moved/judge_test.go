//race:skip one goroutine
package moved_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/moved"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/onnode"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

var begin = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// history is a log, and two machines with its allocations. A judge judges each entry and each second.
type history struct {
	*clustertest.Replica
	now      time.Time
	machines []*machine.Node
	judge    *moved.Judge
	// copies are the requests for data that wait for an answer.
	copies []*machine.Copy
}

func newHistory(t *testing.T) *history {
	h := &history{now: begin}
	h.judge = moved.New(moved.Options{Retention: 10 * time.Minute, Machines: func() []*machine.Node { return h.machines }})
	h.Replica = clustertest.NewReplica(t, shims.FSMConfig{OnApply: func(a shims.Applied) { h.judge.Applied(h.now, a) }})
	h.Replica.Now = func() time.Time { return h.now }
	h.Must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
	h.Nodes("n1", "n2")
	for i, id := range []cluster.NodeID{"n1", "n2"} {
		m := machine.New(machine.Options{
			ID: id, Start: begin, Uptime: time.Hour, Random: rand.New(rand.NewPCG(1, uint64(i))), Drivers: []string{""}, Observer: onnode.New(id), Retention: 24 * time.Hour,
			Script:    func(*driver.TaskConfig) scripted.Script { return scripted.Script{} },
			Fault:     func(string, scripted.Call) scripted.Fault { return scripted.Fault{} },
			Kernel:    func(machine.KernelCall) error { return nil },
			Launch:    func(client.Plugin) scripted.Launch { return scripted.Launch{} },
			Effect:    func(string, bool) bool { return true },
			Reachable: func() bool { return true },
			Contact:   func() time.Time { return h.now },
			Report: func(reports []cluster.AllocReport, reply func(bool)) {
				h.Must(&shims.AllocClientUpdate{Reports: reports})
				reply(true)
			},
			Copy: func(c *machine.Copy) { h.copies = append(h.copies, c) },
		})
		h.machines = append(h.machines, m)
		must.NoError(t, m.StartClient())
	}
	web := clustertest.Job("web", cluster.JobService, 1)
	web.TaskGroups[0].EphemeralDisk = cluster.EphemeralDisk{SizeMB: 100, Migrate: true}
	h.Plan(h.Job(web), nil, clustertest.Alloc(h.State().Job(web.Key()), "p", "n1", begin))
	h.run(10 * time.Second)
	return h
}

// stop drains n1, and places others.
func (h *history) stop(places ...*cluster.Allocation) {
	h.Drain("n1", &cluster.DrainSpec{Deadline: -1})
	must.SliceEmpty(h, h.Mark(cluster.MarkForced, "p").Refused)
	must.SliceEmpty(h, h.Plan(h.State().Job(cluster.JobKey{Namespace: "default", ID: "web"}), []cluster.AllocID{"p"}, places...).Refused)
	h.run(time.Minute)
	must.True(h, h.State().Alloc("p").ClientTerminal())
}

// replaced stops p, and places its replacement r on n2.
func (h *history) replaced() {
	job := h.State().Job(cluster.JobKey{Namespace: "default", ID: "web"})
	r := clustertest.Alloc(job, "r", "n2", h.now)
	r.PreviousAllocation = "p"
	h.stop(r)
}

// run lets time pass, and sends the clients their allocations.
func (h *history) run(d time.Duration) {
	h.Helper()
	for end := h.now.Add(d); h.now.Before(end); h.now = h.now.Add(time.Second) {
		for _, m := range h.machines {
			w := client.Changes{ClusterID: "c1", Index: h.Index, Version: cluster.MaxVersion}
			for a := range h.State().AllocsByNode(m.ID()) {
				w.Allocs = append(w.Allocs, a.Copy())
			}
			m.Servers(w)
			_, err := m.Advance(h.now)
			must.NoError(h, err)
		}
		h.judge.Quiet(h.now, h.State())
	}
}

// disk is the disk of p.
func (h *history) disk() *machine.Disk { return machine.DisksOf(h.machines[0]).Disk("p") }

// removed removes the disk and the record of p.
func (h *history) removed() {
	h.disk().Removed = h.now
	h.machines[0].LoseRecord("p")
	h.run(time.Second)
}

// reportsCopied stops p, and applies the report of its replacement that it has the data of an allocation. The row of p
// stays as it is.
func (h *history) reportsCopied(of cluster.AllocID) {
	h.stop()
	before := h.State()
	job := before.Job(cluster.JobKey{Namespace: "default", ID: "web"})
	r := clustertest.Alloc(job, "r", "n2", h.now)
	r.PreviousAllocation, r.DataIn = "p", &cluster.DataMove{State: cluster.DataCopied, Peer: of}
	must.SliceEmpty(h, h.Plan(job, nil, r).Refused)
	report := &shims.AllocClientUpdate{Reports: []cluster.AllocReport{{Alloc: "r"}}}
	h.judge.Applied(h.now, shims.Applied{Message: report, Before: before, After: h.State()})
}

// streams replaces p. The servers begin a stream every 20 s. The client gets progress of each, and a byte has arrived,
// or one of each stream.
func (h *history) streams(d time.Duration, grow bool) {
	h.replaced()
	h.stream(d, grow)
}

// stream opens streams of the last copy, one after the other.
func (h *history) stream(d time.Duration, grow bool) {
	for i := range int64(d / (20 * time.Second)) {
		c := h.copies[len(h.copies)-1]
		must.False(h, c.Over())
		c.Arrive(h.disk(), i+1)
		if !grow {
			machine.DisksOf(h.machines[1]).Incoming("r").Bytes = 1
		}
		h.run(15 * time.Second)
		c.Answer(client.DataFailed, "the copy was cut")
		h.run(5 * time.Second)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	settled := func(h *history, after time.Duration, turns int) {
		h.run(after)
		h.judge.Settled(h.now, h.State(), turns)
	}
	for name, c := range map[string]struct {
		play func(h *history)
		want []invariant.Check
	}{
		"copied": {func(h *history) {
			h.replaced()
			h.copies[0].Name("p")
			h.copies[0].Arrive(h.disk(), h.disk().Bytes)
			settled(h, 2*time.Hour, 0)
		}, nil},
		"given up without a cause": {func(h *history) {
			h.replaced()
			h.copies[0].Answer(client.DataRefused, "no reason")
			h.run(time.Minute)
		}, []invariant.Check{moved.Lost}},
		"given up after trouble": {func(h *history) {
			h.replaced()
			h.judge.Troubled("n2", h.now, false)
			h.copies[0].Answer(client.DataRefused, "the machine had no room")
			h.run(time.Minute)
		}, nil},
		"a report of a scenario": {func(h *history) {
			h.judge.Untrue([]cluster.AllocReport{{Alloc: "p"}})
			h.replaced()
			h.copies[0].Answer(client.DataRefused, "p has not ended")
			h.run(time.Minute)
		}, nil},
		"only a part is there": {func(h *history) {
			h.replaced()
			h.copies[0].Arrive(&machine.Disk{Alloc: "p", Writers: []cluster.AllocID{"p"}, Bytes: 1, Partial: true}, 1)
			h.run(time.Minute)
		}, []invariant.Check{moved.Partial}},
		"waits for ever": {func(h *history) {
			h.replaced()
			settled(h, 41*time.Minute, 1)
		}, []invariant.Check{moved.Waits}},
		"a turn without a copy": {func(h *history) {
			h.replaced()
			settled(h, time.Second, 2)
		}, []invariant.Check{moved.Stays}},
		"kept beyond the retention": {func(h *history) {
			h.stop()
			settled(h, 51*time.Minute, 0)
		}, []invariant.Check{moved.Stays}},
		"the client keeps data": {func(h *history) {
			h.stop()
			h.run(time.Minute)
		}, nil},
		"the client no longer keeps data": {func(h *history) {
			h.stop()
			h.machines[0].Record("p").DataOut = nil
			h.run(time.Second)
		}, []invariant.Check{moved.Dropped}},
		"the client has removed data": {func(h *history) {
			h.stop()
			h.removed()
		}, []invariant.Check{moved.Dropped}},
		"the client has lost its record": {func(h *history) {
			h.stop()
			h.judge.Troubled("n1", h.now, true)
			h.removed()
		}, nil},
		"the client has removed data that the restored servers do not have": {func(h *history) {
			h.stop()
			h.judge.Restored()
			h.removed()
		}, nil},
		"the servers do not end the move":                   {func(h *history) { h.reportsCopied("p") }, []invariant.Check{moved.Unended}},
		"the servers do not end the move of an earlier one": {func(h *history) { h.reportsCopied("q") }, nil},
		"streams bring nothing for 80 s":                    {func(h *history) { h.streams(80*time.Second, false) }, nil},
		"streams bring nothing for two minutes, and the client starts again": {func(h *history) {
			h.streams(80*time.Second, false)
			h.judge.ClientStarts(h.now, h.machines[1].ID())
			h.stream(40*time.Second, false)
		}, nil},
		"streams bring nothing for two minutes": {func(h *history) { h.streams(2*time.Minute, false) }, []invariant.Check{moved.Stalled}},
		"each stream brings something":          {func(h *history) { h.streams(2*time.Minute, true) }, nil},
		"half of it arrived, and no more": {func(h *history) {
			h.replaced()
			h.copies[0].Arrive(h.disk(), h.disk().Bytes/2)
			settled(h, 30*time.Second, 1)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t)
			c.play(h)
			var got []invariant.Check
			for _, v := range h.judge.Violations() {
				got = append(got, invariant.Check(v.Guarantee+" "+v.Check))
			}
			must.Eq(t, c.want, got, must.Sprint(h.judge.Violations()))
		})
	}
}
