package drainer

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// anyWorld draws a small world. Half of them are about one service group spread
// over draining nodes, where budgets matter; in the others anything may be wrong:
// allocations whose job, group or node is gone, in every status, marked by this
// drain, another one or nobody.
func anyWorld(t *rapid.T) (*world, time.Time) {
	w := &world{index: 10}
	now := epoch.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "now")) * time.Second)
	crowd := rapid.Bool().Draw(t, "one group")
	jobs := 1
	if !crowd {
		jobs = rapid.IntRange(1, 4).Draw(t, "jobs")
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
		w.nodes = append(w.nodes, anyNode(t, i))
	}
	for i := range jobs {
		w.jobs = append(w.jobs, anyJob(t, i, crowd))
	}
	few := crowd && oneIn(t, 4, "below budget") // of a group that wants more
	if few {
		w.jobs[0].TaskGroups[0].Count = 9
	}
	for i := range rapid.IntRange(0, 14).Draw(t, "allocs") {
		if few && i > 4 {
			break
		}
		if crowd {
			w.allocs = append(w.allocs, crowdAlloc(t, w, i))
		} else {
			w.allocs = append(w.allocs, anyAlloc(t, w, i))
		}
	}
	if few && oneIn(t, 2, "nothing else") {
		return w, now
	}
	if crowd && oneIn(t, 2, "canaries moved") {
		moveCanary(t, w)
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "evals") {
		w.evals = append(w.evals, anyEval(t, w, i))
	}
	if len(w.jobs) > 1 && oneIn(t, 10, "purged") {
		w.jobs = w.jobs[1:]
	}
	return w, now
}

func oneIn(t *rapid.T, n int, what string) bool { return rapid.IntRange(1, n).Draw(t, what) == n }

func oneOf[T any](t *rapid.T, what string, values ...T) T {
	return rapid.SampledFrom(values).Draw(t, what)
}

// pick draws one of some rows; what is drawn is shown as its number.
func pick[T any](t *rapid.T, what string, rows []*T) *T {
	return rows[rapid.IntRange(0, len(rows)-1).Draw(t, what)]
}

func seconds(t *rapid.T, from, to int, what string) time.Duration {
	return time.Duration(rapid.IntRange(from, to).Draw(t, what)) * time.Second
}

func anyNode(t *rapid.T, i int) *cluster.Node {
	n := &cluster.Node{ID: cluster.NodeID(fmt.Sprintf("n%d", i)), Name: fmt.Sprintf("node %d", i)}
	n.Status = oneOf(t, "node status", cluster.NodeReady, cluster.NodeReady, cluster.NodeReady, cluster.NodeReady,
		cluster.NodeInitializing, cluster.NodeDown, cluster.NodeDisconnected)
	if !oneIn(t, 3, "not draining") {
		n.Drain = anyDrain(t, n.ID)
	}
	if oneIn(t, 2, "status dated") {
		n.StatusChangedAt = epoch.Add(-time.Minute)
	}
	n.Canonicalize()
	return n
}

func anyDrain(t *rapid.T, n cluster.NodeID) *cluster.Drain {
	d := &cluster.Drain{ID: drainOf(n), NodeID: n, Revision: cluster.Revision(rapid.IntRange(1, 3).Draw(t, "revision"))}
	d.Strategy.StartedAt, d.UpdatedAt = epoch, epoch.Add(seconds(t, 0, 30, "updated"))
	d.Strategy.IgnoreSystemJobs = oneIn(t, 3, "ignore system")
	switch rapid.IntRange(0, 8).Draw(t, "deadline") {
	case 0:
		d.Strategy.Deadline = -1
	case 1, 2:
		d.Strategy.Deadline = seconds(t, 1, 400, "deadline seconds")
		d.Strategy.ForceDeadline = epoch.Add(d.Strategy.Deadline)
	}
	for _, class := range []cluster.MarkClass{cluster.MarkPaced, cluster.MarkDeadline, cluster.MarkForced} {
		if oneIn(t, 4, "marked before") {
			d.Marked[class] = 1
		}
	}
	return d
}

