package client_test

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	drivers "github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage/scripted"
)

// fakeStorage is the double of the machine's storage, which judges the order of calls, with records and
// the claims of the servers.
type fakeStorage struct {
	*scripted.Storage
	node *node
	// machine has the process of the storage plugin alone. It stands for the task serving, or nil, that
	// the core of the epoch postedTo has.
	machine  *drivers.Machine
	serving  *task
	postedTo int
	disk     map[cluster.VolumeKey]*volume.Record
	// claims are those of the servers, with the index of the plan that made them, or zero.
	claims   map[cluster.ClaimKey]uint64
	released map[cluster.ClaimKey]int
	// revoked are claims that an operator has freed by force.
	revoked map[cluster.ClaimKey]bool
	// failing are errors of calls by name.
	failing map[string]error
	// unpublishTakes is how long an unpublish takes.
	unpublishTakes time.Duration
	// holdLimits counts the holds whose limit has passed.
	holdLimits int
	// calls are the calls that the plugin has answered, and judged counts those whose order was
	// judged.
	calls  []string
	judged int
}

const volumesRoot = "/volumes"

func newStorage(n *node) *fakeStorage {
	st := &fakeStorage{
		node: n, disk: map[cluster.VolumeKey]*volume.Record{}, claims: map[cluster.ClaimKey]uint64{},
		released: map[cluster.ClaimKey]int{}, revoked: map[cluster.ClaimKey]bool{}, failing: map[string]error{},
	}
	st.machine = drivers.NewMachine(st)
	st.Storage = scripted.New(st.machine, st, scripted.Options{Root: volumesRoot, Claim: st.claim, Release: st.release, Fault: st.fault})
	return st
}

// Now implements the clock of the double.
func (st *fakeStorage) Now() time.Time { return st.node.time().Wall }

// After implements the clock of the double.
func (st *fakeStorage) After(d time.Duration, do func()) (cancel func()) {
	canceled := false
	st.node.after(max(0, d), 0, func() {
		if !canceled {
			do()
		}
	})
	return func() { canceled = true }
}

// claim is the answer of the servers to a claim.
func (st *fakeStorage) claim(q storage.Request, reply func(storage.Claimed, error)) {
	k := cluster.ClaimKey{Volume: q.Volume, Alloc: q.Alloc}
	if st.revoked[k] {
		reply(storage.Claimed{}, errors.New("the servers have no claim of the allocation"))
		return
	}
	if _, is := st.claims[k]; !is {
		st.claims[k] = 0
	}
	reply(storage.Claimed{Plugin: "disks", ExternalID: "ext"}, nil)
}

// release is the answer of the servers to the end of a claim.
func (st *fakeStorage) release(q storage.Request, reply func(error)) {
	k := cluster.ClaimKey{Volume: q.Volume, Alloc: q.Alloc}
	if _, is := st.claims[k]; is {
		st.released[k]++
		delete(st.claims, k)
	}
	reply(nil)
}

// revoke frees a claim by force.
func (st *fakeStorage) revoke(k cluster.ClaimKey) {
	st.revoked[k] = true
	delete(st.claims, k)
	st.TakeBack(k)
}

func (st *fakeStorage) fault(c scripted.Call) (f drivers.Fault) {
	if f.Err = st.failing[c.Step.String()]; f.Err != nil {
		f.Action = drivers.Fail
	}
	if c.Step == scripted.Unpublishing {
		f.Delay = st.unpublishTakes
	}
	return f
}

// options returns the options of a new core.
func (st *fakeStorage) options(epoch int) *volume.Options {
	if st.node.noVolumes {
		return nil
	}
	o := &volume.Options{Shell: &volumeShell{st, &shell{node: st.node, epoch: epoch}}, Root: volumesRoot}
	for _, key := range slices.SortedFunc(maps.Keys(st.disk), cluster.VolumeKey.Compare) {
		o.Records = append(o.Records, st.disk[key])
	}
	for _, m := range st.Mounts() {
		o.Mounted = append(o.Mounted, m.Path)
	}
	return o
}

