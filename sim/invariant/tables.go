package invariant

import (
	"cmp"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// tables holds the rows of one state, the very objects of the store, arranged so
// that a group or a node is counted without a search in the store. It uses none
// of the store's indexes: what these hide is found when everything is counted.
type tables struct {
	// index is the raft index of the state.
	index   uint64
	nodes   map[cluster.NodeID]*node
	jobs    map[cluster.JobKey]*job
	allocs  map[cluster.AllocID]*alloc
	evals   map[cluster.EvalID]*cluster.Evaluation
	records map[cluster.DrainID]*cluster.Drain
	// draining are the nodes that drain, by id.
	draining []*node
	// everywhere are the jobs that are to run on every node which can have them, by key.
	everywhere []*job
	// marked are the allocations that a drain has marked, those included whose
	// mark was withdrawn since.
	marked map[cluster.DrainID][]*alloc
	// snapshots counts the snapshots of the tables. Counts of one are stale in the next.
	snapshots uint64
}

// node is a node, or one that allocations name and that does not exist.
type node struct {
	id  cluster.NodeID
	row *cluster.Node // nil if it does not exist
	// live are its allocations that are not client-terminal, in no order.
	live []*alloc
	// turns caches the turns of one snapshot.
	turns turns
}

// job is a job, or one that allocations name and that does not exist.
type job struct {
	key    cluster.JobKey
	row    *cluster.Job // nil if it does not exist
	groups []*group
	// open are its evaluations that are pending or blocked, by creation and id.
	open []*cluster.Evaluation
}

// group is a task group with its allocations.
type group struct {
	key cluster.GroupKey
	job *job
	// members are its allocations that count: those that are not client-terminal,
	// and canaries that wait for their replacement. In no order.
	members []*alloc
	tally   tally
}

// alloc is an allocation.
type alloc struct {
	row   *cluster.Allocation
	node  *node
	group *group
	turn  opinion.Turn
	// atNode and atGroup are where it stands in live and members, or -1.
	atNode, atGroup int
}

// newTables is empty, with room for so many allocations.
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

// tablesOf reads a whole state.
func tablesOf(s *statestore.Snapshot) *tables {
	allocs := slices.Collect(s.Allocs())
	b := newTables(len(allocs))
	b.index = s.Index()
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

// rows is how many rows the state has.
func (b *tables) rows() int {
	return len(b.nodes) + len(b.jobs) + len(b.allocs) + len(b.evals) + len(b.records)
}

func keyOf(j *cluster.Job) cluster.JobKey { return cluster.JobKey{Namespace: j.Namespace, ID: j.ID} }

func groupOf(a *cluster.Allocation) cluster.GroupKey {
	return cluster.GroupKey{Job: cluster.JobKey{Namespace: a.Namespace, ID: a.JobID}, Name: a.TaskGroup}
}

// node returns the node of that id, which may not exist.
func (b *tables) node(id cluster.NodeID) *node {
	n := b.nodes[id]
	if n == nil {
		n = &node{id: id}
		b.nodes[id] = n
	}
	return n
}

// job returns the job of that key, which may not exist.
func (b *tables) job(key cluster.JobKey) *job {
	j := b.jobs[key]
	if j == nil {
		j = &job{key: key}
		b.jobs[key] = j
	}
	return j
}

// group returns the group of that key, which may not exist.
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

// onEveryNode reports whether the job is to run on every node which can have it. A nil
// job is not.
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
			a.leaveNode()
			a.leaveGroup()
			delete(b.allocs, id)
		}
		return
	}
	if a == nil {
		a = &alloc{atNode: -1, atGroup: -1, node: b.node(row.NodeID), group: b.group(groupOf(row)), turn: opinion.TurnOf(row)}
		b.allocs[id] = a
	} else if a.row.Job != row.Job {
		a.turn = opinion.TurnOf(row)
	}
	if drain := row.DesiredTransition.Drain; drain != "" && (a.row == nil || a.row.DesiredTransition.Drain != drain) {
		b.marked[drain] = append(b.marked[drain], a)
	}
	a.row = row
	a.settle()
}

// settle has the allocation listed where it counts, and nowhere else.
func (a *alloc) settle() {
	switch live := a.live(); {
	case live && a.atNode < 0:
		a.atNode = len(a.node.live)
		a.node.live = append(a.node.live, a)
	case !live:
		a.leaveNode()
	}
	switch counts := a.live() || a.leftWell() && a.row.NextAllocation == ""; {
	case counts && a.atGroup < 0:
		a.atGroup = len(a.group.members)
		a.group.members = append(a.group.members, a)
	case !counts:
		a.leaveGroup()
	}
}

func (a *alloc) leaveNode() {
	if a.atNode < 0 {
		return
	}
	last := len(a.node.live) - 1
	moved := a.node.live[last]
	a.node.live[a.atNode], moved.atNode = moved, a.atNode
	a.node.live, a.atNode = a.node.live[:last], -1
}

func (a *alloc) leaveGroup() {
	if a.atGroup < 0 {
		return
	}
	last := len(a.group.members) - 1
	moved := a.group.members[last]
	a.group.members[a.atGroup], moved.atGroup = moved, a.atGroup
	a.group.members, a.atGroup = a.group.members[:last], -1
}

func (a *alloc) id() cluster.AllocID { return a.row.ID }
func (a *alloc) live() bool          { return opinion.Live(a.row) }
func (a *alloc) leaving() bool       { return opinion.Asked(a.row) }
func (a *alloc) stopping() bool      { return opinion.Stopping(a.row) }
func (a *alloc) marked() bool        { return a.row.DesiredTransition.Migrate }
func (a *alloc) healthy() bool       { return opinion.Healthy(a.row, a.node.row) }
func (a *alloc) inTouch() bool       { return opinion.InTouch(a.row, a.node.row) }
func (a *alloc) service() bool       { return opinion.TypeOf(a.row) == cluster.JobService }

// leftWell reports whether the allocation is a canary that a drain marked while
// it was healthy, and that has ended.
func (a *alloc) leftWell() bool {
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
