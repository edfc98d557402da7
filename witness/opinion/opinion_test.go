//race:skip one goroutine
package opinion_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// Two separate pieces of code give the same results for valid and for damaged rows.
func TestOpinion_agreesWithPackageCluster(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		n, a := randomNode(rng), randomAlloc(rng)
		must.Eq(t, !a.ClientTerminal(), opinion.Live(a))
		must.Eq(t, a.ServerTerminal(), opinion.Stopping(a))
		must.Eq(t, a.Leaving(), opinion.Leaving(a))
		must.Eq(t, n.Reachable(), opinion.Reachable(n))
		must.Eq(t, n.Reachable() && a.ClientStatus != cluster.ClientUnknown, opinion.InTouch(a, n))
		healthy, exists := opinion.Verdict(a)
		must.Eq(t, a.HasVerdict(), exists)
		must.Eq(t, a.JudgedHealthy(), healthy)
		must.Eq(t, a.Canary(), opinion.Canary(a))
		must.Eq(t, a.Healthy(n), opinion.Healthy(a, n))
		unmarked := a.Copy()
		unmarked.DesiredTransition.Migrate = false
		must.Eq(t, unmarked.Healthy(n), opinion.HealthyButForMark(a, n))
		must.Eq(t, a.JobType(), opinion.TypeOf(a))
		must.Eq(t, int(a.Stage()), int(opinion.StageOf(a)))
		must.Eq(t, epoch.Add(a.StopTimeOn(n)), opinion.StoppedBy(a, n, epoch))
		must.Eq(t, a.Unconfirmed(), opinion.Unconfirmed(a))
		must.Eq(t, cluster.KeepsData(a), opinion.KeepsData(a))
		must.Eq(t, a.DataIn.Pending(), opinion.WaitsForData(a))
		must.Eq(t, cluster.ConfirmableAt(a, n), opinion.StoppedByItself(a, n))
		must.Eq(t, cluster.TakesOver(a, n), opinion.TakesOver(a, n))
		must.Eq(t, cluster.HoldsSurge(a), opinion.HoldsSurge(a))
		checkSurge(t, rng, a)
		checkCounted(t, rng, a)
		checkPace(t, rng, a)
		checkDrain(t, rng, n, a)
	}
}

// checkSurge compares the original and the last successor of a random line of allocations, and what a drain permits.
func checkSurge(t *testing.T, rng *rand.Rand, a *cluster.Allocation) {
	t.Helper()
	d := randomDrain(rng)
	d.ID, d.Strategy.MaxSurge = "d1", rng.IntN(3)
	n := &cluster.Node{Drain: d}
	must.Eq(t, cluster.SurgeRequested(a, n), opinion.RequestedBy(a, d))
	want, _ := cluster.PaceOf(a.Job, "g")
	got, _ := opinion.PaceOf(a.Job, "g")
	must.Eq(t, want.SurgeOn(n), got.Surge(d))
	rows := map[cluster.AllocID]*cluster.Allocation{}
	alloc := func(id cluster.AllocID) *cluster.Allocation { return rows[id] }
	ids := []cluster.AllocID{"a0", "a1", "a2", "a3"}
	for i, id := range ids[:rng.IntN(4)+1] {
		row := randomAlloc(rng)
		row.ID, row.Standby = id, i > 0 && rng.IntN(4) > 0
		if i > 0 {
			row.PreviousAllocation = ids[i-1]
			rows[ids[i-1]].NextAllocation = id
		}
		rows[id] = row
	}
	for _, row := range rows { //lint:order each by itself
		must.Eq(t, cluster.LastSuccessor(row, alloc), opinion.LastSuccessor(row, alloc))
		if row.Standby {
			must.Eq(t, cluster.Original(row, alloc), opinion.OriginalOf(row, alloc))
		}
	}
}

// checkCounted compares what the record of an ended drain counts as unconfirmed.
func checkCounted(t *testing.T, rng *rand.Rand, a *cluster.Allocation) {
	t.Helper()
	record := &cluster.Drain{ID: "d1", NodeID: a.NodeID, EndIndex: 5, Outcome: pick(rng, cluster.OutcomeCancelled, cluster.OutcomeForced)}
	record.Strategy.IgnoreSystemJobs = rng.IntN(2) == 0
	row := a.Copy()
	row.CreateIndex, row.AllocModifyIndex = pick[uint64](rng, 4, 5, 6), pick[uint64](rng, 4, 5, 6)
	row.DesiredTransition.Drain = pick[cluster.DrainID](rng, "d1", "d2")
	must.Eq(t, record.CountsUnconfirmed(row), opinion.Counted(row, record), must.Sprintf("%+v", row))
	record.NodeID = "another"
	must.False(t, record.CountsUnconfirmed(row) || opinion.Counted(row, record))
}

