package machine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
	double "github.com/seed-f9cf0b39/nodedrain/plugin/storage/scripted"
)

// C4: random drains of a node with volumes, paced and forced. The client dies, calls fail, hang or
// take effect without an answer, plugins die, mounts are busy. No call is out of order, and no
// mount, claim or process is left.
func TestNode_randomDrains(t *testing.T) {
	t.Parallel()
	seeds := uint64(1000)
	if testing.Short() {
		seeds = 100
	}
	for seed := range seeds {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { playDrain(t, rand.New(rand.NewPCG(seed, 24))) }) {
			return
		}
	}
}

// drained is a node that a test drains.
type drained struct {
	*fixture
	dice draw
	// users are the allocations with volumes, and plugins are the allocations of the storage
	// plugin.
	users, plugins []cluster.AllocID
	placed         int
	// losesVolumes: records of volumes are lost, and records of allocations are not. If both were
	// lost, no record would contain the mount.
	losesVolumes bool
	// log are the faults and requests so far.
	log []string
}

func playDrain(t *testing.T, rng *rand.Rand) {
	d := &drained{newFixture(t, rand.New(rand.NewPCG(rng.Uint64(), 1))), draw{rng}, nil, nil, 0, rng.IntN(2) == 0, nil}
	defer func() {
		if t.Failed() {
			t.Log(d.story())
		}
	}()
	d.stages = !d.dice.chance(5)
	d.exclusive = d.dice.chance(3)
	d.scripts["plugin"] = scripted.Script{StartDelay: d.dice.upTo(2 * time.Second), StopTakes: d.dice.upTo(6 * time.Second), IgnoreSignals: d.dice.chance(6)}
	if d.dice.chance(4) {
		odds := 8 + d.dice.IntN(40)
		d.fault = func(c scripted.Call) scripted.Fault { return d.dice.fault(c, odds) }
	}
	if !d.dice.chance(4) {
		odds := 2 + d.dice.IntN(20)
		d.storageFault = func(c double.Call) scripted.Fault { return d.storageFaultOf(c, odds) }
	}
	d.addPlugin()
	for range 1 + d.dice.IntN(4) {
		d.addUser()
	}
	for range d.dice.IntN(6) {
		d.run(d.dice.upTo(time.Minute))
		d.disturb()
	}
	d.drain()
	for range d.dice.IntN(6) {
		d.disturb()
		d.run(d.dice.upTo(2 * time.Minute))
	}
	d.calm()
	d.run(time.Hour)
	d.settle()
	for _, a := range d.allocs {
		must.True(t, a.ClientTerminal(), must.Sprintf("%s is %s: %s", a.ID, a.ClientStatus, a.ClientDescription))
	}
	must.SliceEmpty(t, tasks(d.fixture))
	empty(d.fixture)
}

func (d *drained) addPlugin() {
	d.placed++
	id := cluster.AllocID(fmt.Sprint("p", d.placed))
	d.plugins = append(d.plugins, id)
	d.place(disks(id))
}

// addUser places an allocation with some of three volumes.
func (d *drained) addUser() {
	d.placed++
	a := d.dice.allocation(d.fixture, d.placed)
	volumes := []cluster.VolumeID{"data", "logs", "more"}
	d.dice.Shuffle(len(volumes), func(i, k int) { volumes[i], volumes[k] = volumes[k], volumes[i] })
	mounts(a, volumes[:1+d.dice.IntN(len(volumes))]...)
	if d.dice.chance(4) {
		a.Job.TaskGroups[0].Volumes[0].ReadOnly = true
	}
	if d.dice.chance(8) {
		a.Job.TaskGroups[0].Volumes[0].MountOptions = &cluster.MountOptions{FSType: "ext4"}
	}
	d.users = append(d.users, a.ID)
	d.place(a)
}

// drain stops all allocations: the plugins after the others, or at the same time.
func (d *drained) drain() {
	all := d.users
	if d.dice.chance(2) {
		all = append(all, d.plugins...)
		d.dice.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
		for _, id := range all {
			d.stop(id)
		}
		return
	}
	for _, id := range all {
		d.stop(id)
		d.run(d.dice.upTo(20 * time.Second))
	}
	for _, id := range d.plugins {
		d.stop(id)
	}
}