// claimed returns the claims as the servers report them.
func (st *fakeStorage) claimed() (claims []*cluster.VolumeClaim) {
	for _, k := range slices.SortedFunc(maps.Keys(st.claims), cluster.ClaimKey.Compare) {
		claims = append(claims, &cluster.VolumeClaim{Volume: k.Volume, Alloc: k.Alloc, Mode: cluster.ClaimWrite, Capability: manyWriters, CreateIndex: st.claims[k]})
	}
	return claims
}

// published are the targets in the mount table.
func (st *fakeStorage) published() []scripted.Mount {
	return slices.DeleteFunc(st.Mounts(), func(m scripted.Mount) bool { return m.Alloc == "" })
}

// reboot removes what a machine loses at a restart.
func (st *fakeStorage) reboot() {
	st.machine.Halt()
	st.Halt()
	st.machine.Boot()
	st.serving = nil
}

// freeAll ends what keeps mounts busy.
func (st *fakeStorage) freeAll() {
	for _, path := range st.Busy() {
		st.Free(path)
	}
}

// plugin is the process of the storage plugin, or nil.
func (st *fakeStorage) plugin() *task {
	for _, t := range st.node.live("") {
		if task := st.node.taskOf(t); task != nil && task.CSIPlugin != nil {
			return t
		}
	}
	return nil
}

// post judges the calls, and posts to the double and the core which process of the plugin answers.
func (st *fakeStorage) post() {
	for _, c := range st.Calls(st.judged) {
		must.SliceEmpty(st.node.t, c.Wrong, must.Sprint(c.Step, " of ", c.Request.Volume))
		st.judged++
	}
	now, posted := st.plugin(), st.postedTo == st.node.epoch
	if posted && st.serving == now {
		return
	}
	if posted && st.serving != nil {
		st.node.core.StoragePluginDown("disks")
	}
	if st.serving != now {
		for _, p := range st.machine.Living() {
			st.machine.Signal(p.Identity, drivers.SIGKILL, drivers.ByFault)
		}
	}
	if st.serving != now && now != nil {
		_, err := st.machine.Spawn(drivers.Process{Task: "plugin"})
		must.NoError(st.node.t, err)
	}
	st.postedTo, st.serving = st.node.epoch, now
	if now != nil {
		st.node.core.StoragePluginUp("disks", volume.Plugin{Stages: true})
	}
}

// starting checks the start of a task: its volumes are published.
func (st *fakeStorage) starting(a *cluster.Allocation, ref client.TaskRef) {
	for _, v := range a.Job.TaskGroups[0].Volumes {
		is := slices.ContainsFunc(st.published(), func(m scripted.Mount) bool { return m.Alloc == a.ID && m.Volume.ID == v.Source })
		must.True(st.node.t, is, must.Sprint(ref.ID, " starts without ", v.Source))
	}
}

// stopping checks the stop of a process: a storage plugin must not stop while a volume is mounted,
// unless its hold limit has passed or it has a successor.
func (st *fakeStorage) stopping(t *task, why string) {
	task := st.node.taskOf(t)
	if task == nil || task.CSIPlugin == nil || len(st.Mounts()) == 0 {
		return
	}
	rec := st.node.disk[t.alloc]
	switch {
	case rec.RestartAll, slices.ContainsFunc(rec.Tasks, func(t client.TaskRecord) bool { return t.Restarting }):
	case rec.HoldBegan != 0 && st.node.boot-rec.HoldBegan >= client.DefaultHoldLimit:
		st.holdLimits++
	default:
		for _, a := range st.node.allocs {
			if a.ID != t.alloc && a.DesiredStatus == cluster.DesiredRun && a.Job.StoragePlugin() {
				return
			}
		}
		must.Unreachable(st.node.t, must.Sprint("the storage plugin is stopped while volumes are mounted: ", why, " ", st.Mounts()))
	}
}

// reported checks the report of an end: no volume is published for the allocation, unless the
// report names it.
func (st *fakeStorage) reported(r cluster.AllocReport) {
	for _, m := range st.published() {
		if m.Alloc == r.Alloc {
			must.True(st.node.t, r.VolumeHolds.Holds(cluster.ClaimKey{Volume: m.Volume, Alloc: m.Alloc}), must.Sprint("reported as ended, but its volume is published: ", m.Path))
		}
	}
}

// volumeShell executes the effects of one core's volumes.
type volumeShell struct {
	*fakeStorage
	shell *shell
}

