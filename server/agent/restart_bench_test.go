package agent_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/datadir"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/heartbeat"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// BenchmarkRestart measures the start of a server, until its state is complete and it leads, after
// 100,000 allocations have ended: one that was killed, and one that was shut down in order.
func BenchmarkRestart(b *testing.B) {
	const perEntry = 100
	allocs := 100_000
	if testing.Short() {
		allocs = 1_000
	}
	config := agent.Config{
		DataDir: b.TempDir(), BootstrapExpect: 1, HTTPAddr: "127.0.0.1:0", ServerAddr: "127.0.0.1:0", Raft: quickRaft(),
		Heartbeats: heartbeat.Options{MinTTL: time.Hour}, Logger: hclog.NewNullLogger(), SnapshotTimeout: time.Minute,
	}
	config.Raft.SnapshotThreshold = 1 << 40 // only the snapshot at the shutdown
	a := up(b, config)
	config.ServerAddr = a.ServerAddr()
	must.NoError(b, a.Stop())
	endAllocs(b, config.DataDir, allocs, perEntry)
	killed := b.TempDir()
	must.NoError(b, os.CopyFS(killed, os.DirFS(config.DataDir)))
	a = up(b, config)
	began := time.Now()
	must.NoError(b, a.Stop())
	b.Logf("the shutdown took %s", time.Since(began))
	for name, dir := range map[string]string{"killed": killed, "shut down": config.DataDir} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				again := config
				again.DataDir = b.TempDir()
				must.NoError(b, os.CopyFS(again.DataDir, os.DirFS(dir)))
				b.StartTimer()
				a := up(b, again)
				b.StopTimer()
				must.NoError(b, a.Stop())
			}
		})
	}
}

// up starts a server, and returns when its state is complete.
func up(b *testing.B, c agent.Config) *agent.Agent {
	b.Helper()
	a, err := agent.New(c)
	must.NoError(b, err)
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	must.NoError(b, a.Ready(ctx))
	for a.Backend().Reader.Consistent(ctx) != nil { // a barrier does not wait for a long replay
		must.NoError(b, ctx.Err())
	}
	return a
}

// endAllocs writes that many allocations and their ends, of ten jobs on ten nodes, into the log of a
// server. No scheduler runs: it would answer the evaluations, too.
func endAllocs(b *testing.B, dir string, allocs, perEntry int) {
	b.Helper()
	disk, err := datadir.Open(dir, datadir.Options{})
	must.NoError(b, err)
	fsm := shims.NewFSM(shims.FSMConfig{})
	settings := *quickRaft()
	settings.LocalID, settings.Logger, settings.SnapshotThreshold = raft.ServerID(disk.Name()), hclog.NewNullLogger(), 1<<40
	_, transport := raft.NewInmemTransport("")
	r, err := raft.NewRaft(&settings, fsm, disk.Log(), disk.Stable(), disk.Snapshots(), transport)
	must.NoError(b, err)
	must.True(b, <-r.LeaderCh())
	state := func() *statestore.Snapshot { return fsm.Store().Snapshot() }
	apply := func(m shims.Message) {
		data, err := shims.Encode(m)
		must.NoError(b, err)
		must.NoError(b, r.Apply(data, 0).Error())
	}
	now := time.Now()
	var jobs []*cluster.Job
	for i := range 10 {
		n := testNode(i)
		n.Canonicalize()
		n.Resources = cluster.Resources{CPU: 1 << 30, MemoryMB: 1 << 30, DiskMB: 1 << 30}
		apply(&shims.NodeRegister{At: now, Node: n})
		j := clustertest.Job(cluster.JobID(fmt.Sprint("batch", i)), cluster.JobBatch, allocs/10)
		apply(&shims.JobRegister{Job: j})
		jobs = append(jobs, state().Job(j.Key()))
	}
	for begin := 0; begin < allocs; begin += perEntry {
		of := begin / perEntry % 10
		j := jobs[of]
		eval := clustertest.Eval(j, cluster.EvalID(fmt.Sprintf("eval-%08d", begin)), now)
		apply(&shims.EvalUpdate{Evals: []*cluster.Evaluation{eval.Copy()}})
		eval.Status = cluster.EvalComplete
		plan := cluster.Plan{At: now, Eval: eval, SnapshotIndex: state().Index()}
		var reports []cluster.AllocReport
		for i := begin; i < begin+perEntry; i++ {
			one := clustertest.Alloc(j, cluster.AllocID(fmt.Sprintf("%08d-0000-4000-8000-000000000000", i)), testNode(of).ID, now)
			one.EvalID, one.Name = eval.ID, fmt.Sprintf("%s.%s[%d]", j.ID, one.TaskGroup, begin/perEntry/10*perEntry+i-begin)
			plan.Places = append(plan.Places, one)
			reports = append(reports, cluster.AllocReport{Alloc: one.ID, Node: one.NodeID, ClientStatus: cluster.ClientComplete, At: now})
		}
		apply(&shims.ApplyPlan{Plan: plan})
		apply(&shims.AllocClientUpdate{Reports: reports})
	}
	ended := 0
	for one := range state().Allocs() {
		if one.ClientStatus == cluster.ClientComplete {
			ended++
		}
	}
	must.Eq(b, allocs, ended)
	began := time.Now()
	must.NoError(b, statestore.Persist(io.Discard, state()))
	b.Logf("the state takes %s to persist", time.Since(began))
	must.NoError(b, r.Shutdown().Error())
	must.NoError(b, disk.Close())
}
