package demo

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/clitest"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// report is a report of two drains and two groups without findings.
func report() witness.Report {
	web := cluster.GroupKey{Job: cluster.JobKey{Namespace: "default", ID: "web"}, Name: "main"}
	api := cluster.GroupKey{Job: cluster.JobKey{Namespace: "default", ID: "api"}, Name: "main"}
	train := cluster.GroupKey{Job: cluster.JobKey{Namespace: "default", ID: "train"}, Name: "main"}
	var paced, deadline [cluster.MarkClassCount]int
	paced[cluster.MarkPaced], paced[cluster.MarkStage], deadline[cluster.MarkDeadline] = 3, 1, 2
	return witness.Report{
		Groups: []witness.GroupReport{
			{Group: train, Lowest: witness.Level{Index: 9}},
			{Group: api, Lowest: witness.Level{Healthy: 1, Count: 4, Limit: 2, Index: 10}},
			{
				Group: web, PacedMarks: 3,
				Lowest:       witness.Level{Healthy: 7, Count: 9, Limit: 8, Index: 12},
				LowestAtMark: witness.Level{Healthy: 8, Count: 9, Limit: 8, Index: 11},
			},
		},
		Drains: []witness.DrainReport{
			{ID: "d1", Node: "n1", Outcome: cluster.OutcomeComplete, StartedAt: t0, EndedAt: t0.Add(4100 * time.Millisecond), Marked: paced, Moved: 3, Stopped: 1},
			{ID: "d2", Node: "n2", Outcome: cluster.OutcomeDeadlineReached, StartedAt: t0, EndedAt: t0.Add(12 * time.Second), Marked: deadline, Stopped: 1, StillStopping: 1, Unconfirmed: 2},
		},
	}
}

// summaryOf is the summary of a run with that report.
func summaryOf(r witness.Report, change func(*Summary)) *Summary {
	s := &Summary{
		Version: SummaryVersion, Servers: 3, Seed: 1, TimeScale: 60, Seconds: 17.25,
		Failures: []string{}, Findings: []string{},
		Cluster: ClusterSummary{
			Origin: "12 nodes generated from seed 1", Nodes: 12, Jobs: 9, Wanted: 80, Placed: 78,
			Unplaced: []UnplacedSummary{{Group: "default/big.main", Count: 2}}, LoadSeconds: 0.01, SetupSeconds: 2.5,
		},
		LeaderKill: &LeaderKill{Server: "server-2", NewLeader: "server-1", AtSeconds: 1.6, DrainsRunning: 2, AllocationsLeft: 5, ElectionSeconds: 1.9},
	}
	s.add(r, []*drainRun{
		{node: "n1", name: "n1", id: "d1", total: 4},
		{node: "n2", name: "n2", id: "d2", total: 2, deadline: 10 * time.Second},
	}, map[cluster.GroupKey]int{r.Groups[1].Group: 2, r.Groups[2].Group: 8})
	change(s)
	s.Failures = append(s.Failures, judge(s, r)...)
	s.OK = len(s.Failures) == 0
	return s
}

// The summary in JSON is stable.
func TestSummary_json(t *testing.T) {
	t.Parallel()
	s := summaryOf(report(), func(*Summary) {})
	must.True(t, s.OK)
	got, err := json.MarshalIndent(s, "", "  ")
	must.NoError(t, err)
	clitest.Golden(t, "summary.json", string(got)+"\n")
}

// The summary as text says the same.
func TestSummary_text(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	must.NoError(t, summaryOf(report(), func(*Summary) {}).Write(&out))
	clitest.Golden(t, "summary.txt", out.String())

	bad := report()
	bad.Groups[2].LowestAtMark.Healthy = 7
	bad.Drains[0].Outcome = ""
	out.Reset()
	must.NoError(t, summaryOf(bad, func(s *Summary) { s.LeaderKill.NewLeader = "" }).Write(&out))
	clitest.Golden(t, "summary_failed.txt", out.String())
}