func (s *volumeShell) SaveVolume(r *volume.Record, reply func(error)) {
	s.shell.later(time.Millisecond, func() func() {
		if s.node.fullDisk {
			return func() { reply(errors.New("no space left on device")) }
		}
		if s.shell.epoch == s.node.epoch {
			s.disk[r.Volume] = r
		}
		return func() { reply(nil) }
	})
}

func (s *volumeShell) DeleteVolume(k cluster.VolumeKey, reply func(error)) {
	s.shell.later(time.Millisecond, func() func() {
		if s.shell.epoch == s.node.epoch {
			delete(s.disk, k)
		}
		return func() { reply(nil) }
	})
}

func (s *volumeShell) lives() bool { return s.shell.epoch == s.node.epoch }

// answer adds a call to the story, and passes its answer on.
func (s *volumeShell) answer(step scripted.Step, k cluster.VolumeKey, err error, reply func()) {
	if err == nil {
		s.calls = append(s.calls, step.String())
		s.node.log("%s %s", step, k.ID)
	}
	if s.shell.effect() {
		reply()
	}
}

func (s *volumeShell) Claim(q storage.Request, reply func(storage.Claimed, error)) {
	if s.shell.effect() {
		rec := s.disk[q.Volume]
		must.NotNil(s.node.t, rec, must.Sprint("a claim without a record"))
		must.True(s.node.t, slices.ContainsFunc(rec.Refs, func(f volume.RefRecord) bool { return f.Alloc == q.Alloc }))
		s.fakeStorage.Claim(q, s.lives, func(c storage.Claimed, err error) {
			s.answer(scripted.Claiming, q.Volume, err, func() { reply(c, err) })
		})
	}
}

func (s *volumeShell) Release(q storage.Request, reply func(error)) {
	if s.shell.effect() {
		s.fakeStorage.Release(q, s.lives, func(err error) { s.answer(scripted.Releasing, q.Volume, err, func() { reply(err) }) })
	}
}

// Call judges what the double does not see: the record that is written before, and the tasks.
func (s *volumeShell) Call(c storage.Call, reply func(storage.Result)) {
	if !s.shell.effect() {
		return
	}
	step := scripted.StepOf(c.Verb)
	if step < scripted.Unpublishing {
		must.MapContainsKey(s.node.t, s.disk, c.Volume, must.Sprint(step, " without a record"))
	}
	if step == scripted.Unpublishing {
		for _, t := range s.node.live("") {
			must.NotEqOp(s.node.t, c.Request.Alloc, t.alloc, must.Sprint("unpublished while ", t.id, " lives"))
		}
	}
	s.Do("plugin", c, s.lives, func(r storage.Result) { s.answer(step, c.Volume, r.Err, func() { reply(r) }) })
}

// empty checks that no volume is left, neither on the node nor at the servers.
func (st *fakeStorage) empty() {
	st.node.t.Helper()
	must.SliceEmpty(st.node.t, st.Mounts())
	must.SliceEmpty(st.node.t, st.Claims())
	must.MapEmpty(st.node.t, st.claims)
	must.MapEmpty(st.node.t, st.disk)
}

// withVolumes adds requests for volumes and mounts of them to an allocation.
func withVolumes(a *cluster.Allocation, ids ...cluster.VolumeID) *cluster.Allocation {
	g := a.Job.TaskGroups[0]
	for _, id := range ids {
		g.Volumes = append(g.Volumes, cluster.VolumeRequest{
			Name: string(id), Type: cluster.VolumeCSI, Source: id,
			Capability: manyWriters,
		})
	}
	return a
}

var manyWriters = cluster.VolumeCapability{Access: cluster.MultiNodeMultiWriter, Attachment: cluster.AttachFileSystem}

func pluginTask(name string) *cluster.Task {
	return &cluster.Task{Name: name, KillTimeout: 5 * time.Second, StoragePlugin: true, CSIPlugin: &cluster.CSIPlugin{ID: "disks", Type: cluster.PluginMonolith}}
}

func busyTarget(alloc cluster.AllocID, id cluster.VolumeID) string {
	return storage.TargetPath(volumesRoot, alloc, cluster.VolumeKey{Namespace: cluster.DefaultNamespace, ID: id}, storage.Usage{VolumeCapability: manyWriters})
}

var _ volume.Shell = (*volumeShell)(nil)