// calm ends all faults. It kills the plugins, because a hanging call ends only with its process.
func (d *drained) calm() {
	d.fault, d.storageFault, d.away, d.dieAt = nil, nil, false, 0
	d.node.FillDisk(false)
	for _, path := range d.node.Storage().Busy() {
		d.node.Storage().Free(path)
	}
	d.answer()
	d.node.Volumes().Kill("disks")
	d.run(12 * time.Minute) // no task lives longer
	if !slices.ContainsFunc(tasks(d.fixture), func(p scripted.Process) bool { return p.Command == "plugin" }) {
		d.addPlugin() // the others have failed too often, or the hold limit has passed
	}
	d.run(10 * time.Minute)
	for _, id := range d.plugins {
		d.stop(id)
	}
}

func (d *drained) storageFaultOf(c double.Call, odds int) scripted.Fault {
	if !d.dice.chance(odds) {
		return scripted.Fault{}
	}
	f := scripted.Fault{Delay: d.dice.upTo(10 * time.Second)}
	switch d.dice.IntN(4) {
	case 0:
		f.Delay = d.dice.upTo(4 * time.Minute)
	case 1:
		f.Action, f.Err = scripted.Fail, storage.Errorf(storage.Class(d.dice.IntN(4)), "no")
	case 2:
		f.Action, f.Err = scripted.FailAfter, storage.Errorf(storage.Class(d.dice.IntN(4)), "lost")
	case 3:
		f.Action = []scripted.Action{scripted.Hang, scripted.HangAfter, scripted.Crash, scripted.CrashAfter}[d.dice.IntN(4)]
	}
	if c.Plugin == "" && f.Action >= scripted.Crash {
		f.Action = scripted.Hang
	}
	return f
}

// disturb causes a random fault.
func (d *drained) disturb() {
	s := d.node.Storage()
	what := d.dice.IntN(13)
	d.log = append(d.log, fmt.Sprint(d.now.Sub(begin), " disturb ", what))
	switch what {
	case 0:
		d.node.KillClient()
	case 1, 2, 3:
		d.dieAt = d.effects + 1 + d.dice.IntN(25)
	case 4:
		d.node.Volumes().Kill("disks")
	case 5:
		d.node.Volumes().Hang("disks", d.dice.upTo(time.Minute))
	case 6:
		d.node.FillDisk(!d.node.DiskFull())
	case 7:
		d.cut(!d.away)
		d.answer()
	case 8, 9:
		if rows := s.Mounts(); len(rows) > 0 {
			s.MakeBusy(rows[d.dice.IntN(len(rows))].Path, storage.Holder{PID: 99, Command: "tail"})
		}
	case 10:
		if d.dice.chance(4) {
			d.node.Halt()
			d.node.Boot()
		}
	case 11:
		if d.dice.chance(3) {
			d.addPlugin()
		} else if d.dice.chance(2) {
			d.stop(d.plugins[d.dice.IntN(len(d.plugins))])
		}
	case 12:
		d.lose()
	}
}

// lose damages a record and restarts the client. It damages the record of a volume only while no
// call for the volume is in flight, because otherwise no record would contain the effect of the
// call.
func (d *drained) lose() {
	volumes, allocs := slices.DeleteFunc(d.node.Volumes().Records(), d.node.Storage().InFlight), d.node.Records()
	switch {
	case d.losesVolumes && len(volumes) > 0:
		d.node.Volumes().LoseRecord(volumes[d.dice.IntN(len(volumes))])
	case !d.losesVolumes && len(allocs) > 0:
		d.node.LoseRecord(allocs[d.dice.IntN(len(allocs))].Alloc.ID)
	}
	d.node.KillClient()
}

// story returns the calls to the storage, for messages of failed tests.
func (d *drained) story() string {
	lines := d.log
	for _, c := range d.node.Storage().Calls(0) {
		lines = append(lines, fmt.Sprint(c.At.Sub(begin), " ", c.Step, " ", c.Request.Volume.ID, " ", c.Request.Alloc, " ", c.Path, " ", strings.Join(c.Wrong, ", ")))
	}
	for _, p := range d.node.Machine().Processes() {
		if p.Kind == scripted.TaskProcess {
			lines = append(lines, fmt.Sprintf("%s %s to %s %v", p.Task, p.StartedAt.Sub(begin), p.EndedAt.Sub(begin), p.Signals))
		}
	}
	for _, m := range d.node.Storage().Mounts() {
		lines = append(lines, fmt.Sprint("mounted: ", m.Path))
	}
	for _, c := range d.node.Storage().Claims() {
		lines = append(lines, fmt.Sprint("claimed: ", c.Key()))
	}
	return "\n" + strings.Join(lines, "\n")
}