// Many completed drains share a line.
func TestSummary_manyDrains(t *testing.T) {
	t.Parallel()
	s := summaryOf(report(), func(s *Summary) {
		for range maxLineDrains {
			s.Drains = append(s.Drains, s.Drains[0])
		}
	})
	must.True(t, s.OK, must.Sprint(s.Failures))
	var out bytes.Buffer
	must.NoError(t, s.Write(&out))
	clitest.Golden(t, "summary_many.txt", out.String())
}

// Write returns the error of its writer.
func TestSummary_writeFails(t *testing.T) {
	t.Parallel()
	closed, err := os.CreateTemp(t.TempDir(), "")
	must.NoError(t, err)
	must.NoError(t, closed.Close())
	must.ErrorIs(t, summaryOf(report(), func(*Summary) {}).Write(closed), os.ErrClosed)
}

// A run fails for each of these reasons.
func TestJudge(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		want   string // part of the one failure, or empty
		report func(*witness.Report)
		change func(*Summary)
	}{
		{name: "all is well"},
		{name: "no drain", want: "no node was drained", change: func(s *Summary) { s.Drains = nil }},
		{name: "a drain that did not end", want: "the drain of n1 did not end", report: func(r *witness.Report) { r.Drains[0].Outcome = "" }},
		{name: "a deadline reached where none was given", want: `the drain of n1 ended as "deadline reached"`,
			report: func(r *witness.Report) { r.Drains[0].Outcome = cluster.OutcomeDeadlineReached }},
		{name: "a forced drain", want: `the drain of n2 ended as "forced"`,
			report: func(r *witness.Report) { r.Drains[1].Outcome = cluster.OutcomeForced }},
		{name: "a cancelled drain", want: `the drain of n1 ended as "cancelled"`,
			report: func(r *witness.Report) { r.Drains[0].Outcome = cluster.OutcomeCancelled }},
		{name: "a node that went", want: `the drain of n1 ended as "node gone"`,
			report: func(r *witness.Report) { r.Drains[0].Outcome = cluster.OutcomeNodeGone }},
		{name: "complete before the deadline", report: func(r *witness.Report) { r.Drains[1].Outcome = cluster.OutcomeComplete }},
		{name: "no leader killed", want: "the leader was not killed", change: func(s *Summary) { s.LeaderKill = nil }},
		{name: "a leader killed too late", want: "no drain was running when", change: func(s *Summary) { s.LeaderKill.DrainsRunning = 0 }},
		{name: "no new leader", want: "there was no leader after the kill", change: func(s *Summary) { s.LeaderKill.NewLeader = "" }},
		{name: "a group below its limit", want: "took group default/web.main below its limit",
			report: func(r *witness.Report) { r.Groups[2].LowestAtMark.Healthy = 7 }},
		{name: "a group low for another cause", report: func(r *witness.Report) { r.Groups[2].Lowest.Healthy = 0 }},
		{name: "a finding", want: "has 1 findings, the first: G3 out of turn: too early", report: func(r *witness.Report) {
			r.Findings, r.Found = []witness.Finding{{Kind: witness.OutOfTurn, Why: "too early"}}, 1
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := report()
			if c.report != nil {
				c.report(&r)
			}
			if c.change == nil {
				c.change = func(*Summary) {}
			}
			s := summaryOf(r, c.change)
			must.Eq(t, c.want == "", s.OK, must.Sprint(s.Failures))
			if c.want != "" {
				must.SliceLen(t, 1, s.Failures, must.Sprint(s.Failures))
				must.StrContains(t, s.Failures[0], c.want)
			}
		})
	}
}

