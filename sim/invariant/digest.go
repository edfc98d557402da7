package invariant

import (
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/witness/applied"
)

// digest is a running hash of values. It is the same on every machine.
type digest uint64

const (
	digestStart digest = 0x9E3779B97F4A7C15
	digestPrime uint64 = 0x9FB21C651E98DF25
)

func (d digest) number(n uint64) digest {
	hi, lo := bits.Mul64(uint64(d)^n, digestPrime)
	return digest(hi ^ lo ^ uint64(d)>>29)
}

func (d digest) int(n int) digest { return d.number(uint64(n)) }

func (d digest) bool(b bool) digest {
	if b {
		return d.number(1)
	}
	return d.number(2)
}

// text adds a text and its length. So "ab" and "c" differ from "a" and "bc".
func text[S ~string](d digest, s S) digest {
	d = d.int(len(s))
	for len(s) >= 8 {
		d = d.number(binary.LittleEndian.Uint64([]byte(s[:8])))
		s = s[8:]
	}
	last := uint64(0)
	for i := range len(s) {
		last = last<<8 | uint64(s[i])
	}
	return d.number(last)
}

// time adds an instant. The time zone does not matter.
func (d digest) time(t time.Time) digest {
	if t.IsZero() {
		return d.number(3)
	}
	return d.number(uint64(t.Unix())).int(t.Nanosecond())
}

func (d digest) table(m map[string]string) digest {
	if m == nil {
		return d.number(5)
	}
	d = d.int(len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		d = text(text(d, k), m[k])
	}
	return d
}

// Digest returns a hash of all rows that the entry may have written, as they are after it.
// Equal rows have equal digests on every machine.
func Digest(a shims.Applied) uint64 {
	var e entry
	e.ids.collect(a, applied.Entry(a).Touched)
	return uint64(e.digest(a))
}

func (e *entry) digest(a shims.Applied) digest {
	d := digestStart.number(a.Index).number(uint64(a.Type))
	for _, id := range e.ids.Nodes {
		d = d.number(uint64(digestNode(a.After.Node(id))))
	}
	for _, key := range e.ids.Jobs {
		d = d.number(uint64(digestJob(a.After.Job(key))))
	}
	for _, id := range e.ids.Allocs {
		d = d.number(uint64(digestAlloc(a.After.Alloc(id))))
	}
	for _, id := range e.ids.evals {
		d = d.number(uint64(digestEval(a.After.Eval(id))))
	}
	for _, id := range e.ids.records {
		d = d.number(uint64(digestDrain(a.After.DrainRecord(id))))
	}
	return d
}

func digestNode(n *cluster.Node) digest {
	if n == nil {
		return 0
	}
	d := text(text(text(digestStart, n.ID), n.SecretID), n.Name)
	d = text(text(text(d, n.Datacenter), n.NodeClass), n.NodePool)
	d = text(d, n.HTTPAddr).bool(n.TLSEnabled).table(n.Attributes).table(n.Meta).table(n.Links)
	d = d.resources(n.Resources).resources(n.Reserved).int(n.MaxAllocs).drivers(n)
	d = d.devices(n.Devices).storage(n.StoragePlugins).number(uint64(n.VolumeAllowance)).number(uint64(n.HoldLimit))
	d = d.number(uint64(digestDrain(n.Drain)))
	if m := n.LastDrain; m != nil {
		d = text(text(d.time(m.StartedAt).time(m.UpdatedAt), m.Status), m.AccessorID).table(m.Meta)
	}
	d = text(text(text(d, n.SchedulingEligibility), n.Status), n.StatusDescription)
	d = d.number(uint64(n.StatusUpdatedAt)).time(n.StatusChangedAt).int(len(n.Events))
	for _, e := range n.Events {
		d = text(text(d, e.Message), e.Subsystem).table(e.Details).time(e.Timestamp).number(e.CreateIndex)
	}
	return d.number(n.LastMissedHeartbeatIndex).number(n.CreateIndex).number(n.ModifyIndex)
}

func (d digest) resources(r cluster.Resources) digest {
	return d.number(uint64(r.CPU)).number(uint64(r.MemoryMB)).number(uint64(r.DiskMB)).number(uint64(r.GPU))
}

func digestDrain(r *cluster.Drain) digest {
	if r == nil {
		return 0
	}
	d := text(text(text(digestStart, r.ID), r.NodeID), r.NodeName).number(uint64(r.Revision))
	s := r.Strategy
	d = d.number(uint64(s.Deadline)).bool(s.IgnoreSystemJobs).time(s.ForceDeadline).time(s.StartedAt)
	d = d.time(r.UpdatedAt).int(len(r.Keys))
	for _, k := range r.Keys {
		d = text(d, k)
	}
	d = text(d.table(r.Meta), r.UpdatedBy)
	for _, n := range r.Marked {
		d = d.int(n)
	}
	d = text(d.int(r.PurgedRunning), r.Outcome).time(r.EndedAt).int(r.StillStopping)
	return d.holds(r.VolumesLeft).number(r.CreateIndex).number(r.EndIndex)
}

