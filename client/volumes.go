package client

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// StoragePluginUp posts that a storage plugin of the node answers. The shell posts each new
// process.
func (c *Core) StoragePluginUp(id cluster.PluginID, p volume.Plugin) {
	c.inbox.post(func() {
		if c.volumes == nil {
			return
		}
		c.volumes.PluginUp(id, p)
		for _, a := range c.visiting.serving {
			for _, t := range a.tasks {
				if t.task.CSIPlugin != nil && t.task.CSIPlugin.ID == id && t.rec.Phase == PhaseRunning && t.rec.SignalAt != 0 {
					a.mounts.leaves(t) // it answers although it was requested to stop
				}
			}
		}
	})
}

// StoragePluginDown posts that a storage plugin of the node does not answer.
func (c *Core) StoragePluginDown(id cluster.PluginID) {
	c.inbox.post(func() {
		if c.volumes != nil {
			c.volumes.PluginDown(id)
		}
	})
}

// newVolumes returns the step machine of the node's volumes, or nil if the node mounts none.
func newVolumes(c *Core) (*volume.Volumes, error) {
	if c.options.Volumes == nil {
		return nil, nil
	}
	o := *c.options.Volumes
	o.Post, o.BootID, o.Logger = c.inbox.post, c.options.BootID, c.options.Logger
	o.MinRetry, o.MaxRetry = c.options.MinRetry, c.options.MaxRetry
	return volume.New(o)
}

// restoreVolumes unmounts the volumes of allocations that have ended or that the node does not
// have. It adopts the volumes of all other allocations, also if the record of a volume is lost.
// They are mounted again if a task runs or will start, and the end of the allocation unmounts them.
func (c *Core) restoreVolumes() {
	if c.volumes == nil {
		return
	}
	for _, a := range c.allocs {
		if !a.rec.Ended || a.rec.VolumesLeft {
			for _, id := range a.rec.Volumes {
				c.volumes.Identify(id)
			}
			c.volumes.Adopt(a.mounts.requests(), a.mounts.ran())
		}
	}
	for _, id := range c.volumes.Allocs() {
		if a := c.alloc(id); a == nil || a.rec.Ended {
			c.volumes.Unmount(id)
		}
	}
}

// adoptVolumes adopts the volumes of an allocation of which the client has no record. An earlier client may
// have mounted them, also for one that is pending for the servers: they may have received no report.
func (c *Core) adoptVolumes(alloc *cluster.Allocation) {
	if c.volumes != nil {
		c.volumes.Adopt(requestsOf(alloc), alloc.ClientStatus != cluster.ClientPending)
	}
}

// releaseOld releases the claims of allocations that have ended for the servers or are deleted, and of those
// that have ended here: the servers may have lost an earlier release. The servers free no claim on a node
// that they reach, because only its client can determine that nothing is mounted. So the client also
// releases claims of allocations that it has never received. It does not release a claim that is newer
// than the answer: its allocation may be in the next answer.
func (c *Core) releaseOld(w Changes, known map[cluster.AllocID]bool) {
	for _, claim := range w.Claims {
		a := c.alloc(claim.Alloc)
		live := known[claim.Alloc] && (a == nil || !a.rec.Ended)
		if live || claim.CreateIndex > w.Index || !claim.State.OnNode() {
			continue
		}
		c.releaseClaim(storage.Request{
			Alloc: claim.Alloc, Volume: claim.Volume, Usage: storage.Usage{VolumeCapability: claim.Capability, ReadOnly: !claim.Writes()},
		})
	}
}

// releaseLost releases the claims of an allocation that was lost before the client received it.
func (c *Core) releaseLost(alloc *cluster.Allocation) {
	for _, q := range requestsOf(alloc) {
		c.releaseClaim(q)
	}
}

// releaseClaim releases a claim when its volume is unmounted and no task of the allocation runs.
func (c *Core) releaseClaim(q storage.Request) {
	if c.volumes == nil {
		return
	}
	c.volumes.Owe(q)
	if a := c.alloc(q.Alloc); a == nil || a.rec.Ended {
		c.volumes.Unmount(q.Alloc)
	}
}

// mounts are the volumes of one allocation.
type mounts struct {
	alloc *allocRunner
	// reported are the volumes that the last report names.
	reported *cluster.VolumeHolds
}

// machine returns the step machine of the node's volumes, or nil.
func (m *mounts) machine() *volume.Volumes { return m.alloc.core.volumes }

// requests returns the requests of the allocation for volumes.
func (m *mounts) requests() []storage.Request { return requestsOf(m.alloc.rec.Alloc) }

func requestsOf(alloc *cluster.Allocation) (requests []storage.Request) {
	g := alloc.Job.Group(alloc.TaskGroup)
	if g == nil {
		return nil
	}
	for _, r := range g.Volumes {
		requests = append(requests, storage.Request{
			Alloc: alloc.ID, Volume: cluster.VolumeKey{Namespace: alloc.Namespace, ID: r.VolumeOf(alloc.Name)},
			Usage: storage.Usage{VolumeCapability: r.Capability, ReadOnly: r.ReadOnly}, Options: r.MountOptions,
		})
	}
	return requests
}

