package claimed

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	double "github.com/seed-f9cf0b39/nodedrain/plugin/storage/scripted"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// The checks of S3, the guarantee of claims.
const (
	Unclaimed    invariant.Check = "S3 mount without a claim"  // a machine has a volume that its allocation does not claim
	TwoWriters   invariant.Check = "S3 two writers"            // two machines write to a volume for one writer
	Conflict     invariant.Check = "S3 claims in conflict"     // two claims of a volume exclude each other
	FreedEarly   invariant.Check = "S3 freed too early"        // the claim of a writer on an unreachable node
	Detached     invariant.Check = "S3 not attached"           // a volume is on a node to which no controller has attached it
	LeftUnnamed  invariant.Check = "S3 left without a name"    // an ended allocation has a volume that its report does not name
	DetachedUsed invariant.Check = "S3 detached in use"        // by the state a volume has left a node, but it is still mounted
	FreedInUse   invariant.Check = "S3 freed in use"           // a task of an unreachable node may write after the servers freed its claim
	CalledTwice  invariant.Check = "S3 two calls in flight"    // of one volume, by one leader
	CalledEarly  invariant.Check = "S3 detached too early"     // a controller is called to detach a volume that is mounted
	Overtaken    invariant.Check = "S3 overtaken call"         // a controller may still undo the call of another one
	FreedHere    invariant.Check = "S3 freed while attached"   // by the state a volume is detached, but it is attached
	LeftAttached invariant.Check = "S3 left attached"          // a volume is attached to a node that does not claim it
	Collected    invariant.Check = "S3 collected with a claim" // an allocation that the leader collected still claimed a volume
	Endless      invariant.Check = "S3 endless claim"          // of an allocation that does not exist, on a node that does not have the volume
)

// Checks returns all checks.
func Checks() []invariant.Check {
	return []invariant.Check{
		Unclaimed, TwoWriters, Conflict, FreedEarly, Detached, LeftUnnamed, DetachedUsed, FreedInUse,
		CalledTwice, CalledEarly, Overtaken, FreedHere, LeftAttached, Collected, Endless,
	}
}

// maxViolations is the largest number of violations that a judge keeps.
const maxViolations = 100

// margin is how long the servers wait after the time that a client needs to stop an allocation.
const margin = time.Minute

// Machine contains the mounts of a machine.
type Machine struct {
	Node   cluster.NodeID
	Mounts []double.Mount
	// Runs are the allocations with a task that has processes, except processes that cannot die.
	Runs map[cluster.AllocID]bool
}

// place is a volume on a node.
type place struct {
	volume cluster.VolumeKey
	node   cluster.NodeID
}

// Judge collects the violations of one run. Create it with [New]. A Judge is not safe for concurrent
// use. It never changes the rows that it reads.
type Judge struct {
	invariant.Findings
	// reported are the texts of the violations, which are reported once.
	reported map[string]bool
	// forced are volumes whose claims an operator has freed by force. freed are claims that the
	// servers have freed on unreachable nodes. The value is true if the client or its watchdog had
	// the time to stop the tasks: a leader whose clock is set forward frees a claim too early.
	forced map[cluster.VolumeKey]bool
	freed  map[cluster.ClaimKey]bool
	// gone is the time at which the servers marked a node as unreachable, by the clock of the
	// world.
	gone map[cluster.NodeID]time.Time
	// deleted is the time at which the row of a node was last deleted.
	deleted map[cluster.NodeID]time.Time
	// left are volumes that may still be on a node although the servers have freed claims there.
	left map[place]bool
}

// New returns a judge of a run that has not started.
func New() *Judge {
	return &Judge{
		reported: map[string]bool{}, forced: map[cluster.VolumeKey]bool{}, freed: map[cluster.ClaimKey]bool{},
		gone: map[cluster.NodeID]time.Time{}, deleted: map[cluster.NodeID]time.Time{}, left: map[place]bool{},
	}
}

func (j *Judge) report(now time.Time, c invariant.Check, node cluster.NodeID, alloc cluster.AllocID, format string, args ...any) {
	key := fmt.Sprint(c, node, alloc, fmt.Sprintf(format, args...))
	if j.reported[key] {
		return
	}
	j.reported[key] = true
	j.Add(maxViolations, c, invariant.Violation{At: now, Node: node, Alloc: alloc}, format, args...)
}

