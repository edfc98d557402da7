package witness_test

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world is a state for tests. Edits replace rows and never write to them, so a shallow clone
// is a snapshot.
type world struct {
	nodes   map[cluster.NodeID]*cluster.Node
	jobs    map[cluster.JobKey]*cluster.Job
	allocs  map[cluster.AllocID]*cluster.Allocation
	records map[cluster.DrainID]*cluster.Drain
	evals   map[cluster.EvalID]*cluster.Evaluation
	index   uint64
	claims  []*cluster.VolumeClaim
	version cluster.Version
}

var _ witness.World = (*world)(nil)

func newWorld() *world {
	return &world{
		nodes:   make(map[cluster.NodeID]*cluster.Node),
		jobs:    make(map[cluster.JobKey]*cluster.Job),
		allocs:  make(map[cluster.AllocID]*cluster.Allocation),
		records: make(map[cluster.DrainID]*cluster.Drain),
		evals:   make(map[cluster.EvalID]*cluster.Evaluation),
		version: cluster.MaxVersion,
	}
}

func (w *world) clone() *world {
	return &world{maps.Clone(w.nodes), maps.Clone(w.jobs), maps.Clone(w.allocs), maps.Clone(w.records), maps.Clone(w.evals), w.index + 1, w.claims, w.version}
}

func (w *world) Node(id cluster.NodeID) *cluster.Node          { return w.nodes[id] }
func (w *world) Job(k cluster.JobKey) *cluster.Job             { return w.jobs[k] }
func (w *world) Alloc(id cluster.AllocID) *cluster.Allocation  { return w.allocs[id] }
func (w *world) DrainRecord(id cluster.DrainID) *cluster.Drain { return w.records[id] }
func (w *world) Nodes() iter.Seq[*cluster.Node]                { return maps.Values(w.nodes) }
func (w *world) Allocs() iter.Seq[*cluster.Allocation]         { return maps.Values(w.allocs) }
func (w *world) Drains() iter.Seq[*cluster.Drain]              { return maps.Values(w.records) }
func (w *world) Volume(cluster.VolumeKey) *cluster.Volume      { return nil }
func (w *world) ClaimsOnNode(cluster.NodeID) iter.Seq[*cluster.VolumeClaim] {
	return slices.Values(w.claims)
}
func (w *world) ClusterVersion() cluster.Version { return w.version }
func (w *world) sortedAllocs() []cluster.AllocID { return slices.Sorted(maps.Keys(w.allocs)) }
func (w *world) where(keep func(*cluster.Allocation) bool) iter.Seq[*cluster.Allocation] {
	return func(yield func(*cluster.Allocation) bool) {
		for _, id := range w.sortedAllocs() {
			if a := w.allocs[id]; keep(a) && !yield(a) {
				return
			}
		}
	}
}

func (w *world) AllocsByJob(k cluster.JobKey) iter.Seq[*cluster.Allocation] {
	return w.where(func(a *cluster.Allocation) bool { return a.JobKey() == k })
}

func (w *world) AllocsByNode(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return w.where(func(a *cluster.Allocation) bool { return a.NodeID == id })
}

func (w *world) EvalsByJob(k cluster.JobKey) iter.Seq[*cluster.Evaluation] {
	return func(yield func(*cluster.Evaluation) bool) {
		for _, id := range slices.Sorted(maps.Keys(w.evals)) {
			if e := w.evals[id]; e.JobKey() == k && !yield(e) {
				return
			}
		}
	}
}

// log applies entries to a world and shows them to a witness.
type log struct {
	now     *world
	index   uint64
	at      time.Time
	w       *witness.Witness
	options witness.Options
	entries []witness.Entry
	// source is the origin of the next entries.
	source witness.Source
	// unversioned hides the cluster version of the states of the next entries.
	unversioned bool
}

func newLog(o witness.Options) *log {
	return &log{now: newWorld(), at: epoch, w: witness.New(o), options: o}
}

// apply makes one entry of edits of single rows, and names the touched rows.
func (l *log) apply(edits ...edit) { l.plan(nil, edits...) }

// plan makes an entry with planned items.
func (l *log) plan(planned []witness.Planned, edits ...edit) {
	before := l.now
	l.index++
	l.now = before.clone()
	e := witness.Entry{Index: l.index, At: l.at, Before: before, After: l.now, Source: l.source, Planned: planned}
	for _, edit := range edits {
		edit(l.now, l.at, &e.Touched)
	}
	if l.unversioned {
		e.Before, e.After = struct{ witness.World }{before}, struct{ witness.World }{l.now}
	}
	l.w.Observe(e)
	l.entries = append(l.entries, e)
}