// ran reports whether tasks of the allocation have run or may have run, by the allocation's record.
func (m *mounts) ran() bool {
	rec := m.alloc.rec
	return rec.UnmountBegan != 0 || rec.Ended || m.alloc.order.anyStarted() || slices.ContainsFunc(rec.Tasks, func(t TaskRecord) bool { return t.ID != "" })
}

// ready reports whether the volumes of a task that will start are published. The first call of a start
// starts to mount them, and retries what was refused before.
func (m *mounts) ready(t *taskRunner) bool {
	if len(m.alloc.group.Volumes) == 0 {
		return true
	}
	if m.machine() == nil {
		t.rec.State.Failed = true
		t.die("Setup Failure", "The client of this node does not support volumes")
		return false
	}
	if m.machine().Mount(m.requests()) {
		m.alloc.visits.mark()
	}
	s := m.machine().Status(m.alloc.id())
	if s.Failed != nil && !t.start.mounting {
		m.machine().Retry(m.alloc.id())
		m.alloc.visits.mark()
		s = m.machine().Status(m.alloc.id())
	}
	t.start.mounting = s.Failed == nil
	switch {
	case s.Ready:
		if ids := m.machine().Identities(m.alloc.id()); !slices.Equal(m.alloc.rec.Volumes, ids) {
			m.alloc.rec.Volumes = ids // on the disk before the task runs
			m.alloc.saves.note()
		}
		return true
	case s.Failed != nil:
		t.event("Setup Failure", "failed to mount: "+s.Failed.Error())
		t.rec.End, t.rec.Exit = EndNotStarted, &driver.ExitResult{Unknown: true}
		t.finished()
	default:
		t.waits.set(cluster.WaitVolume, 0, s.Waits[0].String())
	}
	return false
}

// leaves states that the storage plugin of a task is requested to stop.
func (m *mounts) leaves(t *taskRunner) {
	if p := t.task.CSIPlugin; p != nil && m.machine() != nil && !m.succeeded(p) {
		m.machine().PluginLeaves(p.ID)
		m.alloc.visits.mark() // its volumes come first in the next pass
	}
}

// confirm states that a task of the allocation was observed running.
func (m *mounts) confirm() {
	if m.machine() != nil {
		m.machine().Confirm(m.alloc.id())
	}
}

// gone unmounts the volumes of the allocation, whose tasks are dead. It reports whether all are
// unmounted or the limit has passed.
func (m *mounts) gone() bool {
	a := m.alloc
	if m.machine() == nil {
		return true
	}
	if m.machine().Unmount(a.id()) {
		a.visits.mark()
	}
	if m.machine().Status(a.id()).Off {
		return true
	}
	if a.rec.UnmountBegan == 0 {
		a.rec.UnmountBegan = max(1, a.core.now.Boot) // zero means not started
		a.touch()
	}
	if !a.core.reached(later(a.rec.UnmountBegan, a.core.options.HoldLimit)) {
		return false
	}
	a.rec.VolumesLeft = true
	a.core.options.Logger.Error("an allocation is reported as ended while its volumes are still on the node; the client retries to unmount them",
		"alloc", a.id(), "volumes", words(m.machine().Status(a.id()).Waits))
	return true
}

// left reports the end of the unmount of volumes that an ended allocation has left on the node.
func (m *mounts) left() {
	if a := m.alloc; a.rec.VolumesLeft && (m.machine() == nil || m.machine().Status(a.id()).Off) {
		a.rec.VolumesLeft = false
		a.touch()
		a.report.noteUrgent()
	}
}

// plugins returns the storage plugins in the allocation that run or will run. A plugin that has not
// started yet counts, because another allocation may already have stopped its plugin in favor of
// it.
func (m *mounts) plugins() []*cluster.CSIPlugin {
	var plugins []*cluster.CSIPlugin
	for _, t := range m.alloc.tasks {
		if t.task.CSIPlugin != nil && t.rec.Phase != PhaseDead && (t.rec.Phase == PhaseRunning || !m.alloc.order.failed()) {
			plugins = append(plugins, t.task.CSIPlugin)
		}
	}
	return plugins
}

// serves reports whether a storage plugin is in the allocation.
func (m *mounts) serves() bool {
	return slices.ContainsFunc(m.alloc.tasks, func(t *taskRunner) bool { return t.task.CSIPlugin != nil })
}

// keeping returns the first volumes that need a storage plugin of the allocation, which must stop,
// and the number of all such volumes. There are none if another allocation of the node will serve
// them.
func (m *mounts) keeping(most int) (first []volume.Need, count int) {
	if m.machine() == nil {
		return nil, 0
	}
	for _, p := range m.plugins() {
		n := m.machine().CountServing(p.ID, p.Type)
		if n == 0 || m.succeeded(p) {
			continue
		}
		count += n
		for need := range m.machine().Serving(p.ID, p.Type) {
			if len(first) == most {
				break
			}
			first = append(first, need)
		}
	}
	return first, count
}

