package drainertest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// The names of the generated rows. Some are prefixes of others, for stores that search by prefix.
var (
	nodeIDs   = []cluster.NodeID{"n", "n1", "n10", "n2"}
	jobKeys   = []cluster.JobKey{{Namespace: "a", ID: "web"}, {Namespace: "a", ID: "web2"}, {Namespace: "ab", ID: "web"}}
	groups    = []string{"g", "g1", "g10"}
	allocIDs  = []cluster.AllocID{"a", "a0", "a00", "a1", "a10", "a2", "b", "b1", "c", "d"}
	evalIDs   = []cluster.EvalID{"e", "e1", "e10", "e2", "f"}
	jobTypes  = []cluster.JobType{cluster.JobService, cluster.JobBatch, cluster.JobSystem, cluster.JobSysBatch}
	statuses  = []cluster.ClientStatus{cluster.ClientPending, cluster.ClientRunning, cluster.ClientRunning, cluster.ClientUnknown, cluster.ClientComplete, cluster.ClientFailed, cluster.ClientLost}
	evalState = []cluster.EvalStatus{cluster.EvalPending, cluster.EvalBlocked, cluster.EvalComplete, cluster.EvalFailed, cluster.EvalCancelled}
)

// epoch is before all generated times.
func epoch() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

// generator makes random histories. Equal seeds make equal histories.
type generator struct {
	random *rand.Rand
	model  *model // the state after the rows
}