// edit writes one row and names it.
type edit func(w *world, now time.Time, touched *witness.Touched)

// silently returns an edit that does not name its row.
func silently(e edit) edit {
	return func(w *world, now time.Time, _ *witness.Touched) { e(w, now, new(witness.Touched)) }
}

func node(id cluster.NodeID, change func(*cluster.Node)) edit {
	return func(w *world, _ time.Time, touched *witness.Touched) {
		n := w.nodes[id].Copy()
		if n == nil {
			n = &cluster.Node{ID: id, Name: string(id), Status: cluster.NodeReady}
		}
		change(n)
		w.nodes[id] = n
		touched.Nodes = append(touched.Nodes, id)
	}
}

func noNode(id cluster.NodeID) edit {
	return func(w *world, _ time.Time, touched *witness.Touched) {
		delete(w.nodes, id)
		touched.Nodes = append(touched.Nodes, id)
	}
}

func ready(n *cluster.Node) {}

// drained starts a drain; its id is the node's, with a d before it.
func drained(id cluster.NodeID, spec cluster.DrainSpec) edit {
	return func(w *world, now time.Time, touched *witness.Touched) {
		node(id, func(n *cluster.Node) {
			n.Drain = &cluster.Drain{ID: drainOf(id), NodeID: id, NodeName: n.Name, UpdatedAt: now, Revision: cluster.Revision(w.index), CreateIndex: w.index}
			n.Drain.Strategy.DrainSpec = spec
			n.Drain.Strategy.StartedAt = now
			if spec.Deadline > 0 {
				n.Drain.Strategy.ForceDeadline = now.Add(spec.Deadline)
			}
		})(w, now, touched)
	}
}

// updated gives the drain of a node a new strategy.
func updated(id cluster.NodeID, change func(*cluster.Node)) edit {
	return func(w *world, now time.Time, touched *witness.Touched) {
		node(id, func(n *cluster.Node) { n.Drain.Revision, n.Drain.UpdatedAt = cluster.Revision(w.index), now })(w, now, touched)
		node(id, change)(w, now, touched)
	}
}

func drainOf(id cluster.NodeID) cluster.DrainID { return cluster.DrainID("d" + id) }