// A config that cannot work is refused before anything starts.
func TestRun_refuses(t *testing.T) {
	t.Parallel()
	cases := []struct {
		want   string
		config Config
	}{
		{"a loaded cluster has its own number of nodes", Config{Dir: "x", Nodes: 3}},
		{"reading the trace", Config{Dir: "testdata/none"}},
		{"there are 1 nodes", Config{Nodes: 1}},
		{"the number of drains is -1", Config{Drains: -1}},
		{"cannot drain 6 of 10 nodes", Config{Nodes: 10, Drains: 6}},
		{"the deadline is -1s", Config{Deadline: -time.Second}},
		{"the time scale is -1", Config{TimeScale: -1}},
		{"the time scale is 1001", Config{TimeScale: 1001}},
		{"there are 2 servers", Config{Servers: 2}},
		{"the timeout is -1s", Config{Timeout: -time.Second}},
	}
	for _, c := range cases {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			_, err := Run(t.Context(), c.config)
			must.ErrorContains(t, err, c.want)
		})
	}
}

// Equal arguments make equal clusters, and another seed makes another one. Every job is valid.
func TestGenerate(t *testing.T) {
	t.Parallel()
	text := func(c *Cluster) string {
		got, err := json.Marshal(c.Jobs)
		must.NoError(t, err)
		return string(got)
	}
	a, b := Generate(50, DefaultDeadline, 1), Generate(50, DefaultDeadline, 1)
	must.Eq(t, text(a), text(b))
	must.NotEq(t, text(a), text(Generate(50, DefaultDeadline, 2)))
	must.SliceLen(t, 50, a.Nodes)

	kinds, plugins := make(map[cluster.JobType]int), make(map[cluster.JobType]int)
	limits := make(map[int]bool)
	var wanted, there cluster.Resources
	for _, n := range a.Nodes {
		there = there.Plus(n.Available())
	}
	for _, j := range a.Jobs {
		must.NoError(t, j.Validate())
		kinds[j.Type]++
		if j.StoragePlugin() {
			plugins[j.Type]++
		}
		for _, g := range j.TaskGroups {
			count := g.Count
			if j.Type.EveryNode() {
				count = len(a.Nodes)
			}
			for range count {
				wanted = wanted.Plus(g.Resources())
			}
			if g.Migrate != nil {
				limits[g.Migrate.MaxParallel] = true
			}
		}
		must.Eq(t, j.Type.ToCompletion(), a.RunTime[j.Key()] > 0, must.Sprint(j.ID))
	}
	must.MapLen(t, 4, kinds)
	must.Eq(t, map[cluster.JobType]int{cluster.JobSystem: 1, cluster.JobService: 1}, plugins)
	must.Greater(t, 2, len(limits))
	must.Between(t, there.CPU*2/5, wanted.CPU, there.CPU*3/5)
	must.Eq(t, 6*50+50+2, a.Allocations())
}

// Every time in a job is scaled, in a copy of the job.
func TestScale(t *testing.T) {
	t.Parallel()
	j := &cluster.Job{TaskGroups: []*cluster.TaskGroup{{
		ShutdownDelay: time.Minute,
		Disconnect:    cluster.DisconnectStrategy{LostAfter: 2 * time.Minute},
		Migrate:       &cluster.MigrateStrategy{MinHealthyTime: 3 * time.Minute, HealthyDeadline: 4 * time.Minute},
		Tasks:         []*cluster.Task{{KillTimeout: 5 * time.Minute, ShutdownDelay: 6 * time.Minute}},
	}}}
	got := scale(60).job(j).TaskGroups[0]
	must.Eq(t, []time.Duration{1, 2, 3, 4, 5, 6}, []time.Duration{
		got.ShutdownDelay / time.Second, got.Disconnect.LostAfter / time.Second, got.Migrate.MinHealthyTime / time.Second,
		got.Migrate.HealthyDeadline / time.Second, got.Tasks[0].KillTimeout / time.Second, got.Tasks[0].ShutdownDelay / time.Second,
	})
	must.Eq(t, time.Minute, j.TaskGroups[0].ShutdownDelay)
	must.Eq(t, 250*time.Millisecond, scale(60).policy().StopMargin)
}