// Applied records an entry, and checks the claims that it frees. Call it once for each entry, in
// the order of the log.
func (j *Judge) Applied(now time.Time, a shims.Applied) {
	switch m := a.Message.(type) {
	case *shims.VolumeDetach:
		j.force(m.Volume, m.Force)
	case *shims.VolumeDeregister:
		j.force(m.Volume, m.Force)
	case *shims.NodeDeregister:
		for _, id := range m.Nodes {
			j.deleted[id] = m.At
			j.note(now, id, true)
		}
	case *shims.NodeRegister:
		j.status(now, a, m.Node.ID)
	case *shims.NodeUpdateStatus:
		j.status(now, a, m.Node)
	case *shims.ClaimUpdate:
		for _, c := range m.Changes {
			j.frees(now, a, c, m.At)
		}
	case *shims.Collect:
		for c := range a.After.WorkView().Claims() {
			if a.After.Alloc(c.Alloc) == nil && a.Before.Alloc(c.Alloc) != nil {
				j.report(now, Collected, c.Node, c.Alloc, "%s is %s", c.Volume, c.State)
			}
		}
	}
}

// Still checks that no claim stays for ever. The caller calls it when the clients have had the time
// to release what they do not have, and nothing more happens. A claim of a purged allocation may
// stay while its node has the volume or is unreachable: an operator frees it by force.
func (j *Judge) Still(now time.Time, state *statestore.Snapshot, machines []Machine) {
	for c := range state.WorkView().Claims() {
		n := state.Node(c.Node)
		if state.Alloc(c.Alloc) != nil || n == nil || !opinion.Reachable(n) || !c.State.OnNode() {
			continue
		}
		has := slices.ContainsFunc(machines, func(m Machine) bool {
			return m.Node == c.Node && slices.ContainsFunc(m.Mounts, func(at double.Mount) bool { return at.Volume == c.Volume })
		})
		if !has {
			j.report(now, Endless, c.Node, c.Alloc, "%s is %s", c.Volume, c.State)
		}
	}
}

// Untrue records reports that a scenario made instead of a client, so the allocations ended in the
// state only. Their volumes count as freed by force.
func (j *Judge) Untrue(before *statestore.Snapshot, reports []cluster.AllocReport) {
	for _, r := range reports {
		for c := range before.WorkView().ClaimsOfAlloc(r.Alloc) {
			j.force(c.Volume, true)
		}
	}
}

func (j *Judge) force(k cluster.VolumeKey, force bool) {
	if force {
		j.forced[k] = true
	}
}

// status notes a change of the status of a node.
func (j *Judge) status(now time.Time, a shims.Applied, id cluster.NodeID) {
	before, after := a.Before.Node(id), a.After.Node(id)
	if after == nil || before != nil && before.Status == after.Status && before.StatusChangedAt.Equal(after.StatusChangedAt) {
		return
	}
	j.note(now, id, after.Status == cluster.NodeDown || after.Status == cluster.NodeDisconnected)
}

func (j *Judge) note(now time.Time, id cluster.NodeID, gone bool) {
	_, before := j.gone[id]
	switch {
	case !gone:
		delete(j.gone, id)
	case !before: // a disconnected node may become down
		j.gone[id] = now
	}
}

// frees checks a change that frees a claim on an unreachable node.
func (j *Judge) frees(now time.Time, a shims.Applied, c cluster.ClaimChange, at time.Time) {
	before, after := a.Before.WorkView().Claim(c.Claim), a.After.WorkView().Claim(c.Claim)
	if c.Cause != cluster.CauseUnreachable || before == nil || !before.State.OnNode() || after != nil && after.State.OnNode() {
		return
	}
	j.freed[c.Claim], j.left[place{c.Claim.Volume, c.Node}] = false, true
	if access := before.Capability.Access; before.Mode != cluster.ClaimWrite || access != cluster.SingleNodeWriter && access != cluster.MultiNodeSingleWriter {
		return
	}
	n, alloc := a.Before.Node(c.Node), a.Before.Alloc(c.Claim.Alloc)
	since := j.deleted[c.Node]
	switch {
	case alloc == nil || alloc.Job.Group(alloc.TaskGroup) == nil:
		j.report(now, FreedEarly, c.Node, c.Claim.Alloc, "%s: no row states when its client has stopped it", c.Claim.Volume)
		return
	case n == nil:
	case n.Status != cluster.NodeDown && n.Status != cluster.NodeDisconnected:
		j.report(now, FreedEarly, c.Node, c.Claim.Alloc, "%s: the node is %s", c.Claim.Volume, n.Status)
		return
	default:
		since = cmp.Or(n.AwaySince, n.StatusChangedAt)
	}
	g := alloc.Job.Group(alloc.TaskGroup)
	needs := g.ShutdownDelay + margin + g.Disconnect.StopOnClientAfter
	for _, t := range g.Tasks {
		if t.Main() {
			needs += t.ShutdownDelay + t.KillTimeout
		}
	}
	gone, isGone := j.gone[c.Node]
	j.freed[c.Claim] = isGone && now.Sub(gone) >= needs
	if passed := at.Sub(since); g.Disconnect.StopOnClientAfter <= 0 || needs > 0 && passed < needs {
		j.report(now, FreedEarly, c.Node, c.Claim.Alloc, "%s: %s after the node was given up, and its client needs %s", c.Claim.Volume, passed, needs)
	}
}