func drainOf(n cluster.NodeID) cluster.DrainID { return cluster.DrainID("d-" + string(n)) }

func anyJob(t *rapid.T, i int, crowd bool) *cluster.Job {
	// Two namespaces hold jobs of the same id.
	j := &cluster.Job{
		Namespace: []cluster.Namespace{"default", "other"}[i%2], ID: cluster.JobID(fmt.Sprintf("j%d", i/2)),
		CreateIndex: uint64(i + 1), Priority: 50 + i,
	}
	j.Type = cluster.JobService
	if !crowd {
		j.Type = oneOf(t, "type", cluster.JobService, cluster.JobService, cluster.JobService, cluster.JobBatch, cluster.JobSystem, cluster.JobSysBatch)
	}
	j.Stop = oneIn(t, 10, "stopped")
	plugin := !crowd && oneIn(t, 4, "plugin")
	for g := range rapid.IntRange(1, 2).Draw(t, "groups") {
		group := &cluster.TaskGroup{Name: fmt.Sprintf("g%d", g), Count: rapid.IntRange(0, 6).Draw(t, "count")}
		group.Tasks = []*cluster.Task{{Name: "t", KillTimeout: seconds(t, 0, 60, "kill"), StoragePlugin: plugin}}
		if oneIn(t, 30, "endless kill") {
			group.Tasks[0].KillTimeout = math.MaxInt64
		}
		group.EphemeralDisk.Migrate = rapid.Bool().Draw(t, "disk")
		if j.Type == cluster.JobService && !oneIn(t, 10, "no migrate block") {
			group.Migrate = &cluster.MigrateStrategy{
				MaxParallel:     oneOf(t, "max_parallel", 1, 2, 3, 6, 0),
				HealthyDeadline: oneOf(t, "healthy deadline", time.Minute, 0),
			}
		}
		j.TaskGroups = append(j.TaskGroups, group)
	}
	return j
}

// crowdAlloc draws an allocation of the only job, most often a healthy one.
func crowdAlloc(t *rapid.T, w *world, i int) *cluster.Allocation {
	a := newAlloc(t, w, w.jobs[0], i)
	a.TaskGroup = "g0"
	a.NodeID = pick(t, "node", w.nodes).ID
	if !oneIn(t, 3, "healthy") {
		a.DesiredStatus, a.ClientStatus = cluster.DesiredRun, cluster.ClientRunning
		a.DeploymentStatus = &cluster.DeploymentStatus{Healthy: new(true)}
		return a
	}
	anyStatus(t, w, a)
	return a
}

// moveCanary adds to the crowd a canary that a drain has marked, perhaps with the
// one that came in its place, and another that could leave if there were a slot.
func moveCanary(t *rapid.T, w *world) {
	canary := func(healthy *bool) *cluster.Allocation {
		a := newAlloc(t, w, w.jobs[0], len(w.allocs))
		a.TaskGroup, a.NodeID = "g0", pick(t, "node", w.nodes).ID
		a.DesiredStatus, a.ClientStatus = cluster.DesiredRun, cluster.ClientRunning
		a.DeploymentStatus = &cluster.DeploymentStatus{Canary: !oneIn(t, 4, "no canary"), Healthy: healthy}
		w.allocs = append(w.allocs, a)
		return a
	}
	old := canary(new(!oneIn(t, 3, "unhealthy")))
	old.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: drainOf(old.NodeID), MarkedAt: epoch,
		Class: oneOf(t, "class", cluster.MarkCanary, cluster.MarkCanary, cluster.MarkFree, cluster.MarkDeadline)}
	if !oneIn(t, 3, "runs on") {
		old.DesiredStatus, old.ClientStatus = cluster.DesiredStop, oneOf(t, "client", cluster.ClientComplete, cluster.ClientComplete, cluster.ClientRunning)
	}
	if oneIn(t, 2, "replaced") {
		next := canary(nil)
		next.PreviousAllocation, old.NextAllocation = old.ID, next.ID
		if oneIn(t, 2, "asked again") {
			next.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: drainOf(next.NodeID), MarkedAt: epoch,
				Class: oneOf(t, "class", cluster.MarkForced, cluster.MarkDeadline, cluster.MarkCanary)}
		}
		if oneIn(t, 4, "judged") {
			next.DeploymentStatus.Healthy = new(rapid.Bool().Draw(t, "health"))
		}
	}
	canary(new(rapid.Bool().Draw(t, "health")))
}

