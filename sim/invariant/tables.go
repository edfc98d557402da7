package invariant

import (
	"cmp"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// tables holds the row objects of one state by node, job and group. So the judge counts a node or
// a group without the store's indexes. Audits find the rows that a wrong index hides.
type tables struct {
	// index is the raft index of the state.
	index   uint64
	nodes   map[cluster.NodeID]*node
	jobs    map[cluster.JobKey]*job
	allocs  map[cluster.AllocID]*alloc
	evals   map[cluster.EvalID]*cluster.Evaluation
	records map[cluster.DrainID]*cluster.Drain
	// pauses are those of the requests so far.
	pauses opinion.Pauses
	// volumes are those of the state.
	volumes volumes
	// draining are the nodes that drain, by id.
	draining []*node
	// everywhere are the system and sysbatch jobs that are not stopped, by key.
	everywhere []*job
	// marked are the allocations that a drain has marked, including withdrawn marks.
	marked map[cluster.DrainID][]*alloc
	// snapshots counts the snapshots of the tables.
	snapshots uint64
}

// node is a node of the state, or a missing node that an allocation names.
type node struct {
	tables *tables // that it belongs to
	id     cluster.NodeID
	row    *cluster.Node // nil if it does not exist
	// live are its allocations that are not client-terminal, unsorted.
	live []*alloc
	// lost are its unconfirmed allocations, unsorted.
	lost []*alloc
	// ended are its other ended allocations that a record may count, unsorted: those whose data the client
	// keeps or gave up, and those that were lost and are confirmed.
	ended []*alloc
	// stages caches the counts of one snapshot.
	stages stageCounts
}

// job is a job of the state, or a missing job that an allocation names.
type job struct {
	key    cluster.JobKey
	row    *cluster.Job // nil if it does not exist
	groups []*group
	// open are its pending and blocked evaluations, by creation and id.
	open []*cluster.Evaluation
}

// group is a task group with its allocations.
type group struct {
	key cluster.GroupKey
	job *job
	// members are its allocations that are not client-terminal, and its ended canaries that
	// wait for their replacement, unsorted.
	members []*alloc
	tally   tally
}

// alloc is an allocation.
type alloc struct {
	row   *cluster.Allocation
	node  *node
	group *group
	stage opinion.Stage
	// atNode, atLost, atEnded and atGroup are its positions in live, lost, ended and members, or -1.
	atNode, atLost, atEnded, atGroup int
}

// newTables returns empty tables with space for that many allocations.
func newTables(allocs int) *tables {
	return &tables{
		nodes:   make(map[cluster.NodeID]*node),
		jobs:    make(map[cluster.JobKey]*job),
		allocs:  make(map[cluster.AllocID]*alloc, allocs),
		evals:   make(map[cluster.EvalID]*cluster.Evaluation),
		records: make(map[cluster.DrainID]*cluster.Drain),
		marked:  make(map[cluster.DrainID][]*alloc),
	}
}

// tablesOf returns the tables of a state.
func tablesOf(s *statestore.Snapshot) *tables {
	allocs := slices.Collect(s.Allocs())
	b := newTables(len(allocs))
	b.index, b.volumes, b.pauses = s.Index(), volumes{s}, pausesOf(s)
	for n := range s.Nodes() {
		b.putNode(n.ID, n)
	}
	for j := range s.Jobs() {
		b.putJob(keyOf(j), j)
	}
	for _, a := range allocs {
		b.putAlloc(a.ID, a)
	}
	for e := range s.Evals() {
		b.putEval(e.ID, e)
	}
	for d := range s.Drains() {
		b.records[d.ID] = d
	}
	return b
}

// rows counts the rows of the state.
func (b *tables) rows() int {
	return len(b.nodes) + len(b.jobs) + len(b.allocs) + len(b.evals) + len(b.records)
}

func keyOf(j *cluster.Job) cluster.JobKey { return cluster.JobKey{Namespace: j.Namespace, ID: j.ID} }

func groupOf(a *cluster.Allocation) cluster.GroupKey {
	return cluster.GroupKey{Job: cluster.JobKey{Namespace: a.Namespace, ID: a.JobID}, Name: a.TaskGroup}
}

// node returns the node with that id. It adds a node without a row if the tables have none.
func (b *tables) node(id cluster.NodeID) *node {
	n := b.nodes[id]
	if n == nil {
		n = &node{tables: b, id: id}
		b.nodes[id] = n
	}
	return n
}

// job returns the job with that key. It adds a job without a row if the tables have none.
func (b *tables) job(key cluster.JobKey) *job {
	j := b.jobs[key]
	if j == nil {
		j = &job{key: key}
		b.jobs[key] = j
	}
	return j
}

// group returns the group with that key. It adds an empty group if the tables have none.
func (b *tables) group(key cluster.GroupKey) *group {
	j := b.job(key.Job)
	for _, g := range j.groups {
		if g.key.Name == key.Name {
			return g
		}
	}
	g := &group{key: key, job: j}
	j.groups = append(j.groups, g)
	return g
}

// putNode writes a node; nil deletes it.
func (b *tables) putNode(id cluster.NodeID, row *cluster.Node) {
	n := b.node(id)
	was, is := n.drain() != nil, row != nil && row.Drain != nil
	n.row = row
	if was != is {
		b.draining = toggle(b.draining, n, func(a, b *node) int { return cmp.Compare(a.id, b.id) })
	}
}

// toggle removes an item from the sorted list, or inserts it if it is missing.
func toggle[T any](list []*T, item *T, compare func(a, b *T) int) []*T {
	at, in := slices.BinarySearchFunc(list, item, compare)
	if in {
		return slices.Delete(list, at, at+1)
	}
	return slices.Insert(list, at, item)
}

// drain is the node's running drain, or nil.
func (n *node) drain() *cluster.Drain {
	if n.row == nil {
		return nil
	}
	return n.row.Drain
}

// putJob writes a job; nil deletes it.
func (b *tables) putJob(key cluster.JobKey, row *cluster.Job) {
	j := b.job(key)
	was, is := onEveryNode(j.row), onEveryNode(row)
	j.row = row
	if was != is {
		b.everywhere = toggle(b.everywhere, j, func(a, b *job) int { return a.key.Compare(b.key) })
	}
}

// onEveryNode reports whether the job exists, is not stopped, and runs on every suitable node.
func onEveryNode(j *cluster.Job) bool {
	return j != nil && !j.Stop && (j.Type == "system" || j.Type == "sysbatch")
}

// putEval writes an evaluation; nil deletes it.
func (b *tables) putEval(id cluster.EvalID, row *cluster.Evaluation) {
	if old := b.evals[id]; old != nil && isOpen(old) {
		j := b.job(jobOf(old))
		j.open = slices.DeleteFunc(j.open, func(e *cluster.Evaluation) bool { return e.ID == id })
	}
	if row == nil {
		delete(b.evals, id)
		return
	}
	b.evals[id] = row
	if isOpen(row) {
		j := b.job(jobOf(row))
		at, _ := slices.BinarySearchFunc(j.open, row, compareEvals)
		j.open = slices.Insert(j.open, at, row)
	}
}

func isOpen(e *cluster.Evaluation) bool { return e.Status == "pending" || e.Status == "blocked" }

func jobOf(e *cluster.Evaluation) cluster.JobKey {
	return cluster.JobKey{Namespace: e.Namespace, ID: e.JobID}
}

func compareEvals(a, b *cluster.Evaluation) int {
	return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ID, b.ID))
}