// Compare compares the mount tables and the attachments with the state, at a quiet point.
func (j *Judge) Compare(now time.Time, state *statestore.Snapshot, machines []Machine, attachments []world.Attachment) {
	j.leftAttached(now, state, attachments)
	j.conflicts(now, state)
	writers := map[cluster.VolumeKey]cluster.NodeID{}
	for _, m := range machines {
		for _, mount := range m.Mounts {
			if j.forced[mount.Volume] {
				continue
			}
			if mount.Alloc != "" {
				j.published(now, state, m, mount, writers)
			}
			if !j.left[place{mount.Volume, m.Node}] && needsController(state, mount, m.Node) && !attached(attachments, mount.Volume, m.Node) {
				j.report(now, Detached, m.Node, mount.Alloc, "%s is at %s", mount.Volume, mount.Path)
			}
		}
	}
}

// needsController reports whether all claims to which the mount may belong need a controller. A
// claim that was created while the plugin had no controller does not need one.
func needsController(state *statestore.Snapshot, mount double.Mount, node cluster.NodeID) bool {
	found := false
	for c := range state.ClaimsOnNode(node) {
		if c.Volume == mount.Volume && c.State.OnNode() && (mount.Alloc == "" || c.Alloc == mount.Alloc) {
			if !c.Controller {
				return false
			}
			found = true
		}
	}
	return found
}

// published checks a volume that is published for an allocation.
func (j *Judge) published(now time.Time, state *statestore.Snapshot, m Machine, mount double.Mount, writers map[cluster.VolumeKey]cluster.NodeID) {
	node, key := m.Node, cluster.ClaimKey{Volume: mount.Volume, Alloc: mount.Alloc}
	writes := !mount.Usage.ReadOnly && (mount.Usage.Access == cluster.SingleNodeWriter || mount.Usage.Access == cluster.MultiNodeSingleWriter)
	if inTime, freed := j.freed[key]; freed {
		if inTime && writes && m.Runs[mount.Alloc] {
			j.report(now, FreedInUse, node, mount.Alloc, "%s is at %s, its claim was freed, and a task runs", mount.Volume, mount.Path)
		}
		return
	}
	switch c := state.WorkView().Claim(key); {
	case c == nil:
		j.report(now, Unclaimed, node, mount.Alloc, "%s is at %s", mount.Volume, mount.Path)
	case !c.State.OnNode():
		j.report(now, DetachedUsed, node, mount.Alloc, "%s is at %s, and its claim is %s", mount.Volume, mount.Path, c.State)
	}
	if writes {
		if other, is := writers[mount.Volume]; is && other != node {
			j.report(now, TwoWriters, node, mount.Alloc, "%s is published on %s too", mount.Volume, other)
		}
		writers[mount.Volume] = node
	}
	a := state.Alloc(mount.Alloc)
	if a == nil || a.ClientStatus != cluster.ClientComplete && a.ClientStatus != cluster.ClientFailed {
		return
	}
	named := a.VolumeHolds != nil && (a.VolumeHolds.More > 0 || slices.ContainsFunc(a.VolumeHolds.Volumes, func(h cluster.VolumeHold) bool {
		return h.Namespace == mount.Volume.Namespace && h.Volume == mount.Volume.ID && h.Alloc == mount.Alloc
	}))
	if !named {
		j.report(now, LeftUnnamed, node, mount.Alloc, "%s is at %s, and the allocation is %s", mount.Volume, mount.Path, a.ClientStatus)
	}
}

// conflicts checks that no two claims of a volume exclude each other.
func (j *Judge) conflicts(now time.Time, state *statestore.Snapshot) {
	users := map[cluster.VolumeKey]*cluster.VolumeClaim{}
	writers := map[cluster.VolumeKey]*cluster.VolumeClaim{}
	for c := range state.WorkView().Claims() {
		access := c.Capability.Access
		single := access == cluster.SingleNodeReader || access == cluster.SingleNodeWriter
		if o := users[c.Volume]; o != nil && (single || o.Capability != c.Capability) {
			j.report(now, Conflict, c.Node, c.Alloc, "%s: %s on %s claims it too", c.Volume, o.Alloc, o.Node)
		}
		users[c.Volume] = c
		if c.Mode != cluster.ClaimWrite || access != cluster.MultiNodeSingleWriter {
			continue
		}
		if o := writers[c.Volume]; o != nil {
			j.report(now, Conflict, c.Node, c.Alloc, "%s: %s on %s writes to it too", c.Volume, o.Alloc, o.Node)
		}
		writers[c.Volume] = c
	}
}