func checkPace(t *testing.T, rng *rand.Rand, a *cluster.Allocation) {
	t.Helper()
	j := a.Job.Copy()
	if j != nil {
		j.Stop = rng.IntN(4) == 0
	}
	want, exists := cluster.PaceOf(j, "g")
	got, ok := opinion.PaceOf(j, "g")
	must.Eq(t, exists, ok)
	must.Eq(t, want, cluster.Pace{Count: got.Count, MaxParallel: got.MaxParallel, HealthyDeadline: got.Verdict, MaxSurge: got.MaxSurge, StopsFirst: got.StopsFirst})
	must.Eq(t, want.Room(7), 7-got.Limit())
	must.Eq(t, a.DueAt(want, time.Minute), got.Due(a, time.Minute))
	must.Eq(t, a.HeldUntil(want), got.HeldUntil(a))
}

func checkDrain(t *testing.T, rng *rand.Rand, n *cluster.Node, a *cluster.Allocation) {
	t.Helper()
	d := randomDrain(rng)
	at := epoch.Add(time.Duration(rng.IntN(7)-3) * time.Second)
	must.Eq(t, d.Leaves(a.Stage()), !opinion.Excluded(a, d, slices.Values([]*cluster.Allocation{a}), nil))
	must.Eq(t, d.Leaves(a.Stage()), !opinion.LostByRequest(a, d))
	must.Eq(t, d.Strategy.Passed(at), opinion.Passed(d, at))
	cutoff, ends := opinion.Cutoff(d)
	must.Eq(t, d.Strategy.Finite(), ends)
	if !ends {
		return
	}
	must.Eq(t, d.Strategy.Forced(), cutoff.Equal(d.UpdatedAt))

	// An allocation requested to leave after the cutoff has its stop time from then.
	a.DesiredTransition = cluster.DesiredTransition{Migrate: true, MarkedAt: cutoff.Add(time.Second)}
	end := opinion.WaitEnd(a, n, d, time.Minute)
	must.Eq(t, cutoff.Add(time.Second).Add(a.StopTimeOn(n)).Add(time.Minute), end)
	a.DesiredTransition.MarkedAt = cutoff.Add(-time.Second)
	must.Eq(t, cutoff.Add(a.StopTimeOn(n)).Add(time.Minute), opinion.WaitEnd(a, n, d, time.Minute))
	if inTouch := opinion.InTouch(a, n); inTouch && d.Strategy.Passed(end) {
		must.False(t, opinion.WaitOver(a, n, d, end.Add(-1-time.Second), time.Minute))
		must.True(t, opinion.WaitOver(a, n, d, end, time.Minute))
	} else if d.Strategy.Passed(at) {
		must.Eq(t, !inTouch, opinion.WaitOver(a, n, d, at, time.Minute))
	}
	a.DesiredTransition, a.DesiredStatus, a.StoppedAt = cluster.DesiredTransition{}, cluster.DesiredStop, cutoff.Add(time.Hour)
	must.Eq(t, a.StoppedAt.Add(a.StopTimeOn(n)), opinion.WaitEnd(a, n, d, 0))
	a.DesiredStatus = cluster.DesiredRun
	must.False(t, opinion.WaitOver(a, n, d, end.Add(time.Hour), 0), must.Sprint("it was not requested to leave"))
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

func randomNode(rng *rand.Rand) *cluster.Node {
	if rng.IntN(8) == 0 {
		return nil
	}
	limit := func() time.Duration { return pick(rng, 0, time.Second, time.Hour, math.MaxInt64) }
	return &cluster.Node{
		Status:          pick(rng, cluster.NodeReady, cluster.NodeInitializing, cluster.NodeDown, cluster.NodeDisconnected),
		VolumeAllowance: limit(), HoldLimit: limit(), AwaySince: pick(rng, time.Time{}, epoch, epoch.Add(time.Hour)),
	}
}

func randomAlloc(rng *rand.Rand) *cluster.Allocation {
	a := &cluster.Allocation{
		TaskGroup: pick(rng, "g", "g", "gone"), Job: randomJob(rng), CreateTime: epoch,
		DesiredStatus: pick(rng, cluster.DesiredRun, cluster.DesiredRun, cluster.DesiredStop, cluster.DesiredEvict),
		ClientStatus: pick(rng, cluster.ClientPending, cluster.ClientRunning, cluster.ClientRunning, cluster.ClientComplete,
			cluster.ClientFailed, cluster.ClientLost, cluster.ClientUnknown),
		AwaySince: pick(rng, time.Time{}, epoch, epoch.Add(time.Minute)), ConfirmedAt: pick(rng, time.Time{}, time.Time{}, epoch),
	}
	a.DesiredTransition.Migrate = rng.IntN(4) == 0
	a.DesiredTransition.Surge = pick[cluster.DrainID](rng, "", "", "d1", "d2")
	a.Standby = rng.IntN(4) == 0
	a.DataIn, a.DataOut = randomMove(rng), randomMove(rng)
	healthy := rng.IntN(3) > 0
	a.DeploymentStatus = pick(rng, nil, &cluster.DeploymentStatus{}, &cluster.DeploymentStatus{Healthy: &healthy},
		&cluster.DeploymentStatus{Healthy: &healthy, Canary: true}, &cluster.DeploymentStatus{Healthy: &healthy})
	if a.DeploymentStatus != nil && !healthy && rng.IntN(2) == 0 {
		a.DeploymentStatus.UnhealthySince = epoch
	}
	return a
}

func randomMove(rng *rand.Rand) *cluster.DataMove {
	if rng.IntN(2) == 0 {
		return nil
	}
	m := &cluster.DataMove{State: pick(rng, cluster.DataWaiting, cluster.DataCopying, cluster.DataKept, cluster.DataCopied, cluster.DataGivenUp)}
	if m.State.Ended() {
		m.EndedAt = epoch.Add(time.Duration(rng.IntN(5)-2) * time.Second)
	}
	return m
}

func randomJob(rng *rand.Rand) *cluster.Job {
	if rng.IntN(10) == 0 {
		return nil
	}
	delay := func() time.Duration { return time.Duration(rng.IntN(4)) * time.Second }
	g := &cluster.TaskGroup{Name: "g", Count: rng.IntN(5), ShutdownDelay: delay()}
	g.Migrate = pick(rng, nil, &cluster.MigrateStrategy{MaxParallel: rng.IntN(3), MaxSurge: rng.IntN(3)}, &cluster.MigrateStrategy{HealthyDeadline: time.Second})
	for range rng.IntN(5) {
		task := &cluster.Task{KillTimeout: delay(), ShutdownDelay: delay(), StoragePlugin: rng.IntN(5) == 0, Leader: rng.IntN(4) == 0}
		if rng.IntN(2) == 0 {
			hook := pick(rng, cluster.HookPrestart, cluster.HookPoststart, cluster.HookPoststop)
			task.Lifecycle = &cluster.Lifecycle{Hook: hook, Sidecar: rng.IntN(2) == 0}
		}
		g.Tasks = append(g.Tasks, task)
	}
	g.EphemeralDisk.Migrate = rng.IntN(6) == 0
	g.Disconnect.StopOnClientAfter = pick(rng, 0, time.Second, time.Hour, math.MaxInt64)
	if rng.IntN(3) == 0 {
		access := pick(rng, cluster.SingleNodeReader, cluster.SingleNodeWriter, cluster.MultiNodeReader, cluster.MultiNodeSingleWriter, cluster.MultiNodeMultiWriter)
		g.Volumes = []cluster.VolumeRequest{{Name: "data", Source: "data", PerAlloc: rng.IntN(4) == 0, ReadOnly: rng.IntN(2) == 0, Capability: cluster.VolumeCapability{Access: access}}}
	}
	j := &cluster.Job{Type: pick(rng, cluster.JobService, cluster.JobBatch, cluster.JobSystem, cluster.JobSysBatch)}
	j.TaskGroups = pick(rng, []*cluster.TaskGroup{g}, []*cluster.TaskGroup{nil, g}, []*cluster.TaskGroup{{Name: "other"}, g})
	if rng.IntN(8) == 0 {
		g.Tasks = append(g.Tasks, nil)
	}
	return j
}

func randomDrain(rng *rand.Rand) *cluster.Drain {
	d := &cluster.Drain{UpdatedAt: epoch.Add(-time.Hour)}
	d.Strategy.Deadline = pick(rng, -1, 0, time.Second, math.MaxInt64)
	d.Strategy.IgnoreSystemJobs = rng.IntN(2) == 0
	if d.Strategy.Deadline > 0 {
		d.Strategy.ForceDeadline = epoch.Add(time.Duration(rng.IntN(5)-2) * time.Second)
	}
	return d
}
