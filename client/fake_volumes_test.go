package client_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// storage is the mount table of the machine, which only its storage plugin writes, and the claims of the
// servers. It judges the order of all calls.
type storage struct {
	node *node
	disk map[cluster.VolumeKey]*volume.Record
	// staged and published are mounts by path, with the volume. A boot of the machine empties them.
	staged, published map[string]cluster.VolumeKey
	// claims are those of the servers.
	claims map[cluster.ClaimKey]bool
	// claimedAt are the indexes of claims by plans. The others have none.
	claimedAt map[cluster.ClaimKey]uint64
	released  map[cluster.ClaimKey]int
	// revoked are claims that an operator has freed by force.
	revoked map[cluster.ClaimKey]bool
	// inFlight has a call for a volume, with the core that made it.
	inFlight map[cluster.VolumeKey]int
	// busy are targets that a process keeps. failing are errors of calls by name.
	busy    map[string]volume.Holder
	failing map[string]error
	// unpublishTakes is how long the plugin needs.
	unpublishTakes time.Duration
	// known is the plugin's process that the present core knows of, or nil, and toldTo that core.
	known  *task
	toldTo int
	// holdLimits counts the holds that were over.
	holdLimits int
	// calls are the calls that the plugin has answered.
	calls []string
}

const volumesRoot = "/volumes"

func newStorage(n *node) *storage {
	return &storage{
		node: n, disk: map[cluster.VolumeKey]*volume.Record{}, staged: map[string]cluster.VolumeKey{}, published: map[string]cluster.VolumeKey{},
		claims: map[cluster.ClaimKey]bool{}, claimedAt: map[cluster.ClaimKey]uint64{}, released: map[cluster.ClaimKey]int{}, revoked: map[cluster.ClaimKey]bool{}, inFlight: map[cluster.VolumeKey]int{},
		busy: map[string]volume.Holder{}, failing: map[string]error{},
	}
}

// options are what a new core gets.
func (st *storage) options(epoch int) *volume.Options {
	if st.node.noVolumes {
		return nil
	}
	var records []*volume.Record
	for _, key := range slices.SortedFunc(maps.Keys(st.disk), cluster.VolumeKey.Compare) {
		records = append(records, st.disk[key])
	}
	return &volume.Options{
		Shell: &volumeShell{st, &shell{node: st.node, epoch: epoch}}, Root: volumesRoot,
		Records: records, Mounted: slices.Concat(slices.Sorted(maps.Keys(st.published)), slices.Sorted(maps.Keys(st.staged))),
	}
}

// claimed are the claims as the servers tell them.
func (st *storage) claimed() (claims []*cluster.VolumeClaim) {
	for _, k := range slices.SortedFunc(maps.Keys(st.claims), cluster.ClaimKey.Compare) {
		claims = append(claims, &cluster.VolumeClaim{Volume: k.Volume, Alloc: k.Alloc, Mode: cluster.ClaimWrite, Capability: manyWriters, CreateIndex: st.claimedAt[k]})
	}
	return claims
}

// plugin is the process of the storage plugin, or nil.
func (st *storage) plugin() *task {
	for _, t := range st.node.live("") {
		if task := st.node.taskOf(t); task != nil && task.CSIPlugin != nil {
			return t
		}
	}
	return nil
}

// tell tells the core which process of the plugin answers.
func (st *storage) tell() {
	now := st.plugin()
	if st.toldTo == st.node.epoch && st.known == now {
		return
	}
	if st.toldTo == st.node.epoch && st.known != nil {
		st.node.core.StoragePluginDown("disks")
	}
	st.toldTo, st.known = st.node.epoch, now
	if now != nil {
		st.node.core.StoragePluginUp("disks", volume.Plugin{Stages: true})
	}
}

// stopping judges the stop of a process: no storage plugin stops while a volume is mounted, unless its
// hold is over or another one comes.
func (st *storage) stopping(t *task, why string) {
	task := st.node.taskOf(t)
	if task == nil || task.CSIPlugin == nil || len(st.staged) == 0 && len(st.published) == 0 {
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
		must.Unreachable(st.node.t, must.Sprint("the storage plugin is stopped while volumes are mounted: ", why, " ", st.published, st.staged))
	}
}

// reported judges the report of an end: no volume is published for the allocation, unless the report
// names it.
func (st *storage) reported(r cluster.AllocReport) {
	for path, key := range st.published {
		if strings.HasPrefix(path, volumesRoot+"/per-alloc/"+string(r.Alloc)+"/") {
			must.True(st.node.t, r.VolumeHolds.Holds(cluster.ClaimKey{Volume: key, Alloc: r.Alloc}), must.Sprint("reported as ended, but its volume is published: ", path))
		}
	}
}

