package statestore_test

import (
	"cmp"
	"iter"
	"slices"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// recount checks indexes and derived rows by reading all rows.
func recount(t must.T, s *statestore.Snapshot) {
	t.Helper()
	recountNodes(t, s)
	recountUsage(t, s)
	recountAllocs(t, s)
	recountGroups(t, s)
	recountEvals(t, s)
	recountRecords(t, s)
}

func same[T comparable](t must.T, what string, want, got iter.Seq[T]) {
	t.Helper()
	must.SliceEqOp(t, slices.Collect(want), slices.Collect(got), must.Sprint(what))
}

// where yields the rows that satisfy the condition.
func where[T any](all iter.Seq[T], test func(T) bool) iter.Seq[T] {
	return func(yield func(T) bool) {
		for v := range all {
			if test(v) && !yield(v) {
				return
			}
		}
	}
}

func sorted[T any](all iter.Seq[T], compare func(a, b T) int) iter.Seq[T] {
	return slices.Values(slices.SortedFunc(all, compare))
}

func recountNodes(t must.T, s *statestore.Snapshot) {
	t.Helper()
	same(t, "draining nodes", where(s.Nodes(), (*cluster.Node).Draining), s.DrainView().DrainingNodes())
	for n := range s.DrainView().DrainingNodes() {
		must.Eq(t, n.Drain.ID, statestore.NodeInDrain(s, n.Drain.ID).Drain.ID)
	}
	same(t, "nodes in order", sorted(s.Nodes(), func(a, b *cluster.Node) int { return cmp.Compare(a.ID, b.ID) }), s.Nodes())
}

func recountUsage(t must.T, s *statestore.Snapshot) {
	t.Helper()
	want := make(map[cluster.NodeID]statestore.Usage)
	for a := range s.Allocs() {
		if a.ClientTerminal() {
			continue
		}
		u := want[a.NodeID]
		u.NodeID = a.NodeID
		u.Live++
		if a.Stage() == cluster.StageConsumers {
			u.Consumers++
		}
		u.Resources = u.Resources.Plus(a.Resources)
		want[a.NodeID] = u
	}
	must.Eq(t, want, statestore.UsageRows(s))
	var nodes []cluster.NodeID
	for n, u := range s.WorkView().NodesInUse() {
		nodes = append(nodes, n.ID)
		must.Eq(t, want[n.ID].Usage, u, must.Sprint(n.ID))
	}
	must.Eq(t, nodeIDs(s.Nodes()), nodes)
}

func recountAllocs(t must.T, s *statestore.Snapshot) {
	t.Helper()
	nodes, groups, drains := make(map[cluster.NodeID]bool), make(map[cluster.GroupKey]bool), make(map[cluster.DrainID]bool)
	marked := 0
	for a := range s.Allocs() {
		nodes[a.NodeID], groups[a.GroupKey()] = true, true
		if a.MarkedBy(a.DesiredTransition.Drain) {
			drains[a.DesiredTransition.Drain] = true
			marked++
		}
		must.True(t, s.Alloc(a.ID) == a)
	}
	onNodes, ofJobs := 0, 0
	var occupied []cluster.NodeID
	for n := range nodes {
		for _, stage := range cluster.Stages() {
			for _, leaving := range []bool{false, true} {
				same(t, "allocations of a node and stage", where(s.Allocs(), func(a *cluster.Allocation) bool {
					return a.NodeID == n && !a.ClientTerminal() && a.Stage() == stage && a.Leaving() == leaving
				}), s.DrainView().NodeAllocs(n, stage, leaving))
			}
		}
		live := slices.Collect(s.WorkView().LiveAllocsByNode(n))
		must.Len(t, s.Usage(n).Live, live)
		if len(live) > 0 {
			occupied = append(occupied, n)
		}
		same(t, "unconfirmed allocations of a node", where(s.Allocs(), func(a *cluster.Allocation) bool {
			return a.NodeID == n && a.ClientStatus == cluster.ClientLost && a.ConfirmedAt.IsZero()
		}), s.DrainView().Unconfirmed(n))
		same(t, "ended allocations of a node", where(s.Allocs(), func(a *cluster.Allocation) bool {
			return a.NodeID == n && a.ClientTerminal()
		}), byID(slices.Values(slices.Collect(s.AllocsByNode(n))[len(live):])))
		onNodes += len(slices.Collect(s.AllocsByNode(n)))
	}
	slices.Sort(occupied)
	must.Eq(t, occupied, slices.Collect(s.WorkView().OccupiedNodes()))
	for g := range groups {
		same(t, "allocations of a group", where(s.Allocs(), func(a *cluster.Allocation) bool {
			waits := a.Canary() && a.MarkedBy(a.DesiredTransition.Drain) && a.NextAllocation == ""
			return a.GroupKey() == g && (!a.ClientTerminal() || waits)
		}), s.DrainView().GroupAllocs(g))
		same(t, "unconcluded allocations of a job", where(s.Allocs(), func(a *cluster.Allocation) bool {
			waits := a.Canary() && a.MarkedBy(a.DesiredTransition.Drain) && a.NextAllocation == ""
			return a.JobKey() == g.Job && (!a.Concluded() || waits)
		}), byID(s.WorkView().UnconcludedAllocs(g.Job)))
		ofJobs += len(slices.Collect(where(s.AllocsByJob(g.Job), func(a *cluster.Allocation) bool { return a.TaskGroup == g.Name })))
	}
	for d := range drains {
		same(t, "allocations of a drain", where(s.Allocs(), func(a *cluster.Allocation) bool { return a.MarkedBy(d) }), s.DrainView().DrainAllocs(d))
	}
	all := len(slices.Collect(s.Allocs()))
	must.Eq(t, all, onNodes)
	must.Eq(t, all, ofJobs)
	must.Eq(t, marked, statestore.MarkRows(s))
}

func recountGroups(t must.T, s *statestore.Snapshot) {
	t.Helper()
	groups, healthy := make(map[cluster.GroupKey]bool), make(map[cluster.GroupKey]int)
	changing := 0
	for a := range s.Allocs() {
		groups[a.GroupKey()] = true
		if a.Healthy(s.Node(a.NodeID)) {
			healthy[a.GroupKey()]++
		}
	}
	for g := range groups {
		must.Eq(t, healthy[g], s.DrainView().Healthy(g), must.Sprint("healthy of ", g))
		want := slices.AppendSeq(make([]*cluster.Allocation, 0), where(s.DrainView().GroupAllocs(g), func(a *cluster.Allocation) bool {
			return !a.Stable() || s.Node(a.NodeID).Draining()
		}))
		slices.SortStableFunc(want, func(a, b *cluster.Allocation) int { return cmp.Compare(a.Progress(), b.Progress()) })
		for i, a := range want {
			want[i] = a.Bare()
		}
		must.Eq(t, want, slices.AppendSeq(make([]*cluster.Allocation, 0), s.DrainView().ChangingAllocs(g)), must.Sprint("changing allocations"))
		changing += len(want)
	}
	must.Eq(t, healthy, statestore.HealthRows(s))
	must.Eq(t, changing, statestore.ChangingRows(s))
}

func recountEvals(t must.T, s *statestore.Snapshot) {
	t.Helper()
	created := func(a, b *cluster.Evaluation) int {
		return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ID, b.ID))
	}
	urgent := func(a, b *cluster.Evaluation) int { return cmp.Or(cmp.Compare(b.Priority, a.Priority), created(a, b)) }
	status := func(s cluster.EvalStatus) func(*cluster.Evaluation) bool {
		return func(e *cluster.Evaluation) bool { return e.Status == s }
	}
	same(t, "pending evaluations", sorted(where(s.Evals(), status(cluster.EvalPending)), urgent), s.WorkView().PendingEvals())
	same(t, "blocked evaluations", sorted(where(s.Evals(), status(cluster.EvalBlocked)), urgent), s.WorkView().BlockedEvals())
	jobs := make(map[cluster.JobKey]bool)
	for e := range s.Evals() {
		jobs[e.JobKey()] = true
	}
	for j := range jobs {
		ofJob := where(s.Evals(), func(e *cluster.Evaluation) bool { return e.JobKey() == j })
		same(t, "open evaluations", sorted(where(ofJob, (*cluster.Evaluation).Open), created), s.WorkView().OpenEvals(j))
		closed := sorted(where(ofJob, func(e *cluster.Evaluation) bool { return !e.Open() }), created)
		same(t, "evaluations", slices.Values(slices.Concat(slices.Collect(s.WorkView().OpenEvals(j)), slices.Collect(closed))), s.EvalsByJob(j))
	}
}

func recountRecords(t must.T, s *statestore.Snapshot) {
	t.Helper()
	old := func(a, b *cluster.Drain) int {
		return cmp.Or(cmp.Compare(a.EndIndex, b.EndIndex), cmp.Compare(a.ID, b.ID))
	}
	same(t, "records by age", sorted(s.Drains(), old), s.Drains())
	nodes, all := make(map[cluster.NodeID]bool), 0
	for d := range s.Drains() {
		nodes[d.NodeID] = true
		all++
		must.True(t, s.DrainRecord(d.ID) == d)
	}
	must.Eq(t, all, statestore.RecordCount(s))
	for n := range nodes {
		same(t, "records of a node", where(s.Drains(), func(d *cluster.Drain) bool { return d.NodeID == n }), s.DrainsByNode(n))
		all -= len(slices.Collect(s.DrainsByNode(n)))
	}
	must.Eq(t, 0, all)
}

// byID sorts allocations by id.
func byID(allocs iter.Seq[*cluster.Allocation]) iter.Seq[*cluster.Allocation] {
	return slices.Values(slices.SortedFunc(allocs, func(a, b *cluster.Allocation) int { return cmp.Compare(a.ID, b.ID) }))
}