func digestJob(j *cluster.Job) digest {
	if j == nil {
		return 0
	}
	d := text(text(text(digestStart, j.Namespace), j.ID), j.Type)
	d = text(d.int(j.Priority).number(j.Version).bool(j.Stop), j.NodePool).int(len(j.Datacenters))
	for _, dc := range j.Datacenters {
		d = text(d, dc)
	}
	d = d.int(len(j.TaskGroups))
	for _, g := range j.TaskGroups {
		d = d.group(g)
	}
	return d.runs(j).number(j.CreateIndex).number(j.ModifyIndex).number(j.JobModifyIndex)
}

func (d digest) group(g *cluster.TaskGroup) digest {
	if g == nil {
		return d.number(7)
	}
	d = text(d, g.Name).int(g.Count)
	if m := g.Migrate; m != nil {
		d = text(d.int(m.MaxParallel), m.HealthCheck).number(uint64(m.MinHealthyTime)).number(uint64(m.HealthyDeadline))
	}
	d = d.int(len(g.NodeClasses))
	for _, c := range g.NodeClasses {
		d = text(d, c)
	}
	d = d.bool(g.EphemeralDisk.Sticky).bool(g.EphemeralDisk.Migrate).number(uint64(g.EphemeralDisk.SizeMB))
	d = d.number(uint64(g.Disconnect.LostAfter)).number(uint64(g.Disconnect.StopOnClientAfter)).number(uint64(g.ShutdownDelay)).int(len(g.Tasks))
	d = d.volumes(g.Volumes)
	for _, t := range g.Tasks {
		if t == nil {
			d = d.number(11)
			continue
		}
		d = d.requests(t.Devices).mounts(t)
		d = text(d, t.Name).resources(t.Resources).number(uint64(t.KillTimeout)).number(uint64(t.ShutdownDelay)).bool(t.StoragePlugin)
	}
	return d
}

// digestAlloc includes only the version of the allocation's job. The digest of the job's own
// entry has covered its content.
func digestAlloc(a *cluster.Allocation) digest {
	if a == nil {
		return 0
	}
	d := text(text(text(digestStart, a.ID), a.Namespace), a.EvalID)
	d = text(text(text(text(d, a.Name), a.NodeID), a.NodeName), a.JobID)
	if a.Job != nil {
		d = text(text(d, a.Job.Namespace), a.Job.ID).number(a.Job.Version).number(a.Job.CreateIndex).number(a.Job.JobModifyIndex)
	}
	d = text(d, a.TaskGroup).resources(a.Resources).assigned(a.Devices).holds(a.VolumeHolds)
	d = text(text(d, a.DesiredStatus), a.DesiredDescription)
	t := a.DesiredTransition
	d = d.bool(t.Migrate).bool(t.MigrateDisablePlacement).bool(t.Reschedule).bool(t.ForceReschedule).bool(t.NoShutdownDelay)
	d = text(d, t.Drain).number(uint64(t.Class)).time(t.MarkedAt).time(a.StoppedAt)
	d = text(text(d, a.ClientStatus), a.ClientDescription).tasks(a.TaskStates)
	d = text(text(text(d, a.PreviousAllocation), a.NextAllocation), a.DeploymentID)
	if s := a.DeploymentStatus; s != nil {
		d = d.time(s.Timestamp).bool(s.Canary).number(s.ModifyIndex)
		if s.Healthy != nil {
			d = d.bool(*s.Healthy)
		}
	}
	d = d.time(a.CreateTime).time(a.ModifyTime)
	return d.number(a.CreateIndex).number(a.ModifyIndex).number(a.AllocModifyIndex)
}

func digestEval(e *cluster.Evaluation) digest {
	if e == nil {
		return 0
	}
	d := text(text(text(digestStart, e.ID), e.Namespace), e.JobID)
	d = text(text(text(d, e.Type).int(e.Priority), e.TriggeredBy), e.NodeID)
	d = text(text(text(text(d, e.Status), e.StatusDescription), e.PreviousEval), e.BlockedEval)
	if e.Queued != nil {
		d = d.int(len(e.Queued))
		for _, k := range slices.Sorted(maps.Keys(e.Queued)) {
			d = text(d, k).int(e.Queued[k])
		}
	}
	return d.number(e.SnapshotIndex).time(e.CreateTime).time(e.ModifyTime).number(e.CreateIndex).number(e.ModifyIndex)
}