// kept reports how many volumes need a storage plugin of the allocation.
func (m *mounts) kept() int {
	_, count := m.keeping(0)
	return count
}

// succeeded reports whether another allocation of the node runs or will run the same plugin.
func (m *mounts) succeeded(p *cluster.CSIPlugin) bool {
	for _, other := range m.alloc.core.visiting.serving {
		if other == m.alloc || other.order.ends() || cutOff(other) {
			continue
		}
		for _, t := range other.tasks {
			if o := t.task.CSIPlugin; o != nil && t.rec.Phase != PhaseDead && o.ID == p.ID && (o.Type.Node() || !p.Type.Node()) && (o.Type.Controller() || !p.Type.Controller()) {
				return true
			}
		}
	}
	return false
}

// held reports whether the allocation must stop but does not stop yet, because volumes of the node
// need a storage plugin in it.
func (m *mounts) held() bool {
	a := m.alloc
	if len(m.plugins()) == 0 || !a.order.ends() {
		return false
	}
	if a.rec.HoldOver || m.kept() == 0 {
		return false
	}
	if a.rec.HoldBegan == 0 {
		a.rec.HoldBegan = max(1, a.core.now.Boot) // zero is not begun
		a.touch()
	}
	if !a.core.reached(m.holdEnds()) {
		return true
	}
	a.rec.HoldOver = true
	a.touch()
	a.core.options.Logger.Error("a storage plugin is stopped although volumes need it, because the hold limit has passed", "alloc", a.id(), "volumes", m.keptWords())
	for _, t := range a.tasks {
		if t.task.CSIPlugin != nil {
			t.event("Hold Over", "The storage plugin stops after its hold of "+a.core.options.HoldLimit.String()+" although volumes need it: "+m.keptWords())
		}
	}
	return false
}

func (m *mounts) holdEnds() time.Duration {
	return later(m.alloc.rec.HoldBegan, m.alloc.core.options.HoldLimit)
}

// holdNote sets for operators what a held task waits for.
func (m *mounts) holdNote(t *taskRunner) {
	t.waits.set(cluster.WaitVolume, m.holdEnds(), m.keptWords())
}

// waitText describes how many volumes a storage plugin waits for.
func (m *mounts) waitText() string {
	if n := m.kept(); n != 1 {
		return fmt.Sprintf("waiting for %d volumes", n)
	}
	return "waiting for 1 volume"
}

// holds returns the volumes that a report names, or nil if the allocation neither uses nor serves
// volumes.
func (m *mounts) holds() *cluster.VolumeHolds {
	a := m.alloc
	if m.machine() == nil || len(a.group.Volumes) == 0 && !m.serves() {
		return nil
	}
	h := &cluster.VolumeHolds{}
	add := func(w volume.Wait, since time.Duration) {
		h.Volumes = append(h.Volumes, cluster.VolumeHold{
			Namespace: w.Volume.Namespace, Volume: w.Volume.ID, Alloc: w.Alloc, Path: w.Path, Reason: w.Reason(), Since: a.core.now.wallAt(since),
		})
	}
	if a.rec.Ended || a.order.allDead() {
		for _, w := range m.machine().Status(a.id()).Waits {
			if w.Mounted {
				add(w, a.rec.UnmountBegan)
			}
		}
	} else if m.held() {
		needs, count := m.keeping(cluster.MaxVolumeHolds)
		h.More = count - len(needs)
		for _, n := range needs {
			add(n.Wait(), a.rec.HoldBegan)
		}
	}
	if bounded := h.Bounded(); bounded != nil {
		return bounded
	}
	return h
}

// note starts a report if the volumes that it names have changed.
func (m *mounts) note() {
	if now := m.holds(); !sameHolds(now, m.reported) {
		m.reported = now
		m.alloc.report.note()
	}
}

// sameHolds compares everything except the times, because these are computed from two clocks.
func sameHolds(a, b *cluster.VolumeHolds) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.More == b.More && slices.EqualFunc(a.Volumes, b.Volumes, func(x, y cluster.VolumeHold) bool {
		return x.Key() == y.Key() && x.Path == y.Path && x.Reason == y.Reason
	})
}

// words returns a text about what volumes wait for.
func words(waits []volume.Wait) string {
	return wordsOf(waits[:min(len(waits), maxWords)], len(waits))
}

// keptWords returns a text about what volumes that need a storage plugin of the allocation wait
// for.
func (m *mounts) keptWords() string {
	first, count := m.keeping(maxWords)
	var waits []volume.Wait
	for _, n := range first {
		waits = append(waits, n.Wait())
	}
	return wordsOf(waits, count)
}

// wordsOf state what the first of a number of volumes wait for.
func wordsOf(first []volume.Wait, count int) string {
	var texts []string
	for _, w := range first {
		texts = append(texts, w.String())
	}
	if count > len(first) {
		texts = append(texts, fmt.Sprintf("and %d more", count-len(first)))
	}
	return strings.Join(texts, "; ")
}

// maxWords is the largest number of volumes that a text names.
const maxWords = 3
