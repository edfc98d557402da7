package onnode

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
	double "github.com/seed-f9cf0b39/nodedrain/plugin/storage/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// porter judges the volumes of a node. It is part of a [Judge].
type porter struct {
	*facts
	// calls is the number of calls to the storage that are judged already.
	calls int
	// lost are the volumes whose record was lost.
	lost map[string]bool
}

// volumesChanged judges N6 for new calls.
func (v *porter) volumesChanged(n *machine.Node) {
	s := n.Storage()
	if s == nil {
		return
	}
	calls := s.Calls(v.calls)
	v.calls += len(calls)
	for i := range calls {
		c := &calls[i]
		for _, wrong := range c.Wrong {
			if c.Step == double.Unstaging && v.lost[c.Request.Volume.String()] {
				continue // no record and no server may list the allocation at whose path it is published
			}
			v.find("N6 out of order", c.Request.Alloc, "%s of %s: %s", c.Step, c.Request.Volume, wrong)
		}
		switch c.Step {
		case double.Claiming, double.Staging, double.Publishing:
			v.isRecorded(n, c)
		case double.Unpublishing:
			v.tasksAreDead(n, c)
		case double.Unstaging:
			v.staysRecorded(n, c)
		}
	}
}

// isRecorded judges that a record on the disk contains how to undo a call.
func (v *porter) isRecorded(n *machine.Node, c *double.Call) {
	if v.lost[c.Request.Volume.String()] {
		return
	}
	r, recorded := n.Volumes().Record(c.Request.Volume), false
	if r != nil {
		ref := slices.IndexFunc(r.Refs, func(f volume.RefRecord) bool { return f.Alloc == c.Request.Alloc && f.Usage == c.Request.Usage })
		recorded = ref >= 0
		switch {
		case !recorded:
		case c.Step == double.Staging:
			recorded = slices.ContainsFunc(r.Stages, func(s volume.StageRecord) bool { return s.Usage == c.Request.Usage })
		case c.Step == double.Publishing:
			recorded = r.Refs[ref].Phase == volume.Publishing || r.Refs[ref].Phase == volume.Published
		}
	}
	if !recorded {
		v.find("N6 no record", c.Request.Alloc, "%s of %s, and no record on the disk states it", c.Step, c.Request.Volume)
	}
}

// staysRecorded judges that after an unstage no record states that the volume is staged.
func (v *porter) staysRecorded(n *machine.Node, c *double.Call) {
	r := n.Volumes().Record(c.Request.Volume)
	if r == nil || v.lost[c.Request.Volume.String()] || n.DiskFull() || !v.trouble.disk.IsZero() {
		return
	}
	if slices.ContainsFunc(r.Stages, func(s volume.StageRecord) bool { return s.Usage == c.Request.Usage && s.Phase == volume.Staged }) {
		v.find("N6 no record", "", "%s of %s, and the record on the disk states that it is staged", c.Step, c.Request.Volume)
	}
}

// tasksAreDead judges that no process of an allocation runs when its volume is unpublished.
func (v *porter) tasksAreDead(n *machine.Node, c *double.Call) {
	for p := range n.Machine().EachLiving() {
		if id, _ := machine.SplitCgroup(p.Cgroup); id == c.Request.Alloc && !v.abandoned(&p) {
			v.find("N6 taken from a task", id, "%s is unpublished, and process %d of %s lives", c.Request.Volume, p.PID, p.Task)
		}
	}
}

// requests returns the volumes of an allocation.
func (a *alloc) requests() (all []storage.Request) {
	if a.row == nil {
		return nil
	}
	for _, r := range a.group().Volumes {
		all = append(all, storage.Request{
			Alloc: a.id, Volume: cluster.VolumeKey{Namespace: a.row.Namespace, ID: r.VolumeOf(a.row.Name)},
			Usage: storage.Usage{VolumeCapability: r.Capability, ReadOnly: r.ReadOnly},
		})
	}
	return all
}

// published reports whether a volume is published for its allocation.
func published(s *double.Storage, q storage.Request) bool {
	return slices.ContainsFunc(s.Mounts(), func(m double.Mount) bool { return m.Alloc == q.Alloc && m.Volume == q.Volume && m.Usage == q.Usage })
}

