package world

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
	double "github.com/seed-f9cf0b39/nodedrain/plugin/storage/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Storage describes the storage plugins of a world with volumes.
type Storage struct {
	// Plugin returns the capabilities of a plugin; never nil.
	Plugin func(cluster.PluginID) setting.Storage
	// HoldLimit is the HoldLimit of all clients. Zero is the client's default.
	HoldLimit time.Duration
}

// storage returns the storage options of the machine, or nil if the world has no volumes.
func (n *coreNode) storage() *machine.StorageOptions {
	o := n.cores.fleet.world.options.Storage
	if o == nil {
		return nil
	}
	return &machine.StorageOptions{
		Claim: n.claim, Release: n.release, Claimed: n.claimedAtBeginning, Fault: n.storageFault, HoldLimit: o.HoldLimit,
		Stages: func(id cluster.PluginID) bool { return o.Plugin(id).Stages },
		Plugins: func(all []*cluster.StoragePlugin) {
			reports := make([]*cluster.StoragePlugin, len(all))
			for i, p := range all {
				reports[i] = o.Plugin(p.ID).Report(&cluster.CSIPlugin{ID: p.ID, Type: p.Type}, p.Alloc, n.id, p.Healthy, p.UpdateTime)
			}
			n.registration.publishStorage(reports)
		},
	}
}

// claimedAtBeginning returns the answer that an earlier client got for a claim.
func (n *coreNode) claimedAtBeginning(q storage.Request) storage.Claimed {
	state := n.cores.fleet.world.Truth()
	got, _ := claimed(state.Volume(q.Volume), state.WorkView().Claim(cluster.ClaimKey{Volume: q.Volume, Alloc: q.Alloc}))
	return got
}

// storageFault is an opportunity of the faults of storage plugins and of claims.
func (n *coreNode) storageFault(c double.Call) scripted.Fault {
	w := n.cores.fleet.world
	if len(w.Faults.armed) == 0 {
		return scripted.Fault{}
	}
	draw := func(all ...scripted.Action) scripted.Action {
		return all[w.chance.stream("storage/"+string(n.id)).IntN(len(all))]
	}
	if c.Step == double.Claiming || c.Step == double.Releasing {
		if _, strikes := w.Faults.strike(scenario.ClaimLose, n.target()); strikes {
			return scripted.Fault{Action: draw(scripted.FailAfter, scripted.HangAfter)}
		}
		return scripted.Fault{}
	}
	if c.Step == double.Unpublishing {
		if busy, strikes := w.Faults.strike(scenario.MountBusy, n.target()); strikes {
			n.makeBusy(c.Path, busy)
		}
	}
	if _, strikes := w.Faults.strike(scenario.StorageFail, n.target()); strikes {
		fault := scripted.Fault{Action: draw(scripted.Fail, scripted.FailAfter)}
		if fault.Action == scripted.Fail && (c.Step == double.Unpublishing || c.Step == double.Unstaging) {
			// The client repeats such a call although the plugin refuses it.
			fault.Err = storage.Errorf(storage.Refused, "the volume cannot be unmounted")
		}
		return fault
	}
	hang := func(d time.Duration) { n.machine.Volumes().Hang(c.Plugin, d) }
	kill := func() { n.machine.Volumes().Kill(c.Plugin) }
	if delay, strikes := w.Faults.strike(scenario.StorageSlow, n.target()); strikes {
		n.killAtEnd(delay, hang, kill)
		return scripted.Fault{Delay: delay}
	}
	if delay, strikes := w.Faults.strike(scenario.StorageHang, n.target()); strikes {
		hang(delay)
		n.killAtEnd(delay, hang, kill)
		return scripted.Fault{Delay: delay}
	}
	delay, strikes := w.Faults.strike(scenario.StorageCrash, n.target())
	if !strikes {
		return scripted.Fault{}
	}
	if way := draw(scripted.Crash, scripted.CrashAfter, scripted.Answer); delay == 0 || way != scripted.Answer {
		n.notify(StorageDies)
		return scripted.Fault{Action: max(way, scripted.Crash)}
	}
	w.Faults.after(delay, func() error {
		n.notify(StorageDies)
		return n.disturb(kill)
	})
	return scripted.Fault{}
}

// makeBusy makes a process use a mount for a time.
func (n *coreNode) makeBusy(path string, d time.Duration) {
	n.machine.Storage().MakeBusy(path, storage.Holder{PID: busyPID, Command: "less"})
	n.cores.fleet.world.Faults.undoAfter(d, func() error { return n.disturb(func() { n.machine.Storage().Free(path) }) })
}

// busyPID is the pid of the process that uses mounts.
const busyPID = 4711
