package machine

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
	double "github.com/seed-f9cf0b39/nodedrain/plugin/storage/scripted"
)

// Times of the storage of a node.
const (
	// probeLimit is the timeout of a probe.
	probeLimit = 10 * time.Second
	// volumeCallTimeout is the timeout of a call to a storage plugin, and of a request for a claim.
	volumeCallTimeout = 2 * time.Minute
)

// StorageOptions are the options of a node's storage. Claim and Release are required.
type StorageOptions struct {
	// Claim requests a claim from the servers, and Release releases it. They call reply at most
	// once, and not before they return.
	Claim   func(q storage.Request, reply func(storage.Claimed, error))
	Release func(q storage.Request, reply func(error))
	// Claimed is the answer to a claim of an allocation that runs at the start of the simulation.
	// Nil means that none of these has volumes.
	Claimed func(storage.Request) storage.Claimed
	// Stages reports whether a plugin has the capability to stage volumes. Nil means that each
	// plugin has it.
	Stages func(cluster.PluginID) bool
	// Fault returns the fault of one call to a plugin or to the servers. Nil means no faults.
	Fault func(double.Call) scripted.Fault
	// Plugins reports the storage plugins of the node to the servers whenever one of them changes.
	// Nil drops the reports.
	Plugins func(all []*cluster.StoragePlugin)
	// HoldLimit is the HoldLimit of the client's options.
	HoldLimit time.Duration
}

// volumesRoot is the folder of all volumes of a node.
const volumesRoot = "/volumes"

// Volumes are the volumes of a node: their records on the disk, their mounts in the double of the
// storage, and the tasks of storage plugins.
type Volumes struct {
	storage *double.Storage
	node    *Node
	options *StorageOptions
	disk    map[cluster.VolumeKey]*volume.Record
	// tasks are the starts of storage plugins' tasks.
	tasks map[driver.TaskID]*cluster.CSIPlugin
}

// install gives a node the storage of the options.
func (s *Volumes) install(n *Node) {
	s.node, s.options = n, n.options.Storage
	s.disk, s.tasks = map[cluster.VolumeKey]*volume.Record{}, map[driver.TaskID]*cluster.CSIPlugin{}
	s.storage = double.New(n.machine, n.clock, double.Options{
		Root: volumesRoot, Claim: s.options.Claim, Release: s.options.Release, Stages: s.options.Stages, Fault: s.fault,
	})
}

func (s *Volumes) fault(call double.Call) scripted.Fault {
	if s.options.Fault == nil {
		return scripted.Fault{}
	}
	f := s.options.Fault(call)
	if f != (scripted.Fault{}) {
		s.node.options.Observer.Troubled(s.node, TroubleStorage, string(call.Plugin))
	}
	return f
}

// HoldLimit returns the hold limit of the client.
func (s *Volumes) HoldLimit() time.Duration {
	return cmp.Or(s.options.HoldLimit, client.DefaultHoldLimit)
}

// Plugin returns the storage plugin of a start of a task, or nil.
func (s *Volumes) Plugin(task driver.TaskID) *cluster.CSIPlugin { return s.tasks[task] }

// Record returns the record of a volume on the disk, or nil. The caller does not change it.
func (s *Volumes) Record(k cluster.VolumeKey) *volume.Record { return s.disk[k] }

// Records returns the volumes that have a record on the disk, in order.
func (s *Volumes) Records() []cluster.VolumeKey {
	return slices.SortedFunc(maps.Keys(s.disk), cluster.VolumeKey.Compare)
}

// LoseRecord removes the record of a volume from the disk, like a damaged record. Only the next
// client notices it.
func (s *Volumes) LoseRecord(k cluster.VolumeKey) {
	delete(s.disk, k)
	s.node.options.Observer.Troubled(s.node, TroubleVolumeRecord, k.String())
}

// Kill kills the processes of a storage plugin's tasks. It reports whether there was one.
func (s *Volumes) Kill(id cluster.PluginID) bool {
	found := false
	for _, p := range s.node.machine.Living() {
		if config := s.tasks[p.Task]; config != nil && config.ID == id && p.Kind == scripted.TaskProcess {
			found = true
			s.node.options.Observer.Troubled(s.node, TroubleStorage, string(id))
			s.node.machine.Signal(p.Identity, scripted.SIGKILL, scripted.ByFault)
		}
	}
	return found
}

// Hang makes a storage plugin hang: calls and probes take effect after the duration.
func (s *Volumes) Hang(id cluster.PluginID, d time.Duration) {
	s.storage.Hang(id, d)
	if s.node.run != nil {
		s.node.run.served.disturb(id)
	}
	s.node.options.Observer.Troubled(s.node, TroubleStorage, string(id))
}

// starts records a start of a storage plugin's task.
func (s *Volumes) starts(id driver.TaskID, a *cluster.Allocation, name string) {
	if s == nil {
		return
	}
	if p := pluginOf(a, name); p != nil {
		s.tasks[id] = p
	}
}

// pluginOf returns the storage plugin of a task, or nil.
func pluginOf(a *cluster.Allocation, name string) *cluster.CSIPlugin {
	group := a.Job.Group(a.TaskGroup)
	if group == nil {
		return nil
	}
	for _, t := range group.Tasks {
		if t != nil && t.Name == name {
			return t.CSIPlugin
		}
	}
	return nil
}