// putAlloc writes an allocation; nil deletes it.
func (b *tables) putAlloc(id cluster.AllocID, row *cluster.Allocation) {
	a := b.allocs[id]
	if row == nil {
		if a != nil {
			a.list(false, false, false, false)
			delete(b.allocs, id)
		}
		return
	}
	if a == nil {
		a = &alloc{
			atNode: -1, atLost: -1, atEnded: -1, atGroup: -1,
			node: b.node(row.NodeID), group: b.group(groupOf(row)), stage: opinion.StageOf(row),
		}
		b.allocs[id] = a
	} else if a.row.Job != row.Job {
		a.stage = opinion.StageOf(row)
	}
	if drain := row.DesiredTransition.Drain; drain != "" && (a.row == nil || a.row.DesiredTransition.Drain != drain) {
		b.marked[drain] = append(b.marked[drain], a)
	}
	a.row = row
	a.list(a.live(), opinion.Unconfirmed(row), isEnded(row), a.live() || a.leftHealthy() && a.row.NextAllocation == "")
}

// list adds the allocation to the lists of its node and its group, or removes it.
func (a *alloc) list(onNode, lost, ended, inGroup bool) {
	a.node.live = a.place(a.node.live, onNode, func(a *alloc) *int { return &a.atNode })
	a.node.lost = a.place(a.node.lost, lost, func(a *alloc) *int { return &a.atLost })
	a.node.ended = a.place(a.node.ended, ended, func(a *alloc) *int { return &a.atEnded })
	a.group.members = a.place(a.group.members, inGroup, func(a *alloc) *int { return &a.atGroup })
}

// isEnded reports whether a row belongs to ended of its node.
func isEnded(row *cluster.Allocation) bool {
	switch row.ClientStatus {
	case "lost":
		return !opinion.Unconfirmed(row)
	case "complete", "failed":
		return row.DataOut != nil && row.DataOut.State != cluster.DataCopied
	}
	return false
}

// place returns the list with or without the allocation. position is the field with the position
// of an allocation in the list.
func (a *alloc) place(list []*alloc, listed bool, position func(*alloc) *int) []*alloc {
	switch at := *position(a); {
	case listed && at < 0:
		*position(a) = len(list)
		return append(list, a)
	case !listed && at >= 0:
		last := len(list) - 1
		list[at] = list[last]
		*position(list[at]), *position(a) = at, -1
		return list[:last]
	}
	return list
}

func (a *alloc) id() cluster.AllocID { return a.row.ID }
func (a *alloc) live() bool          { return opinion.Live(a.row) }
func (a *alloc) leaving() bool       { return opinion.Leaving(a.row) }
func (a *alloc) stopping() bool      { return opinion.Stopping(a.row) }
func (a *alloc) marked() bool        { return a.row.DesiredTransition.Migrate }
func (a *alloc) healthy() bool       { return opinion.Healthy(a.row, a.node.row) }
func (a *alloc) inTouch() bool       { return opinion.InTouch(a.row, a.node.row) }
func (a *alloc) service() bool       { return opinion.TypeOf(a.row) == cluster.JobService }

// leftHealthy reports whether the allocation is a canary that a drain marked while it was
// healthy, and that has ended.
func (a *alloc) leftHealthy() bool {
	healthy, _ := opinion.Verdict(a.row)
	return healthy && a.row.DesiredTransition.Class == cluster.MarkCanary && !a.live()
}

// putRecord writes the record of an ended drain; nil deletes it.
func (b *tables) putRecord(id cluster.DrainID, row *cluster.Drain) {
	if row == nil {
		delete(b.records, id)
		return
	}
	b.records[id] = row
}