// volumeShell acts for the volumes of one core.
type volumeShell struct {
	*storage
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

// call makes a call. Two calls of one core for one volume are a fault.
func (s *volumeShell) call(name string, k cluster.VolumeKey, takes time.Duration, effect func() error, reply func(error)) {
	if !s.shell.effect() {
		return
	}
	must.NotEqOp(s.node.t, s.shell.epoch, s.inFlight[k], must.Sprint("two calls for ", k, " at a time"))
	aborted := s.inFlight[k] != 0
	if !aborted {
		s.inFlight[k] = s.shell.epoch
	}
	s.node.after(max(takes, time.Millisecond), 0, func() {
		err := errors.New("another call is in flight")
		if !aborted {
			delete(s.inFlight, k)
			if err = s.failing[name]; err == nil {
				err = effect()
			}
		}
		if err == nil {
			s.calls = append(s.calls, name)
			s.node.log("%s %s", name, k.ID)
		}
		if s.shell.effect() {
			reply(err)
		}
	})
}

func (s *volumeShell) Claim(q volume.Request, reply func(volume.Claimed, error)) {
	s.call("claim", q.Volume, 0, func() error {
		if s.revoked[cluster.ClaimKey{Volume: q.Volume, Alloc: q.Alloc}] {
			return errors.New("the servers have no claim of the allocation")
		}
		s.claims[cluster.ClaimKey{Volume: q.Volume, Alloc: q.Alloc}] = true
		return nil
	}, func(err error) { reply(volume.Claimed{Plugin: "disks", ExternalID: "ext"}, err) })
}

func (s *volumeShell) Release(q volume.Request, reply func(error)) {
	claim := cluster.ClaimKey{Volume: q.Volume, Alloc: q.Alloc}
	s.call("release", q.Volume, 0, func() error {
		must.MapNotContainsKey(s.node.t, s.published, volume.TargetPath(volumesRoot, q.Alloc, q.Volume, q.Usage), must.Sprint("released while published"))
		if s.claims[claim] {
			s.released[claim]++
			delete(s.claims, claim)
		}
		for other := range s.claims { //lint:order one is enough
			if other.Volume == q.Volume {
				return nil
			}
		}
		for _, key := range s.staged {
			must.NotEqOp(s.node.t, q.Volume, key, must.Sprint("released while staged"))
		}
		return nil
	}, reply)
}

func (s *volumeShell) Call(c volume.Call, reply func(volume.Result)) {
	q, n := c.Request, s.node
	stage, target := volume.StagePath(volumesRoot, q.Volume, q.Usage), volume.TargetPath(volumesRoot, q.Alloc, q.Volume, q.Usage)
	name := [...]string{"stage", "publish", "unpublish", "unstage"}[c.Verb]
	takes := time.Duration(0)
	if c.Verb == volume.Unpublish {
		takes = s.unpublishTakes
	}
	var holders []volume.Holder
	s.call(name, q.Volume, takes, func() error {
		if s.plugin() == nil {
			return errors.New("connection refused")
		}
		if c.Verb == volume.Stage || c.Verb == volume.Publish {
			must.MapContainsKey(n.t, s.disk, q.Volume, must.Sprint(name, " without a record"))
		}
		claimed := s.claims[cluster.ClaimKey{Volume: q.Volume, Alloc: q.Alloc}]
		switch c.Verb {
		case volume.Stage:
			must.True(n.t, claimed, must.Sprint("staged without a claim"))
			s.staged[stage] = q.Volume
		case volume.Publish:
			must.True(n.t, claimed, must.Sprint("published without a claim"))
			must.MapContainsKey(n.t, s.staged, stage, must.Sprint("published before it was staged"))
			s.published[target] = q.Volume
		case volume.Unpublish:
			for _, t := range n.live("") {
				must.NotEqOp(n.t, q.Alloc, t.alloc, must.Sprint("unpublished while ", t.id, " lives"))
			}
			if h, busy := s.busy[target]; busy {
				holders = append(holders, h)
				return fmt.Errorf("%s: device or resource busy", target)
			}
			delete(s.published, target)
		case volume.Unstage:
			for path, key := range s.published {
				must.NotEqOp(n.t, q.Volume, key, must.Sprint("unstaged while published at ", path))
			}
			delete(s.staged, stage)
		}
		return nil
	}, func(err error) { reply(volume.Result{Err: err, Holders: holders}) })
}

// empty checks that no volume is left, neither on the node nor at the servers.
func (st *storage) empty() {
	st.node.t.Helper()
	must.MapEmpty(st.node.t, st.published)
	must.MapEmpty(st.node.t, st.staged)
	must.MapEmpty(st.node.t, st.claims)
	must.MapEmpty(st.node.t, st.disk)
}

// withVolumes makes the group of an allocation ask for volumes, and its tasks see them.
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

// pluginTask is a task that serves volumes.
func pluginTask(name string) *cluster.Task {
	return &cluster.Task{Name: name, KillTimeout: 5 * time.Second, StoragePlugin: true, CSIPlugin: &cluster.CSIPlugin{ID: "disks", Type: cluster.PluginMonolith}}
}

func busyTarget(alloc cluster.AllocID, id cluster.VolumeID) string {
	return volume.TargetPath(volumesRoot, alloc, cluster.VolumeKey{Namespace: cluster.DefaultNamespace, ID: id}, volume.Usage{VolumeCapability: manyWriters})
}

var _ volume.Shell = (*volumeShell)(nil)

// trouble makes one thing go wrong with the volumes, or right again.
func (st *storage) trouble(rng *rand.Rand, alloc cluster.AllocID) {
	chance := func(of int) bool { return rng.IntN(of) == 0 }
	switch rng.IntN(3) {
	case 0:
		target := busyTarget(alloc, "data")
		if _, busy := st.busy[target]; busy {
			delete(st.busy, target)
		} else {
			st.busy[target] = volume.Holder{PID: 1, Command: "init"}
		}
	case 1:
		st.unpublishTakes = time.Duration(rng.Int64N(int64(20 * time.Second)))
		name := []string{"claim", "stage", "publish", "unpublish", "unstage", "release"}[rng.IntN(6)]
		if st.failing[name] != nil {
			delete(st.failing, name)
		} else {
			st.failing[name] = volume.Errorf(volume.Class(rng.IntN(4)), "no")
		}
	case 2:
		if p := st.plugin(); p != nil && chance(3) {
			st.node.exit(p, 1, 0)
		} else if chance(2) {
			st.node.stop("p")
		}
	}
}