// volumesAreThere judges N6 when a task's process starts.
func (v *porter) volumesAreThere(n *machine.Node, a *alloc, p *scripted.Process) {
	s := n.Storage()
	if s == nil {
		return
	}
	for _, q := range a.requests() {
		if !published(s, q) && !s.Lost(storage.TargetPath(s.Root(), q.Alloc, q.Volume, q.Usage)) {
			v.find("N6 starts without a volume", a.id, "%s starts, and %s is not published for it", p.Task, q.Volume)
		}
	}
}

// volumesAreOff judges N3 for the volumes of an allocation that is reported as terminal.
func (v *porter) volumesAreOff(n *machine.Node, a *alloc, r *cluster.AllocReport) {
	s := n.Storage()
	if s == nil {
		return
	}
	for _, m := range s.Mounts() {
		if !v.belongs(n, &m, a) {
			continue
		}
		end := v.lastEnd(n, a)
		switch {
		case !r.VolumeHolds.Holds(cluster.ClaimKey{Volume: m.Volume, Alloc: a.id}):
			v.find("N3 not the truth", a.id, "it is reported as %s, and %s is mounted at %s", r.ClientStatus, m.Volume, m.Path)
		case !end.IsZero() && v.now.Before(end.Add(n.Volumes().HoldLimit())):
			v.find("N3 not the truth", a.id, "it is reported as %s although %s is mounted at %s, and its last task ended at %s", r.ClientStatus, m.Volume, m.Path, end)
		}
	}
}

// belongs reports whether a mount belongs to an allocation. A stage belongs to an allocation if no
// other allocation has a claim, and no record on the disk, which may be old, names another one.
// After the loss of a record a stage may belong to any allocation, so it belongs to none.
func (v *porter) belongs(n *machine.Node, m *double.Mount, a *alloc) bool {
	if m.Alloc != "" {
		return m.Alloc == a.id
	}
	own, others := false, false
	for _, c := range n.Storage().Claims() {
		if c.Volume == m.Volume && c.Usage == m.Usage {
			own, others = own || c.Alloc == a.id, others || c.Alloc != a.id
		}
	}
	if r := n.Volumes().Record(m.Volume); r != nil {
		others = others || slices.ContainsFunc(r.Refs, func(f volume.RefRecord) bool { return f.Usage == m.Usage && f.Alloc != a.id })
	}
	return own && !others && !v.lost[m.Volume.String()]
}

// lastEnd is when the last process of an allocation ended, or zero.
func (v *porter) lastEnd(n *machine.Node, a *alloc) (end time.Time) {
	for _, t := range a.group().Tasks {
		if t == nil {
			continue
		}
		for _, start := range v.starts[string(a.id)+":"+t.Name] {
			if p, _ := n.Machine().Process(start); p.EndedAt.After(end) {
				end = p.EndedAt
			}
		}
	}
	return end
}

// served describes the volumes that need a storage plugin on the node. If a client could not write
// its records, the next client may have no record of a release, so such a release does not count, and
// neither does a volume whose record was lost.
func (v *porter) served(n *machine.Node, p *cluster.CSIPlugin) (all []string) {
	s := n.Storage()
	if p.Type.Node() {
		for _, m := range s.Mounts() {
			if m.Plugin == p.ID && !v.lost[m.Volume.String()] {
				all = append(all, m.Volume.String()+" at "+m.Path)
			}
		}
	}
	if p.Type.Controller() {
		for _, c := range s.Claims() {
			if c.Plugin == p.ID && !v.lost[c.Volume.String()] && !c.ReleasingAt.IsZero() && (v.trouble.disk.IsZero() || !c.ReleasingAt.Before(v.since)) {
				all = append(all, c.Volume.String()+", which is being released")
			}
		}
	}
	return all
}