func anyAlloc(t *rapid.T, w *world, i int) *cluster.Allocation {
	a := newAlloc(t, w, pick(t, "job", w.jobs), i)
	anyStatus(t, w, a)
	return a
}

func newAlloc(t *rapid.T, w *world, j *cluster.Job, i int) *cluster.Allocation {
	a := &cluster.Allocation{
		ID: cluster.AllocID(fmt.Sprintf("a%02d", i)), Namespace: j.Namespace, JobID: j.ID, Job: j,
		TaskGroup:  oneOf(t, "group", "g0", "g0", "g0", "g1", "gone"),
		NodeID:     cluster.NodeID(fmt.Sprintf("n%d", rapid.IntRange(0, 4).Draw(t, "node"))),
		CreateTime: epoch.Add(-seconds(t, -200, 100, "age")),
	}
	a.ModifyTime = a.CreateTime
	if oneIn(t, 20, "damaged") {
		a.Job = nil
	}
	return a
}

func anyStatus(t *rapid.T, w *world, a *cluster.Allocation) {
	a.DesiredStatus = oneOf(t, "desired", cluster.DesiredRun, cluster.DesiredRun, cluster.DesiredRun, cluster.DesiredStop, cluster.DesiredEvict)
	a.ClientStatus = oneOf(t, "client", cluster.ClientRunning, cluster.ClientRunning, cluster.ClientRunning, cluster.ClientPending,
		cluster.ClientComplete, cluster.ClientFailed, cluster.ClientLost, cluster.ClientUnknown)
	switch rapid.IntRange(0, 6).Draw(t, "health") {
	case 0:
	case 1:
		a.DeploymentStatus = &cluster.DeploymentStatus{}
	case 2:
		a.DeploymentStatus = &cluster.DeploymentStatus{Healthy: new(false)}
	case 3:
		a.DeploymentStatus = &cluster.DeploymentStatus{Canary: true}
		if !oneIn(t, 3, "no canary verdict") {
			a.DeploymentStatus.Healthy = new(rapid.Bool().Draw(t, "canary health"))
		}
	default:
		a.DeploymentStatus = &cluster.DeploymentStatus{Healthy: new(true)}
	}
	if oneIn(t, 4, "marked") {
		a.DesiredTransition.Migrate = true
		if !oneIn(t, 4, "by hand") {
			a.DesiredTransition.Drain = drainOf(a.NodeID)
			a.DesiredTransition.Class = cluster.MarkClass(rapid.IntRange(1, int(cluster.MarkClassCount)-1).Draw(t, "class"))
			a.DesiredTransition.MarkedAt = epoch.Add(seconds(t, 0, 300, "marked at"))
			a.DesiredTransition.MigrateDisablePlacement = oneIn(t, 5, "no placement")
		}
	}
	if a.DesiredStatus != cluster.DesiredRun && !oneIn(t, 5, "undated stop") {
		a.StoppedAt = epoch.Add(seconds(t, 0, 300, "stopped at"))
	}
	if len(w.allocs) > 0 && oneIn(t, 2, "replaces") {
		previous := pick(t, "previous", w.allocs)
		if previous.NextAllocation == "" && previous.GroupKey() == a.GroupKey() {
			previous.NextAllocation, a.PreviousAllocation = a.ID, previous.ID
		}
	}
}