// stillStops are the allocations that the record of an ended drain counts, except the lost ones. They end
// with a report.
func (w *world) stillStops(record *cluster.Drain) (ids []cluster.AllocID) {
	if w.version < 8 {
		return nil
	}
	for a := range w.AllocsByNode(record.NodeID) {
		marked := a.DesiredTransition.Migrate && a.DesiredTransition.Drain == record.ID
		switch kind := a.Stage(); {
		case a.ClientStatus == "complete" || a.ClientStatus == "failed" || a.ClientStatus == "lost":
		case record.Strategy.IgnoreSystemJobs && kind == cluster.StageSystem:
		case record.Strategy.IgnoreSystemJobs && kind == cluster.StagePlugins && !marked:
		case record.Outcome == cluster.OutcomeCancelled && (!marked || a.DesiredStatus == "run"):
		default:
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// ended ends the node's drain with a record that counts what still stops.
func ended(id cluster.NodeID, outcome cluster.Outcome, stillStopping int) edit {
	return func(w *world, now time.Time, touched *witness.Touched) {
		node(id, func(n *cluster.Node) {
			record := n.Drain.Copy()
			record.Outcome, record.EndedAt, record.EndIndex, record.StillStopping = outcome, now, w.index, stillStopping
			if ids := w.stillStops(record); len(ids) > 0 {
				record.Unconfirmed = &cluster.UnconfirmedAllocs{Count: len(ids), Allocs: ids[:min(len(ids), 20)]}
			}
			w.records[record.ID] = record
			n.Drain = nil
		})(w, now, touched)
	}
}

func job(id cluster.JobID, kind cluster.JobType, count, maxParallel int) edit {
	return func(w *world, _ time.Time, touched *witness.Touched) {
		j := &cluster.Job{Namespace: "default", ID: id, Type: kind, TaskGroups: []*cluster.TaskGroup{{
			Name: "g", Count: count, Tasks: []*cluster.Task{{Name: "t", KillTimeout: 5 * time.Second}},
		}}}
		if kind == cluster.JobService {
			j.TaskGroups[0].Migrate = &cluster.MigrateStrategy{MaxParallel: maxParallel}
		}
		w.jobs[j.Key()] = j
		touched.Jobs = append(touched.Jobs, j.Key())
	}
}

func pluginJob(id cluster.JobID, kind cluster.JobType, count int) edit {
	return func(w *world, now time.Time, touched *witness.Touched) {
		job(id, kind, count, 1)(w, now, touched)
		w.jobs[key(id).Job].TaskGroups[0].Tasks[0].StoragePlugin = true
	}
}

// withVolume makes the group of a job request a volume.
func withVolume(id cluster.JobID) edit {
	return func(w *world, _ time.Time, _ *witness.Touched) {
		w.jobs[key(id).Job].TaskGroups[0].Volumes = []cluster.VolumeRequest{{Name: "data", Source: "data"}}
	}
}

func key(id cluster.JobID) cluster.GroupKey {
	return cluster.GroupKey{Job: cluster.JobKey{Namespace: "default", ID: id}, Name: "g"}
}

// alloc places a running, healthy allocation or changes the existing one.
func alloc(id cluster.AllocID, of cluster.JobID, on cluster.NodeID, change ...func(*cluster.Allocation)) edit {
	return func(w *world, now time.Time, touched *witness.Touched) {
		a := w.allocs[id].Copy()
		if a == nil {
			healthy := true
			a = &cluster.Allocation{
				ID: id, Namespace: "default", JobID: of, Job: w.jobs[key(of).Job], TaskGroup: "g", NodeID: on,
				DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning,
				DeploymentStatus: &cluster.DeploymentStatus{Healthy: &healthy}, CreateTime: now, CreateIndex: w.index,
			}
		}
		for _, c := range change {
			c(a)
		}
		w.allocs[id] = a
		touched.Allocs = append(touched.Allocs, id)
	}
}

// changed changes an existing allocation.
func changed(id cluster.AllocID, change ...func(*cluster.Allocation)) edit {
	return func(w *world, now time.Time, touched *witness.Touched) {
		alloc(id, w.allocs[id].JobID, w.allocs[id].NodeID, change...)(w, now, touched)
	}
}

// marked marks an allocation for the drain of its node.
func marked(id cluster.AllocID, class cluster.MarkClass) edit {
	return func(w *world, now time.Time, touched *witness.Touched) {
		changed(id, func(a *cluster.Allocation) {
			last := a.Job != nil && a.Job.Type == cluster.JobBatch && (class == cluster.MarkDeadline || class == cluster.MarkForced)
			a.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: drainOf(a.NodeID), Class: class, MarkedAt: now, MigrateDisablePlacement: last}
			if n := w.nodes[a.NodeID].Copy(); n.Draining() && n.Drain.ID == drainOf(a.NodeID) && class < cluster.MarkClassCount {
				n.Drain.Marked[class]++
				w.nodes[n.ID] = n
				touched.Nodes = append(touched.Nodes, n.ID)
			}
		})(w, now, touched)
	}
}

// replaced stops an allocation and places its replacement. The entry names only the
// replacement, which refers to its predecessor.
func replaced(id, by cluster.AllocID, on cluster.NodeID) edit {
	return func(w *world, now time.Time, touched *witness.Touched) {
		silently(changed(id, func(a *cluster.Allocation) { a.DesiredStatus, a.NextAllocation = cluster.DesiredStop, by }))(w, now, touched)
		alloc(by, w.allocs[id].JobID, on, pending, func(a *cluster.Allocation) { a.PreviousAllocation = id })(w, now, touched)
	}
}

// evaluated makes an evaluation of a job, in the entry of that index.
func evaluated(id cluster.JobID, index uint64) edit {
	return func(w *world, _ time.Time, _ *witness.Touched) {
		e := &cluster.Evaluation{ID: "e", Namespace: "default", JobID: id, Status: cluster.EvalPending, CreateIndex: index}
		w.evals[e.ID] = e
	}
}

func purged(id cluster.AllocID) edit {
	return func(w *world, _ time.Time, touched *witness.Touched) {
		delete(w.allocs, id)
		touched.Allocs = append(touched.Allocs, id)
	}
}

func pending(a *cluster.Allocation) {
	a.ClientStatus, a.DeploymentStatus = cluster.ClientPending, nil
}
func stopped(a *cluster.Allocation) { a.ClientStatus = cluster.ClientComplete }
func unknown(a *cluster.Allocation) { a.ClientStatus = cluster.ClientUnknown }
func running(a *cluster.Allocation) {
	healthy := true
	a.ClientStatus, a.DeploymentStatus = cluster.ClientRunning, &cluster.DeploymentStatus{Healthy: &healthy}
}
func unhealthySince(at time.Time) func(*cluster.Allocation) {
	return func(a *cluster.Allocation) {
		a.DeploymentStatus = &cluster.DeploymentStatus{Healthy: new(false), UnhealthySince: at}
	}
}
func unmarked(a *cluster.Allocation) { a.DesiredTransition = cluster.DesiredTransition{} }