// storageStops judges N7 when a client stops a storage plugin.
func (v *porter) storageStops(n *machine.Node, a *alloc, p *scripted.Process) {
	s := n.Storage()
	if s == nil || a.lost {
		return
	}
	config := n.Volumes().Plugin(p.Task)
	if config == nil || len(p.Signals) > 1 {
		return // only the first signal is judged
	}
	needs := v.served(n, config)
	if len(needs) == 0 || a.restarts(n, p) || v.holdIsOver(n, a) || v.hasSuccessor(n, a, config) {
		return
	}
	if v.driverAway(time.Minute) && slices.ContainsFunc(v.order, func(o *alloc) bool { return o != a && o.serves(config) }) {
		return // a successor existed when the client called the driver to stop the task
	}
	v.find("N7 stopped before its volumes", a.id, "%s of the storage plugin %q is stopped, and it serves %s", p.Task, config.ID, strings.Join(needs, "; "))
}

// restarts reports whether a record states that a task restarts, or has no handle of its start. The driver died before
// it answered, so the client removes that start and begins another one. A driver that hangs may stop the task after the
// loss of this record.
func (a *alloc) restarts(n *machine.Node, p *scripted.Process) bool {
	if a.lost && slices.Contains(a.toRestart, p.Task) {
		return true
	}
	r := n.Record(a.id)
	return r != nil && (r.RestartAll || slices.Contains(restartsOf(r), p.Task))
}

// restartsOf returns the starts of the tasks that restart.
func restartsOf(r *client.Record) (all []driver.TaskID) {
	for _, t := range r.Tasks {
		if t.Restarting || len(t.Handle) == 0 {
			all = append(all, t.ID)
		}
	}
	return all
}

// holdIsOver reports whether the hold limit has passed since the allocation of a storage plugin had
// to stop.
func (v *porter) holdIsOver(n *machine.Node, a *alloc) bool {
	limit := n.Volumes().HoldLimit()
	since := []time.Time{a.stopAt, a.awayAt, a.longest.endAt}
	if r := n.Record(a.id); r != nil && r.HoldBegan != 0 && (a.failed || !a.stops()) { // it ends by itself
		since = append(since, n.Machine().BootedAt().Add(r.HoldBegan))
	}
	return slices.ContainsFunc(since, func(at time.Time) bool { return !at.IsZero() && !v.now.Before(at.Add(limit)) })
}

// hasSuccessor reports whether, for the present client, another allocation with the same storage
// plugin may run.
func (v *porter) hasSuccessor(n *machine.Node, a *alloc, p *cluster.CSIPlugin) bool {
	return slices.ContainsFunc(v.order, func(o *alloc) bool {
		r := n.Record(o.id)
		stops := !o.lastStopAt.IsZero() && !o.lastStopAt.Before(v.since) || !o.awayAt.IsZero() || !o.longest.endAt.IsZero() || r != nil && r.Stopping
		return o != a && !o.ended && !o.failed && !o.received.IsZero() && !stops && o.serves(p)
	})
}

// serves reports whether a task of the allocation has the roles of the plugin.
func (a *alloc) serves(p *cluster.CSIPlugin) bool {
	return slices.ContainsFunc(a.group().Tasks, func(t *cluster.Task) bool {
		return t != nil && t.CSIPlugin != nil && t.CSIPlugin.ID == p.ID && (t.CSIPlugin.Type.Node() || !p.Type.Node()) && (t.CSIPlugin.Type.Controller() || !p.Type.Controller())
	})
}

// hold is how much longer than its stop time an allocation may need because of volumes.
func (a *alloc) hold(n *machine.Node) time.Duration {
	if s := n.Storage(); s != nil && slices.ContainsFunc(a.group().Tasks, func(t *cluster.Task) bool { return t != nil && t.CSIPlugin != nil }) {
		return n.Volumes().HoldLimit()
	}
	return 0
}

// mountWait is longer than a client needs to mount a volume, or to unmount and release it.
const mountWait = 5 * time.Minute