func anyEval(t *rapid.T, w *world, i int) *cluster.Evaluation {
	j := pick(t, "eval job", w.jobs)
	e := &cluster.Evaluation{
		ID: cluster.EvalID(fmt.Sprintf("e%d", i)), Namespace: j.Namespace, JobID: j.ID, CreateIndex: uint64(i),
		CreateTime: epoch.Add(seconds(t, -60, 60, "eval age")),
		Status:     oneOf(t, "eval status", cluster.EvalPending, cluster.EvalBlocked, cluster.EvalBlocked, cluster.EvalComplete, cluster.EvalFailed),
	}
	if e.Status == cluster.EvalBlocked {
		e.StatusDescription = cluster.BlockedEvalDescription
		e.Queued = oneOf(t, "queued", nil, map[string]int{"g0": 1}, map[string]int{"g0": 0, "g1": 2})
	}
	return e
}

func anyPolicy(t *rapid.T) Policy {
	return Policy{
		HealthGrace:          oneOf(t, "grace", 0, 30*time.Second),
		StopMargin:           oneOf(t, "margin", 0, 5*time.Second),
		BelowBudget:          oneOf(t, "below budget", Hold, Proceed),
		PluginsAfterDeadline: oneOf(t, "plugins", AfterWait, AfterStop),
		Completion:           Contract(rapid.IntRange(0, 3).Draw(t, "contract")),
	}
}

// manyWorlds reports whether properties are tried on so many worlds that everything is met.
func manyWorlds() bool {
	n, err := strconv.Atoi(flag.Lookup("rapid.checks").Value.String())
	return err == nil && n >= 1000
}

// A property that never meets a class or a reason says nothing of it.
func TestGenerator_MeetsEveryClassAndReason(t *testing.T) {
	t.Parallel()
	if !manyWorlds() {
		t.Skip("too few worlds to meet everything")
	}
	classes, reasons := map[cluster.MarkClass]int{}, map[Reason]int{}
	outcomes := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		w, now := anyWorld(rt)
		policy := anyPolicy(rt)
		m := newMoment(w, now, policy)
		marks := &Marks{At: now, Policy: policy}
		for _, key := range w.groups() {
			marks.Marks = append(marks.Marks, m.planGroup(key, nil).marks...)
		}
		for n := range w.DrainingNodes() {
			plan := m.planNode(n)
			marks.Marks = append(marks.Marks, plan.marks...)
			if report, ok := Explain(w, anySoft(rt, w, now), n.ID, now, policy); ok {
				for _, a := range report.Allocs {
					reasons[a.Reason]++
				}
			}
			if plan.end.done {
				outcomes[policy.Completion.String()]++
			}
		}
		accepted, _, _ := Recheck(w, withEvals(marks))
		for _, mark := range accepted {
			classes[mark.Class]++
		}
	})
	for class := cluster.MarkPaced; class < cluster.MarkClassCount; class++ {
		must.Positive(t, classes[class], must.Sprintf("no mark of class %s in %v", class, classes))
	}
	for reason := range ReasonCount {
		must.Positive(t, reasons[reason], must.Sprintf("no allocation with reason %s in %v", reason, reasons))
	}
	for contract := range Asked + 1 {
		must.Positive(t, outcomes[contract.String()], must.Sprintf("no drain ended under %s", contract))
	}
	t.Logf("classes %v, reasons %v, ends %v", classes, reasons, outcomes)
}

// groups are the groups that have an allocation in the world, in order.
func (w *world) groups() []cluster.GroupKey {
	seen := map[cluster.GroupKey]bool{}
	for _, a := range w.allocs {
		seen[a.GroupKey()] = true
	}
	return slices.SortedFunc(maps.Keys(seen), cluster.GroupKey.Compare)
}