// volumes returns the client's options for volumes, or nil.
func (s *Volumes) volumes(r *run) *volume.Options {
	if s == nil {
		return nil
	}
	o := &volume.Options{Shell: &storageShell{run: r, volumes: s}, Root: volumesRoot}
	for _, key := range s.Records() {
		o.Records = append(o.Records, copyRecord(s.disk[key]))
	}
	for _, m := range s.storage.Mounts() {
		o.Mounted = append(o.Mounted, m.Path)
	}
	return o
}

func copyRecord(r *volume.Record) *volume.Record {
	read := *r
	read.Stages, read.Refs = slices.Clone(r.Stages), slices.Clone(r.Refs)
	return &read
}

// adopt mounts the volumes of an allocation that runs at the start of the simulation, and writes
// their records.
func (s *Volumes) adopt(a *cluster.Allocation) {
	group := a.Job.Group(a.TaskGroup)
	if s == nil || s.options.Claimed == nil || group == nil {
		return
	}
	for _, v := range group.Volumes {
		q := storage.Request{
			Alloc: a.ID, Volume: cluster.VolumeKey{Namespace: a.Namespace, ID: v.VolumeOf(a.Name)},
			Usage: storage.Usage{VolumeCapability: v.Capability, ReadOnly: v.ReadOnly}, Options: v.MountOptions,
		}
		got := s.options.Claimed(q)
		s.storage.Adopt(q, got)
		rec := s.disk[q.Volume]
		if rec == nil {
			rec = &volume.Record{Volume: q.Volume, BootID: s.node.BootID(), Plugin: got.Plugin, ExternalID: got.ExternalID}
			s.disk[q.Volume] = rec
		}
		if !slices.ContainsFunc(rec.Stages, func(staged volume.StageRecord) bool { return staged.Usage == q.Usage }) {
			rec.Stages = append(rec.Stages, volume.StageRecord{
				Usage: q.Usage, Phase: volume.Staged, Skipped: !s.storage.Stages(got.Plugin), Options: cmp.Or(q.Options, got.Options),
			})
		}
		rec.Refs = append(rec.Refs, volume.RefRecord{Alloc: a.ID, Usage: q.Usage, Options: q.Options, Phase: volume.Published})
	}
}

// storageShell executes the effects of one client's volumes.
type storageShell struct {
	run     *run
	volumes *Volumes
}

var _ volume.Shell = (*storageShell)(nil)

// SaveVolume writes the record of a volume.
func (s *storageShell) SaveVolume(rec *volume.Record, reply func(error)) {
	s.write("SaveVolume", rec.Volume, reply, func() { s.volumes.disk[rec.Volume] = rec })
}

// DeleteVolume removes the record of a volume.
func (s *storageShell) DeleteVolume(k cluster.VolumeKey, reply func(error)) {
	s.write("DeleteVolume", k, reply, func() { delete(s.volumes.disk, k) })
}

func (s *storageShell) write(name string, k cluster.VolumeKey, reply func(error), effect func()) {
	r := s.run
	if !r.begins(name, k.String()) {
		return
	}
	r.after(saveTime, func() {
		var err error
		if s.volumes.node.diskFull && name == "SaveVolume" {
			err = errors.New("no space left on device")
		} else if r.alive() {
			effect()
		}
		r.answers(name, func() { reply(err) })
	})
}

// Claim requests a claim from the servers.
func (s *storageShell) Claim(q storage.Request, reply func(storage.Claimed, error)) {
	var got storage.Claimed
	s.call("Claim", q, func(err error) { reply(got, err) }, func(waiting func() bool, answer func(error)) {
		s.volumes.storage.Claim(q, waiting, func(c storage.Claimed, err error) {
			got = c
			answer(err)
		})
	})
}

// Release releases a claim.
func (s *storageShell) Release(q storage.Request, reply func(error)) {
	s.call("Release", q, reply, func(waiting func() bool, answer func(error)) {
		s.volumes.storage.Release(q, waiting, answer)
	})
}

// Call calls the newest healthy plugin.
func (s *storageShell) Call(c storage.Call, reply func(storage.Result)) {
	var got storage.Result
	s.call(c.Verb.String(), storage.Request{Volume: c.Volume, Alloc: c.Request.Alloc}, func(err error) { reply(storage.Result{Err: err, Holders: got.Holders}) }, func(waiting func() bool, answer func(error)) {
		p := s.run.served.all.Newest(c.Plugin, cluster.PluginType.Node)
		if p == nil {
			s.run.after(folderTime, func() { answer(errors.New("no healthy storage plugin runs on the node")) })
			return
		}
		s.volumes.storage.Do(p.ID, c, waiting, func(r storage.Result) {
			got = r
			answer(r.Err)
		})
	})
}

// call makes a call with a time limit.
func (s *storageShell) call(name string, q storage.Request, reply func(error), begin func(waiting func() bool, answer func(error))) {
	r := s.run
	if !r.begins(name, q.Volume.String()+" "+string(q.Alloc)) {
		return
	}
	over := false
	first := once(r, name, volumeCallTimeout, func(err error) {
		over = true
		r.answers(name, func() { reply(err) })
	})
	begin(func() bool { return r.alive() && !over }, first)
}