// settledVolumes judges N6 on a node that has had no trouble for some minutes. Volumes may wait for
// a plugin that does not run, and for processes that use them. A plugin that was requested to stop
// still unmounts volumes, but need not mount any.
func (v *porter) settledVolumes(n *machine.Node) {
	s := n.Storage()
	if s == nil {
		return
	}
	for _, c := range s.Claims() {
		q := storage.Request{Alloc: c.Alloc, Volume: c.Volume, Usage: c.Usage}
		switch a := v.alloc(c.Alloc); {
		case v.mustWait(n, &c):
		case v.leaves(n, a):
			v.find("N6 a claim is not released", a.id, "the servers have granted a claim on %s", c.Volume)
		case v.mustRun(n, a) && !published(s, q) && hasServed(n, v.now, c.Plugin, isUnsignalled):
			v.find("N6 a volume is not mounted", a.id, "the servers have granted a claim on %s", c.Volume)
		}
	}
	for _, a := range v.order {
		if r := n.Record(a.id); r != nil && !r.Ended && !a.stopAt.IsZero() && v.isOverdue(n, a) {
			v.find("N7 its end is not reported", a.id, "all its tasks have ended, and the hold limit of %s is over", n.Volumes().HoldLimit())
		}
	}
	for _, m := range s.Mounts() {
		of := slices.DeleteFunc(s.Claims(), func(c double.Claim) bool { return c.Volume != m.Volume || c.Usage != m.Usage })
		if m.Alloc != "" {
			of = slices.DeleteFunc(of, func(c double.Claim) bool { return c.Alloc != m.Alloc })
		}
		if len(of) == 0 && !v.lost[m.Volume.String()] {
			v.find("N6 a mount is left", m.Alloc, "%s is mounted at %s, and no allocation has a claim", m.Volume, m.Path)
		}
	}
}

// isOverdue reports whether an allocation that must stop has had no process for longer than the
// hold limit. A driver that lies about the end makes its client wait for the stop time.
func (v *porter) isOverdue(n *machine.Node, a *alloc) bool {
	end, stopped := v.lastEnd(n, a), a.stopAt
	if a.row != nil {
		stopped = stopped.Add(bounded(a.row.StopTime()))
	}
	for _, at := range []time.Time{stopped, v.since, v.trouble.boot, v.trouble.disk} {
		if at.After(end) {
			end = at
		}
	}
	lived := lives(n, func(p scripted.Process) bool { id, _ := machine.SplitCgroup(p.Cgroup); return id == a.id })
	return !lived && len(a.requests()) > 0 && v.now.Sub(end) > n.Volumes().HoldLimit()+time.Minute
}

// mustWait reports whether a volume waits for an event that the client cannot cause.
func (v *porter) mustWait(n *machine.Node, c *double.Claim) bool {
	s := n.Storage()
	runs := hasServed(n, v.now, c.Plugin, func(scripted.Process) bool { return true })
	busy := slices.ContainsFunc(s.Mounts(), func(m double.Mount) bool { return m.Volume == c.Volume && slices.Contains(s.Busy(), m.Path) })
	return !runs || busy || c.Kept || v.lost[c.Volume.String()]
}

// hasServed reports whether a process of a storage plugin that mounts volumes has run for some time, and
// matches.
func hasServed(n *machine.Node, now time.Time, id cluster.PluginID, matches func(scripted.Process) bool) bool {
	return lives(n, func(p scripted.Process) bool {
		config := n.Volumes().Plugin(p.Task)
		return config != nil && p.Kind == scripted.TaskProcess && config.ID == id && config.Type.Node() && now.Sub(p.StartedAt) > time.Minute && matches(p)
	})
}

// isUnsignalled reports whether a process was not requested to stop.
func isUnsignalled(p scripted.Process) bool { return len(p.Signals) == 0 }

// leaves reports whether for some minutes only volumes of an allocation have been left on the node.
func (v *porter) leaves(n *machine.Node, a *alloc) bool {
	if r := n.Record(a.id); r != nil && !r.Ended {
		return false
	}
	if lives(n, func(p scripted.Process) bool { return strings.HasPrefix(string(p.Task), string(a.id)+"/") }) {
		return false // a process in state D, whose record may be lost
	}
	end := v.lastEnd(n, a)
	return v.now.Sub(end) > mountWait && v.now.Sub(a.received) > mountWait
}

// mustRun reports whether the tasks of an allocation should have been running for some minutes, so
// that only volumes can be the reason why they do not.
func (v *porter) mustRun(n *machine.Node, a *alloc) bool {
	r := n.Record(a.id)
	if r == nil || r.Ended || a.received.IsZero() || v.now.Sub(a.received) <= mountWait {
		return false
	}
	return !a.stops() && !a.ended && !a.failed && !a.lost && a.row != nil && a.row.Devices == nil && n.Record(a.row.PreviousAllocation) == nil
}