func newGenerator(seed uint64) *generator {
	return &generator{random: rand.New(rand.NewPCG(seed, 1)), model: &model{}}
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

func (g *generator) oneIn(n int) bool { return g.random.IntN(n) == 0 }

// rows makes the next commit, and applies it to the model.
func (g *generator) rows() Rows {
	next := g.model.next(g.model.index + 1 + g.random.Uint64N(3))
	var rows Rows
	for range 1 + g.random.IntN(3) {
		switch g.random.IntN(8) {
		case 0, 1:
			g.node(next, &rows)
		case 2:
			g.job(next, &rows)
		case 3:
			g.eval(next, &rows)
		default:
			g.alloc(next, &rows)
		}
	}
	g.model = next
	return rows
}

// touched reports whether a commit has already written the row. A commit writes each row once.
func touched[K comparable, T any](put []*T, key func(*T) K, deleted []K, id K) bool {
	return slices.Contains(deleted, id) || slices.ContainsFunc(put, func(row *T) bool { return key(row) == id })
}

func (g *generator) node(m *model, rows *Rows) {
	id := pick(g.random, nodeIDs)
	if touched(rows.Nodes, func(n *cluster.Node) cluster.NodeID { return n.ID }, rows.DeletedNodes, id) {
		return
	}
	if m.nodes[id] != nil && g.oneIn(4) {
		delete(m.nodes, id)
		rows.DeletedNodes = append(rows.DeletedNodes, id)
		return
	}
	n := &cluster.Node{
		ID: id, Name: fmt.Sprintf("%s-%d", id, g.random.IntN(3)), StatusChangedAt: g.time(),
		Status: pick(g.random, []cluster.NodeStatus{cluster.NodeReady, cluster.NodeReady, cluster.NodeDown, cluster.NodeDisconnected}),
	}
	// The limits and volumes are computed from other fields, so that the generator draws the same
	// worlds as in older releases.
	n.VolumeAllowance, n.HoldLimit = time.Duration(n.StatusChangedAt.Nanosecond()), 2*time.Duration(n.StatusChangedAt.Nanosecond())
	if n.StatusChangedAt.Nanosecond()/1000%2 == 0 {
		n.Unlisted = cluster.NewUnlistedAllocs([]cluster.AllocID{cluster.AllocID("unlisted-" + n.Name)})
	}
	if g.oneIn(2) {
		n.Drain = g.drain(id, cluster.Revision(m.index))
	}
	m.nodes[id] = n
	rows.Nodes = append(rows.Nodes, n)
}

// drain is a running drain.
func (g *generator) drain(id cluster.NodeID, r cluster.Revision) *cluster.Drain {
	d := &cluster.Drain{ID: drainOf(id), NodeID: id, Revision: r, UpdatedAt: g.time(), PurgedRunning: g.random.IntN(3), CreateIndex: uint64(r)}
	d.Strategy.StartedAt = g.time()
	d.Strategy.Deadline = pick(g.random, []time.Duration{-1, 0, time.Hour})
	d.Strategy.IgnoreSystemJobs = g.oneIn(2)
	d.Strategy.MaxSurge = d.Strategy.StartedAt.Nanosecond() / 1000 % 3 // from what is drawn, as in verdict
	if d.Strategy.Deadline > 0 {
		d.Strategy.ForceDeadline = g.time()
	}
	// The pause is computed from other fields, as the limits of nodes are.
	if nanos := d.UpdatedAt.Nanosecond(); d.Strategy.Deadline >= 0 && nanos/1000%3 == 0 {
		d.Paused = &cluster.DrainPause{At: d.UpdatedAt.Add(time.Duration(nanos)), By: fmt.Sprint("operator-", d.PurgedRunning)}
	}
	for class := cluster.MarkPaced; class < cluster.MarkClassCount; class++ {
		d.Marked[class] = g.random.IntN(3)
	}
	return d
}

func drainOf(id cluster.NodeID) cluster.DrainID { return "d" + cluster.DrainID(id) }

func (g *generator) job(m *model, rows *Rows) {
	key := pick(g.random, jobKeys)
	if touched(rows.Jobs, (*cluster.Job).Key, rows.DeletedJobs, key) {
		return
	}
	if m.jobs[key] != nil && g.oneIn(4) {
		delete(m.jobs, key)
		rows.DeletedJobs = append(rows.DeletedJobs, key)
		return
	}
	j := g.version(key)
	m.jobs[key] = j
	rows.Jobs = append(rows.Jobs, j)
}

// version is a job of any type, which may be a storage plugin.
func (g *generator) version(key cluster.JobKey) *cluster.Job {
	j := &cluster.Job{
		Namespace: key.Namespace, ID: key.ID, Type: pick(g.random, jobTypes), Priority: 1 + g.random.IntN(100), Stop: g.oneIn(4),
	}
	for _, name := range groups {
		j.TaskGroups = append(j.TaskGroups, g.group(name))
	}
	j.TaskGroups[0].Tasks[0].StoragePlugin = g.oneIn(4)
	return j
}

func (g *generator) group(name string) *cluster.TaskGroup {
	group := &cluster.TaskGroup{Name: name, Count: g.random.IntN(4), ShutdownDelay: g.duration()}
	group.EphemeralDisk.Migrate = g.oneIn(2)
	if group.Count%2 == 1 {
		group.Volumes = []cluster.VolumeRequest{volume(group)}
	}
	if group.Count > 1 { // from what is drawn, as in verdict
		group.Reschedule = &cluster.ReschedulePolicy{
			Attempts: group.Count, Interval: time.Hour, Delay: time.Minute, DelayFunction: cluster.DelayFibonacci, MaxDelay: time.Hour, Unlimited: group.Count > 2,
		}
	}
	if !g.oneIn(3) {
		group.Migrate = &cluster.MigrateStrategy{MaxParallel: g.random.IntN(3), HealthyDeadline: g.duration()}
		group.Migrate.MaxSurge = int(group.Migrate.HealthyDeadline/time.Millisecond) % 3
	}
	for range 1 + g.random.IntN(2) {
		task := &cluster.Task{KillTimeout: g.duration(), ShutdownDelay: g.duration(), Leader: g.oneIn(4)}
		if g.oneIn(3) {
			hooks := []cluster.Hook{cluster.HookPrestart, cluster.HookPoststart, cluster.HookPoststop}
			task.Lifecycle = &cluster.Lifecycle{Hook: pick(g.random, hooks), Sidecar: g.oneIn(2)}
		}
		group.Tasks = append(group.Tasks, task)
	}
	return group
}

// volume is a request of a volume. It is computed from other fields, as the limits of nodes are.
func volume(group *cluster.TaskGroup) cluster.VolumeRequest {
	drawn := int(group.ShutdownDelay / time.Millisecond)
	access := []cluster.AccessMode{cluster.SingleNodeReader, cluster.SingleNodeWriter, cluster.MultiNodeReader, cluster.MultiNodeSingleWriter, cluster.MultiNodeMultiWriter}
	return cluster.VolumeRequest{
		Name: "data", Source: "data", ReadOnly: drawn%2 == 0, PerAlloc: drawn/2%2 == 0,
		Capability: cluster.VolumeCapability{Access: access[drawn/4%len(access)]},
	}
}

// time is a time to the microsecond.
func (g *generator) time() time.Time {
	return epoch().Add(time.Duration(g.random.IntN(1e9)) * time.Microsecond)
}

func (g *generator) duration() time.Duration {
	return time.Duration(g.random.IntN(1e6)) * time.Millisecond
}

func (g *generator) alloc(m *model, rows *Rows) {
	id := pick(g.random, allocIDs)
	if touched(rows.Allocs, func(a *cluster.Allocation) cluster.AllocID { return a.ID }, rows.DeletedAllocs, id) {
		return
	}
	defer endStandbys(m, rows)
	if m.allocs[id] != nil && g.oneIn(5) {
		delete(m.allocs, id)
		rows.DeletedAllocs = append(rows.DeletedAllocs, id)
		return
	}
	a := g.newAlloc(m, id)
	was := m.allocs[id]
	if was != nil && !g.oneIn(4) {
		a = g.changed(was)
	}
	if a.CreateIndex = m.index; was != nil {
		a.CreateIndex = was.CreateIndex
	}
	a.ModifyTime = g.time()
	a.DataIn, a.DataOut = dataMoves(a)
	m.allocs[id] = a
	rows.Allocs = append(rows.Allocs, a)
	// As in dataMoves. A store with a rule for standbys ends one that has no original.
	drawn := a.ModifyTime.Nanosecond() / 1000
	if a.DesiredTransition.Surge, a.DesiredTransition.SurgeAt = "", (time.Time{}); drawn/80%4 == 0 {
		a.DesiredTransition.Surge, a.DesiredTransition.SurgeAt = drainOf(a.NodeID), a.ModifyTime
	}
	a.Standby = drawn/40%4 > 0
	a.Standby = a.Standby && cluster.Original(a, m.Alloc) != nil
}

// endStandbys ends the standby of allocations whose original has left, has ended or is gone.
func endStandbys(m *model, rows *Rows) {
	var active []*cluster.Allocation
	for _, id := range allocIDs {
		if a := m.allocs[id]; a != nil && a.Standby && cluster.Original(a, m.Alloc) == nil {
			active = append(active, a)
		}
	}
	for _, a := range active {
		if slices.Contains(rows.Allocs, a) {
			a.Standby = false
			continue
		}
		c := a.Copy()
		c.Standby = false
		m.allocs[c.ID] = c
		rows.Allocs = append(rows.Allocs, c)
	}
}

// dataMoves are moves of data in any state, or nil. They are computed from another field, so that the
// generator draws the same worlds as in older releases.
func dataMoves(a *cluster.Allocation) (in, out *cluster.DataMove) {
	drawn := a.ModifyTime.Nanosecond() / 1000
	move := func(one int, states ...cluster.DataState) *cluster.DataMove {
		if one >= len(states) {
			return nil
		}
		m := &cluster.DataMove{State: states[one], Bytes: int64(drawn)}
		if m.State.Ended() {
			m.EndedAt = a.ModifyTime
		}
		if m.State == cluster.DataCopied && drawn/20%2 == 0 {
			m.Why = "a part was left out"
		}
		return m
	}
	in = move(drawn%5, cluster.DataWaiting, cluster.DataCopying, cluster.DataCopied, cluster.DataGivenUp)
	return in, move(drawn/5%4, cluster.DataKept, cluster.DataCopied, cluster.DataGivenUp)
}

func (g *generator) newAlloc(m *model, id cluster.AllocID) *cluster.Allocation {
	key := pick(g.random, jobKeys)
	a := &cluster.Allocation{
		ID: id, Namespace: key.Namespace, JobID: key.ID, TaskGroup: pick(g.random, groups), Job: m.jobs[key],
		NodeID: pick(g.random, nodeIDs), DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending,
		CreateTime: g.time(),
	}
	if a.CreateTime.Nanosecond()/1000%2 == 0 {
		a.VolumeHolds = &cluster.VolumeHolds{More: 1, Volumes: []cluster.VolumeHold{{
			Namespace: key.Namespace, Volume: "data", Alloc: id, Path: "/mnt", Reason: "busy", Since: a.CreateTime,
		}}}
	}
	if g.oneIn(3) {
		a.PreviousAllocation = pick(g.random, allocIDs)
	}
	if a.Job == nil && !g.oneIn(8) { // rarely it has no job version
		a.Job = g.version(key)
	}
	if g.oneIn(3) {
		a.DeploymentStatus = &cluster.DeploymentStatus{Canary: true}
	} else if g.oneIn(2) {
		a.ClientStatus, a.DeploymentStatus = cluster.ClientRunning, g.verdict(false)
	}
	return a
}

// verdict is a verdict on an allocation's health, mostly a good one.
func (g *generator) verdict(canary bool) *cluster.DeploymentStatus {
	healthy := !g.oneIn(4)
	d := &cluster.DeploymentStatus{Healthy: &healthy, Canary: canary}
	// It is computed from other fields, so that the generator draws the same worlds as in older releases.
	if at := epoch().Add(time.Duration(g.model.index) * time.Second); !healthy && g.model.index%3 > 0 {
		d.UnhealthySince = at
	}
	return d
}

// changed is an allocation with some changed fields.
func (g *generator) changed(was *cluster.Allocation) *cluster.Allocation {
	a := was.Copy()
	switch g.random.IntN(5) {
	case 0:
		a.DesiredStatus = pick(g.random, []cluster.DesiredStatus{cluster.DesiredRun, cluster.DesiredStop, cluster.DesiredEvict})
		a.StoppedAt = time.Time{}
		if a.ServerTerminal() {
			a.StoppedAt = g.time()
		}
	case 1:
		a.DesiredTransition = cluster.DesiredTransition{ForceReschedule: a.CreateTime.Nanosecond()/1000%2 == 0}
	case 2:
		a.DesiredTransition = cluster.DesiredTransition{Migrate: true}
		if !g.oneIn(3) {
			a.DesiredTransition.Drain = drainOf(pick(g.random, nodeIDs))
			a.DesiredTransition.Class = cluster.MarkPaced
			a.DesiredTransition.MarkedAt = g.time()
			a.DesiredTransition.MigrateDisablePlacement = g.oneIn(3)
			if a.Canary() {
				a.DesiredTransition.Class = cluster.MarkCanary
				if g.oneIn(2) { // an ended marked canary is rare otherwise
					a.ClientStatus = cluster.ClientComplete
				}
			}
		}
	case 3:
		a.NextAllocation = pick(g.random, allocIDs)
	default:
		a.ClientStatus, a.ConfirmedAt, a.EndedAt = pick(g.random, statuses), time.Time{}, time.Time{}
		if a.ClientStatus == cluster.ClientComplete || a.ClientStatus == cluster.ClientFailed {
			a.EndedAt = a.CreateTime
		}
		if a.ClientStatus == cluster.ClientLost && a.CreateTime.Nanosecond()/1000%2 == 0 {
			a.ConfirmedAt = a.CreateTime
		}
		if g.oneIn(2) {
			a.DeploymentStatus = g.verdict(a.Canary())
		}
	}
	return a
}

func (g *generator) eval(m *model, rows *Rows) {
	id := pick(g.random, evalIDs)
	if touched(rows.Evals, func(e *cluster.Evaluation) cluster.EvalID { return e.ID }, rows.DeletedEvals, id) {
		return
	}
	if m.evals[id] != nil && g.oneIn(4) {
		delete(m.evals, id)
		rows.DeletedEvals = append(rows.DeletedEvals, id)
		return
	}
	key := pick(g.random, jobKeys)
	e := &cluster.Evaluation{
		ID: id, Namespace: key.Namespace, JobID: key.ID, Status: pick(g.random, evalState), CreateTime: g.time(), CreateIndex: m.index,
	}
	if e.Status == cluster.EvalBlocked {
		e.StatusDescription = pick(g.random, []string{"", "no node fits"})
		e.Queued = pick(g.random, []map[string]int{nil, {}, {"g": 2}, {"g1": 1, "g10": 3}})
	}
	if was := m.evals[id]; was != nil {
		e.Namespace, e.JobID, e.CreateIndex = was.Namespace, was.JobID, was.CreateIndex
	}
	m.evals[id] = e
	rows.Evals = append(rows.Evals, e)
}

// next is a copy of the model for another index.
func (m *model) next(index uint64) *model {
	c := &model{index: index, nodes: maps.Clone(m.nodes), jobs: maps.Clone(m.jobs), allocs: maps.Clone(m.allocs), evals: maps.Clone(m.evals), beside: m.beside}
	if c.nodes == nil {
		c.nodes, c.jobs = map[cluster.NodeID]*cluster.Node{}, map[cluster.JobKey]*cluster.Job{}
		c.allocs, c.evals = map[cluster.AllocID]*cluster.Allocation{}, map[cluster.EvalID]*cluster.Evaluation{}
	}
	return c
}
