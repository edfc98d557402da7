package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/datamove"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/server/telemetry"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

var rewrite = flag.Bool("rewrite", false, "write the scrape of the test into testdata")

// log is a replica whose entries are all counted.
type log struct {
	*clustertest.Replica
	*telemetry.Telemetry
	out bytes.Buffer // the log lines
}

// newLog makes a log with three nodes and a job of three allocations on two of them.
func newLog(t *testing.T, o telemetry.Options) *log {
	t.Helper()
	l := new(log)
	o.Logger = hclog.New(&hclog.LoggerOptions{Output: &l.out})
	var err error
	l.Telemetry, err = telemetry.New(o)
	must.NoError(t, err)
	l.begin(t, l.OnApply)
	return l
}

// begin starts a new log. Entries are a second apart.
func (l *log) begin(t *testing.T, onApply func(shims.Applied)) {
	l.Replica = clustertest.NewReplica(t, shims.FSMConfig{OnApply: onApply})
	l.Propose = func(m shims.Message) shims.Response {
		time.Sleep(time.Second)
		response := l.Apply(m)
		l.Answered(m, shims.Answer{Outcome: raftwrite.Applied, Index: l.Index, Response: response})
		synctest.Wait()
		return response
	}
	l.Nodes("n1", "n2", "n3")
	job := webJob(3)
	l.Must(&shims.JobRegister{Job: job, Evals: []*cluster.Evaluation{l.Eval(job)}})
	l.Plan(job, nil, l.alloc("a1", "", "n1", 0), l.alloc("a2", "", "n1", 1), l.alloc("a3", "", "n2", 2))
	l.Report(cluster.ClientRunning, "a1", "a2", "a3")
}

func webJob(count int) *cluster.Job {
	job := clustertest.Job("web", cluster.JobService, count)
	job.TaskGroups[0].Name = "g"
	return job
}

var webKey = cluster.JobKey{Namespace: "default", ID: "web"}

func (l *log) alloc(id, previous cluster.AllocID, on cluster.NodeID, number int) *cluster.Allocation {
	a := clustertest.Alloc(l.State().Job(webKey), id, on, time.Now())
	a.Name, a.PreviousAllocation = fmt.Sprintf("web.g[%d]", number), previous
	return a
}

// move stops a marked allocation, places another on n3, and applies their clients' reports.
func (l *log) move(old, replacement cluster.AllocID, number int) {
	l.Helper()
	l.Plan(l.State().Job(webKey), []cluster.AllocID{old}, l.alloc(replacement, old, "n3", number))
	l.Report(cluster.ClientComplete, old)
	l.Report(cluster.ClientRunning, replacement)
}

// scrape returns Prometheus' input, without the series of the Go runtime.
func (l *log) scrape() string {
	l.Helper()
	answer := httptest.NewRecorder()
	l.ServeHTTP(answer, httptest.NewRequest("GET", "/v1/metrics?format=prometheus", nil))
	must.Eq(l, 200, answer.Code)
	must.StrHasPrefix(l, "text/plain", answer.Header().Get("Content-Type"))
	var kept []string
	for line := range strings.Lines(answer.Body.String()) {
		name := strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE ")
		if strings.HasPrefix(name, "nodedrain_") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// value is the value of a series in a scrape, or empty.
func (l *log) value(series string) string {
	l.Helper()
	for line := range strings.Lines(l.scrape()) {
		if value, is := strings.CutPrefix(strings.TrimSpace(line), series+" "); is {
			return value
		}
	}
	return ""
}

// drained drains n1 correctly. The deadline passes during the drain.
func (l *log) drained() {
	l.Helper()
	l.Drain("n1", &cluster.DrainSpec{Deadline: 20 * time.Second})
	must.SliceLen(l, 1, l.Mark(cluster.MarkPaced, "a1", "a2").Accepted) // one has room, the other is refused
	l.move("a1", "b1", 0)
	time.Sleep(20 * time.Second)
	must.SliceLen(l, 1, l.Mark(cluster.MarkDeadline, "a2").Accepted)
	l.move("a2", "b2", 1)
	must.SliceLen(l, 1, l.Complete("n1").Ended)
}

// running returns the sources of a leader.
func (l *log) running() telemetry.Sources {
	began := time.Now()
	status := func(id cluster.DrainID, deadline, bound time.Duration) rules.Status {
		s := rules.Status{NodeName: "node-" + string(id), Drain: &cluster.Drain{ID: id, Strategy: cluster.DrainStrategy{DrainSpec: cluster.DrainSpec{Deadline: deadline}}}}
		if deadline > 0 {
			s.Drain.Strategy.ForceDeadline = began.Add(deadline)
			s.EndsBy = s.Drain.Strategy.ForceDeadline // always in the future
			if now := time.Now(); now.After(s.EndsBy) {
				s.EndsBy = now
			}
			s.EndsBy = s.EndsBy.Add(bound)
			s.EndsAbout = began.Add(deadline / 2)
		}
		s.Waiting[rules.ReasonWaitingForRoom], s.Waiting[rules.ReasonStopping] = 3, 1
		s.Left[cluster.StageConsumers] = 4
		return s
	}
	all := &cluster.DrainPause{At: began}
	paused := func(id cluster.DrainID, own *cluster.DrainPause) rules.Status {
		s := status(id, time.Second, 0)
		s.Drain.Paused, s.PausedSince, s.PauseOfAll, s.EndsBy, s.EndsAbout = own, began, all, time.Time{}, time.Time{}
		s.Waiting, s.Left = [rules.ReasonCount]int{rules.ReasonPaused: 2}, [cluster.StageCount]int{2}
		return s
	}
	return telemetry.Sources{
		Drains: func() ([]rules.Status, error) {
			return []rules.Status{
				status("d1", 0, 0), status("d2", time.Hour, time.Hour), status("d3", time.Second, time.Hour), status("d4", time.Second, time.Second),
				paused("d5", all), paused("d6", nil), paused("d7", nil),
			}, nil
		},
		PauseOfAll: func() (*cluster.DrainPause, bool) { return all, true },
		Unconfirmed: func() ([]*cluster.Drain, bool) {
			return []*cluster.Drain{{ID: "d0", NodeName: "node-d0", Unconfirmed: &cluster.UnconfirmedAllocs{Count: 3}}}, true
		},
		Raft:            leading{state: raft.Leader},
		BlockingQueries: func() int { return 5 },
		Connections: func() []telemetry.Connections {
			return []telemetry.Connections{{Kind: "http", Open: 40, Closed: 3, Refused: 2}}
		},
		DataCopies: func() datamove.Counts { return datamove.Counts{Running: 8, Waiting: 4, Bytes: 4096} },
		State:      func() (bool, uint64) { return true, 27 },
		Held: func() *collect.Held {
			return &collect.Held{Allocs: 40, Evals: 30, Jobs: 20, EndedAllocs: 10, EndedEvals: 9, EndedJobs: 8}
		},
	}
}

type leading struct {
	state   raft.RaftState
	contact time.Time
}

func (l leading) State() raft.RaftState { return l.state }
func (leading) LastIndex() uint64       { return 30 }
func (leading) CommitIndex() uint64     { return 29 }
func (leading) AppliedIndex() uint64    { return 28 }
func (l leading) LastContact() time.Time {
	return l.contact
}

// The exact scrape of a server with a drain: names, labels, help and values.
func TestScrape(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{CertificateExpires: func() time.Time { return time.Unix(1_900_000_000, 0) }})
		l.drained()
		l.Watch(l.running())
		must.Eq(t, "7", l.value(`nodedrain_drains{state="draining"}`))
		l.Must(&shims.NodeUpdateStatus{At: time.Now(), Node: "n2", Status: cluster.NodeDown})
		l.Must(&shims.NodeUpdateStatus{At: time.Now(), Node: "n2", Status: cluster.NodeDown}) // it was down already
		time.Sleep(3 * time.Second)
		l.Must(&shims.Collect{At: time.Now(), Request: collect.Request{
			Before: collect.Before{Evals: time.Now()}, Rows: collect.Rows{Evals: []cluster.EvalID{"e1", "e99"}},
		}})
		l.Answered(nil, shims.Answer{Outcome: raftwrite.Unknown})
		l.Answered(&shims.NodesDrainComplete{}, shims.Answer{Outcome: raftwrite.Rejected})
		l.Answered(&shims.NodeUpdateDrain{}, shims.Answer{Outcome: raftwrite.Applied, Response: shims.Refused{Err: errors.New("no such node")}})
		l.Request("GET /v1/node/{id}", 200, 20*time.Millisecond)
		l.Request("GET /v1/node/{id}", 404, 10*time.Millisecond)
		l.Stepped(3 * time.Millisecond)
		got := l.scrape()
		const golden = "testdata/scrape.txt"
		if *rewrite {
			must.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
		}
		want := result.Of(os.ReadFile(golden)).OK(t)
		must.Eq(t, string(want), got)
		must.StrNotContains(t, l.out.String(), "broken")
		l.Close()
	})
}

// Each of the two series that name drains names at most [telemetry.MaxNamedDrains]: those with the
// longest times, and those past their bound before others.
func TestScrape_namesDrains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		began := time.Now()
		var all []rules.Status
		for i := range 3 * telemetry.MaxNamedDrains {
			s := rules.Status{NodeName: fmt.Sprintf("n%02d", i), EndsBy: began.Add(time.Hour), Drain: &cluster.Drain{ID: cluster.DrainID(fmt.Sprintf("d%02d", i))}}
			s.Drain.Strategy.Deadline = time.Duration(i+1) * time.Second
			s.Drain.Strategy.ForceDeadline = began.Add(s.Drain.Strategy.Deadline)
			s.Left[cluster.StageConsumers], s.Waiting[rules.ReasonBelowBudget] = 5, 5
			all = append(all, s)
		}
		forced, batch, empty := &all[0], &all[1], &all[2]
		forced.Drain.Strategy, forced.Drain.UpdatedAt = cluster.DrainStrategy{DrainSpec: cluster.DrainSpec{Deadline: -1}}, began.Add(time.Second)
		batch.Waiting = [rules.ReasonCount]int{rules.ReasonBatchRunning: 4, rules.ReasonLeftByRequest: 1}
		empty.Waiting = [rules.ReasonCount]int{}
		const last = 3*telemetry.MaxNamedDrains - 1
		all[last].EndsBy = began.Add(50 * time.Second)
		l.Watch(telemetry.Sources{Drains: func() ([]rules.Status, error) { return all, nil }})
		unchanged := func(i int, reason string) string {
			return l.value(fmt.Sprintf(`nodedrain_drain_unchanged_seconds{drain="d%02d",node="n%02d",reason="%s"}`, i, i, reason))
		}
		late := func(i int, state string) string {
			return l.value(fmt.Sprintf(`nodedrain_drain_late_seconds{drain="d%02d",node="n%02d",state="%s"}`, i, i, state))
		}
		must.Eq(t, "0", unchanged(3, "below_budget"))
		must.Eq(t, "", late(3, "past_deadline"))
		time.Sleep(30 * time.Second)
		all[3].Left[cluster.StageConsumers] = 4 // one has left
		must.Eq(t, "", unchanged(3, "below_budget"), must.Sprint("20 others stand longer"))
		must.Eq(t, "30", unchanged(4, "below_budget"))
		must.Eq(t, "30", unchanged(2, "nothing_left"))
		must.Eq(t, "", unchanged(1, "batch_running"))
		must.Eq(t, "29", late(0, "past_deadline"))
		must.Eq(t, "26", late(3, "past_deadline"))
		time.Sleep(40 * time.Second)
		must.Eq(t, "10", late(last, "past_bound"))
		for _, series := range []string{"nodedrain_drain_unchanged_seconds{", "nodedrain_drain_late_seconds{"} {
			must.Eq(t, telemetry.MaxNamedDrains, strings.Count(l.scrape(), series))
		}
		batch.Waiting[rules.ReasonStopping] = 1
		all = all[:4]
		must.Eq(t, "70", unchanged(1, "stopping"))
		must.Eq(t, "40", unchanged(3, "below_budget"))
		l.Close()
	})
}

// Of many records that count unconfirmed allocations the series names the newest. A server that does not lead
// has no series, because its state may be old.
func TestScrape_unconfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		var records []*cluster.Drain
		leads := true
		for i := range telemetry.MaxNamedDrains + 2 {
			records = append(records, &cluster.Drain{ID: cluster.DrainID(fmt.Sprintf("d%02d", i)), NodeName: "n", Unconfirmed: &cluster.UnconfirmedAllocs{Count: i + 1}})
		}
		l.Watch(telemetry.Sources{Unconfirmed: func() ([]*cluster.Drain, bool) { return records, leads }})
		must.Eq(t, "22", l.value("nodedrain_drains_unconfirmed"))
		must.Eq(t, "3", l.value(`nodedrain_drain_unconfirmed_allocations{drain="d02",node="n"}`))
		must.Eq(t, telemetry.MaxNamedDrains, strings.Count(l.scrape(), "nodedrain_drain_unconfirmed_allocations{"))
		records = nil
		must.Eq(t, "0", l.value("nodedrain_drains_unconfirmed"))
		must.StrNotContains(t, l.scrape(), "nodedrain_drain_unconfirmed_allocations")
		leads = false
		must.StrNotContains(t, l.scrape(), "unconfirmed ")
		l.Close()
	})
}

// A drain that ends unconfirmed has an outcome of its own, and the log line of its end has the number.
func TestAudit_unconfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		l.Must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
		l.Must(&shims.NodeUpdateStatus{At: time.Now(), Node: "n1", Status: cluster.NodeDown})
		l.lose("a1", "a2")
		l.Drain("n1", &cluster.DrainSpec{})
		must.SliceLen(t, 1, l.Complete("n1").Ended)
		must.Eq(t, "1", l.value(`nodedrain_drains_ended_total{outcome="unconfirmed"}`))
		must.StrContains(t, l.out.String(), "outcome=unconfirmed")
		must.StrContains(t, l.out.String(), "stopping=0 unconfirmed=2")
		l.Close()
	})
}

// The end of a move of data is counted once, although it is on the rows of both allocations. The data of an allocation that no
// replacement has taken is counted when its client gives it up.
func TestAudit_dataMoves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		l.Must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
		report := func(id cluster.AllocID, s cluster.ClientStatus, in, out *cluster.DataMove) {
			r := clustertest.Report(l.State().Alloc(id), s, time.Now())
			r.DataIn, r.DataOut = in, out
			l.Must(&shims.AllocClientUpdate{At: time.Now(), Reports: []cluster.AllocReport{r}})
		}
		counts := func(copied, givenUp string) {
			t.Helper()
			must.Eq(t, copied, l.value(`nodedrain_data_moves_ended_total{outcome="copied"}`))
			must.Eq(t, givenUp, l.value(`nodedrain_data_moves_ended_total{outcome="given_up"}`))
		}
		report("a1", cluster.ClientRunning, &cluster.DataMove{State: cluster.DataCopying}, nil)
		counts("0", "0")
		for range 2 {
			report("a1", cluster.ClientRunning, &cluster.DataMove{State: cluster.DataCopied}, nil)
			counts("1", "0")
		}
		report("a2", cluster.ClientRunning, &cluster.DataMove{State: cluster.DataGivenUp}, nil)
		counts("1", "1")
		report("a1", cluster.ClientComplete, nil, &cluster.DataMove{State: cluster.DataKept})
		counts("1", "1")
		for range 2 {
			report("a1", cluster.ClientComplete, nil, &cluster.DataMove{State: cluster.DataGivenUp})
			counts("1", "2")
		}
		l.Close()
	})
}

// lose applies a plan that gives allocations up as lost.
func (l *log) lose(ids ...cluster.AllocID) {
	l.Helper()
	eval := l.Eval(l.State().Job(webKey))
	l.Must(&shims.EvalUpdate{Evals: []*cluster.Evaluation{eval.Copy()}})
	eval.Status = cluster.EvalComplete
	p := cluster.Plan{At: time.Now(), Eval: eval, SnapshotIndex: l.Index}
	for _, id := range ids {
		p.Stops = append(p.Stops, cluster.PlanStop{Alloc: id, Description: cluster.DescLost, Lost: true})
	}
	must.SliceEmpty(l, l.Must(&shims.ApplyPlan{Plan: p}).(shims.PlanApplied).Refused)
}

// docs/metrics.md lists every series of the golden scrape with its type, and no other. No label value has a
// space, so that a query needs no quotes inside quotes.
func TestScrape_isDocumented(t *testing.T) {
	t.Parallel()
	golden := result.Of(os.ReadFile("testdata/scrape.txt")).OK(t)
	must.SliceEmpty(t, regexp.MustCompile(`="[^" ]* [^"]*"`).FindAllString(string(golden), -1))
	series := map[string]string{}
	for line := range strings.Lines(string(golden)) {
		if rest, is := strings.CutPrefix(line, "# TYPE "); is {
			name, kind, _ := strings.Cut(strings.TrimSpace(rest), " ")
			series[name] = kind
		}
	}
	text := result.Of(os.ReadFile("../../docs/metrics.md")).OK(t)
	documented := map[string]string{}
	for _, item := range regexp.MustCompile("(?m)^\\* `(nodedrain_[a-z_]+)` \\(([a-z]+)").FindAllStringSubmatch(string(text), -1) {
		documented[item[1]] = item[2]
	}
	must.MapEq(t, series, documented)
}

// A broken guarantee is counted and logged.
func TestAudit_countsBrokenGuarantees(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		drain := l.Drain("n1", &cluster.DrainSpec{}).Drain
		must.Eq(t, "0", l.value(`nodedrain_invariant_violations_total{guarantee="G1"}`))
		// In the entry, a3 fails and a1 gets a paced mark, although the group has no room for it.
		before := l.State()
		broken := shims.Applied{
			Index: before.Index() + 1, Type: shims.AllocUpdateDesiredTransitionType, Before: before, After: l.withLess(before, "a3", "a1"),
			Message: &shims.AllocUpdateDesiredTransition{Marks: rules.Marks{At: time.Now(), Marks: []rules.Mark{{Alloc: "a1", Node: "n1"}}}}, Response: shims.MarksApplied{},
		}
		l.OnApply(broken)
		synctest.Wait()
		must.Eq(t, "1", l.value(`nodedrain_invariant_violations_total{guarantee="G1"}`))
		must.StrContains(t, l.out.String(), "[ERROR] telemetry: a guarantee of the drainer is broken: guarantee=G1")
		for _, field := range []string{"node=n1", "drain=" + string(drain), "alloc=a1", "job=default/web", "group=g"} {
			must.StrContains(t, l.out.String(), field)
		}
		// Every broken guarantee is counted, but only the first ones are logged.
		for range 149 {
			l.OnApply(broken)
			synctest.Wait()
		}
		must.Eq(t, "150", l.value(`nodedrain_invariant_violations_total{guarantee="G1"}`))
		must.Eq(t, 100, strings.Count(l.out.String(), "a guarantee of the drainer is broken"))
		must.Eq(t, 1, strings.Count(l.out.String(), "no more broken guarantees are logged"))
		l.Close()
	})
}

// withLess returns the state after a paced mark on one allocation and the failure of another one.
func (l *log) withLess(before *statestore.Snapshot, lost, marked cluster.AllocID) *statestore.Snapshot {
	other := clustertest.NewReplica(l, shims.FSMConfig{})
	other.Restore(before)
	other.Mark(cluster.MarkPaced, marked)
	other.Report(cluster.ClientFailed, lost)
	return other.State()
}

// Entries that raft applies again at a start are judged, but their drains are not counted again. A
// witness that starts in the middle of the log continues from the state.
func TestAudit_replay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var entries []shims.Applied
		first := newLog(t, telemetry.Options{})
		first.begin(t, func(a shims.Applied) {
			entries = append(entries, a)
			first.OnApply(a)
		})
		first.drained()
		const ended = `nodedrain_drains_ended_total{outcome="deadline_reached"}`
		must.Eq(t, "1", first.value(ended))

		for begin := range entries {
			late := result.Of(telemetry.New(telemetry.Options{})).OK(t)
			l := &log{Replica: clustertest.NewReplica(t, shims.FSMConfig{}), Telemetry: late}
			for _, a := range entries[begin:] {
				l.OnApply(a)
			}
			l.Close()
			must.Eq(t, "0", l.value(ended))
			must.Eq(t, "0", l.value(`nodedrain_drain_marks_total{class="paced"}`))
			must.Eq(t, fmt.Sprint(len(entries)), l.value("nodedrain_witness_index"))
			for _, g := range []string{"G1", "G2", "G3", "G5", "G6", "audit"} {
				must.Eq(t, "0", l.value(`nodedrain_invariant_violations_total{guarantee="`+g+`"}`))
			}
		}
		first.Close()
	})
}

// After missed entries a new witness starts. Missed entries are no broken guarantee.
func TestAudit_gaps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		var entries []shims.Applied
		l.begin(t, func(a shims.Applied) { entries = append(entries, a) })
		l.drained()
		l.Close()
		for from := range entries {
			for to := from + 1; to < len(entries); to++ {
				gappy := result.Of(telemetry.New(telemetry.Options{})).OK(t)
				for i, a := range entries {
					if i < from || i >= to {
						gappy.OnApply(a)
					}
				}
				gappy.Close()
				summary := result.Of(gappy.Summary()).OK(t)
				for _, c := range summary.Counters {
					if c.Name == "nodedrain_invariant_violations_total" {
						must.Zero(t, c.Count, must.Sprintf("without %d to %d: %v", from, to, c))
					}
				}
			}
		}
	})
}

// The memory of the witness is bounded: a new witness replaces one that has grown, and misses
// nothing.
func TestAudit_boundsItsMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		const bound = 30
		l.SetMaxGrowth(bound)
		most := 0
		for i := range 60 {
			id := cluster.DrainID(fmt.Sprint("d", i))
			l.Must(&shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{Node: "n1", Drain: id, Spec: new(cluster.DrainSpec), At: time.Now()}})
			must.SliceLen(t, 1, l.Mark(cluster.MarkPaced, "a1").Accepted)
			l.Must(&shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{Node: "n1", At: time.Now()}})
			size := result.Of(strconv.Atoi(l.value("nodedrain_witness_size"))).OK(t)
			most = max(most, size)
		}
		// It started with nothing, and later with the ten records that are kept.
		must.Between(t, bound, most, bound+cluster.MaxDrainRecordsPerNode+5)
		must.Eq(t, "60", l.value(`nodedrain_drains_ended_total{outcome="cancelled"}`))
		must.StrNotContains(t, l.out.String(), "broken")
		l.Close()
	})
}

// A drain has one first mark, even if an entry makes several marks. Only a drain that ends after
// its deadline is late.
func TestAudit_times(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		l.Drain("n1", &cluster.DrainSpec{Deadline: time.Second})
		time.Sleep(10 * time.Second)
		must.SliceLen(t, 2, l.Mark(cluster.MarkDeadline, "a1", "a2").Accepted)
		must.Eq(t, "1", l.value("nodedrain_drain_first_mark_seconds_count"))
		must.Eq(t, "11", l.value("nodedrain_drain_first_mark_seconds_sum"))
		l.Close()

		l = newLog(t, telemetry.Options{})
		l.Drain("n1", &cluster.DrainSpec{Deadline: time.Hour})
		l.Mark(cluster.MarkPaced, "a1")
		l.move("a1", "b1", 0)
		l.Mark(cluster.MarkPaced, "a2")
		l.move("a2", "b2", 1)
		must.SliceLen(l, 1, l.Complete("n1").Ended)
		must.Eq(t, "1", l.value(`nodedrain_drains_ended_total{outcome="complete"}`))
		must.Eq(t, "9", l.value(`nodedrain_drain_duration_seconds_sum{outcome="complete"}`))
		must.Eq(t, "0", l.value("nodedrain_drain_deadline_lateness_seconds_count"))
		l.Close()
	})
}

// A request for a replacement is no mark.
func TestAudit_surge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		l.Must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
		l.Drain("n1", &cluster.DrainSpec{Deadline: time.Hour, MaxSurge: 1})
		a := l.State().Alloc("a1")
		mark := clustertest.Mark(l.State().Node("n1"), a, cluster.MarkPaced)
		mark.Surge = true
		applied := l.Must(&shims.AllocUpdateDesiredTransition{Marks: rules.Marks{At: time.Now(), Marks: []rules.Mark{mark}, Evals: []*cluster.Evaluation{l.Eval(a.Job)}}})
		must.SliceLen(t, 1, applied.(shims.MarksApplied).Accepted)
		must.Eq(t, "1", l.value("nodedrain_drain_surge_requests_total"))
		must.Eq(t, "0", l.value(`nodedrain_drain_marks_total{class="paced"}`))
		must.Eq(t, "0", l.value("nodedrain_drain_first_mark_seconds_count"))
		l.Close()
	})
}

// Raft's goroutine never waits for the witness. An entry that finds the queue full is missed and
// counted, and is no broken guarantee.
func TestOnApply_neverBlocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{QueueSize: 1})
		var entries []shims.Applied
		l.begin(t, func(a shims.Applied) { entries = append(entries, a) })
		l.drained()
		l.Close() // the goroutine has ended: the queue stays full
		for range 3 {
			for _, a := range entries {
				l.OnApply(a)
			}
		}
		must.Eq(t, fmt.Sprint(3*len(entries)-1), l.value("nodedrain_witness_missed_entries_total"))
		must.Eq(t, "0", l.value(`nodedrain_invariant_violations_total{guarantee="audit"}`))
		must.Eq(t, "0", l.value(`nodedrain_invariant_violations_total{guarantee="G5"}`))
	})
}

// The first bound of a drain's revision decides whether the drain is past its bound. The bounds of
// ended drains are deleted.
func TestScrape_pastBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		d := &cluster.Drain{ID: "d1", Revision: 1, Strategy: cluster.DrainStrategy{DrainSpec: cluster.DrainSpec{Deadline: time.Second}, ForceDeadline: time.Now()}}
		runs := true
		l.Watch(telemetry.Sources{Drains: func() ([]rules.Status, error) {
			if !runs {
				return nil, nil
			}
			return []rules.Status{{Drain: d, EndsBy: time.Now().Add(time.Minute)}}, nil
		}})
		state := func() string {
			for _, state := range []string{"draining", "past_deadline", "past_bound"} {
				if l.value(`nodedrain_drains{state="`+state+`"}`) == "1" {
					return state
				}
			}
			return "none"
		}
		must.Eq(t, "past_deadline", state())
		time.Sleep(time.Minute)
		must.Eq(t, "past_deadline", state())
		time.Sleep(time.Second)
		must.Eq(t, "past_bound", state())
		d = d.Copy()
		d.Revision = 2
		must.Eq(t, "past_deadline", state())
		time.Sleep(2 * time.Minute)
		must.Eq(t, "past_bound", state())
		runs = false
		must.Eq(t, "none", state())
		runs = true
		must.Eq(t, "past_deadline", state())
		l.Close()
	})
}

// A paused drain is neither stuck nor late. After its resume the time begins again.
func TestScrape_paused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		d := rules.Status{NodeName: "n1", Drain: &cluster.Drain{ID: "d1", Revision: 1}, EndsBy: time.Now().Add(time.Minute)}
		d.Drain.Strategy = cluster.DrainStrategy{DrainSpec: cluster.DrainSpec{Deadline: time.Second}, ForceDeadline: time.Now().Add(time.Second)}
		d.Left[cluster.StageConsumers], d.Waiting[rules.ReasonStopping] = 1, 1
		var all *cluster.DrainPause
		leads := true
		l.Watch(telemetry.Sources{
			Drains:     func() ([]rules.Status, error) { return []rules.Status{d}, nil },
			PauseOfAll: func() (*cluster.DrainPause, bool) { return all, leads },
		})
		shows := func(draining, unchanged, late, itself, withAll, since string) {
			t.Helper()
			must.Eq(t, draining, l.value(`nodedrain_drains{state="draining"}`))
			must.Eq(t, unchanged, l.value(`nodedrain_drain_unchanged_seconds{drain="d1",node="n1",reason="stopping"}`))
			must.Eq(t, late, l.value(`nodedrain_drain_late_seconds{drain="d1",node="n1",state="past_deadline"}`))
			must.Eq(t, itself, l.value(`nodedrain_drain_paused_seconds{cause="drain",drain="d1",node="n1"}`))
			must.Eq(t, withAll, l.value(`nodedrain_drain_paused_seconds{cause="all",drain="d1",node="n1"}`))
			must.Eq(t, since, l.value("nodedrain_drains_paused_timestamp_seconds"))
		}
		shows("1", "0", "", "", "", "")
		all = &cluster.DrainPause{At: time.Now()}
		since := strconv.FormatFloat(float64(all.At.Unix()), 'g', -1, 64)
		d.PausedSince, d.PauseOfAll, d.EndsBy = all.At, all, time.Time{}
		time.Sleep(time.Hour)
		shows("1", "", "", "", "3600", since)
		d.Drain = d.Drain.Copy()
		d.Drain.Paused, d.Drain.Revision = all, 2
		shows("1", "", "", "3600", "", since)
		leads = false
		shows("1", "", "", "3600", "", "")
		leads, all = true, nil
		d.Drain = d.Drain.Copy()
		d.Drain.Paused, d.Drain.Revision, d.PausedSince, d.PauseOfAll = nil, 3, time.Time{}, nil
		d.Drain.Strategy.ForceDeadline, d.EndsBy = time.Now().Add(time.Second), time.Now().Add(time.Minute)
		shows("1", "0", "", "", "", "")
		time.Sleep(10 * time.Second)
		shows("0", "10", "9", "", "", "")
		l.Close()
	})
}

// A follower has no numbers of drains. It has the time since its last contact with the leader.
func TestScrape_follower(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		l.Watch(telemetry.Sources{
			Drains: func() ([]rules.Status, error) { return nil, rules.ErrNotEnabled },
			Raft:   leading{state: raft.Follower, contact: time.Now().Add(-2 * time.Second)},
		})
		must.StrNotContains(t, l.scrape(), "nodedrain_drains{")
		must.Eq(t, "0", l.value("nodedrain_raft_leads"))
		must.Eq(t, "2", l.value("nodedrain_raft_last_contact_seconds"))
		l.Watch(telemetry.Sources{Raft: leading{state: raft.Candidate}})
		must.Eq(t, "", l.value("nodedrain_raft_last_contact_seconds"))
		l.Close()
	})
}

// Without a format the same numbers come as JSON, in the shape of the compatible API.
func TestServeHTTP_json(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		l.drained()
		l.Request("GET /v1/nodes", 200, 250*time.Millisecond)
		l.Request("GET /v1/nodes", 200, 750*time.Millisecond)
		answer := httptest.NewRecorder()
		l.ServeHTTP(answer, httptest.NewRequest("GET", "/v1/metrics", nil))
		must.Eq(t, 200, answer.Code)
		must.Eq(t, "application/json", answer.Header().Get("Content-Type"))
		var got telemetry.Summary
		must.NoError(t, json.Unmarshal(answer.Body.Bytes(), &got))
		must.SliceContains(t, got.Counters, telemetry.Counter{Name: "nodedrain_drains_ended_total", Count: 1, Labels: map[string]string{"outcome": "deadline_reached"}})
		must.SliceContains(t, got.Samples, telemetry.Sample{
			Name: "nodedrain_http_request_seconds", Count: 2, Sum: 1, Mean: 0.5, Labels: map[string]string{"method": "GET", "route": "/v1/nodes"},
		})
		must.SliceContains(t, got.Gauges, telemetry.Gauge{Name: "nodedrain_witness_index", Value: float64(l.Index), Labels: map[string]string{}})
		must.StrContains(t, answer.Body.String(), `"Points":[]`)
		l.Close()
	})
}

// Unknown routes do not grow without bound.
func TestRequest_routesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		for i := range telemetry.MaxRoutes + 7 {
			l.Request(fmt.Sprint("/", i), 200, 0)
		}
		l.Request("/0", 200, 0)
		must.Eq(t, telemetry.MaxRoutes+2, strings.Count(l.scrape(), "nodedrain_http_requests_total{")) // other: 200, and 404 from the start
		must.Eq(t, "7", l.value(`nodedrain_http_requests_total{code="200",method="",route="other"}`))
		must.Eq(t, "2", l.value(`nodedrain_http_requests_total{code="200",method="",route="/0"}`))
		l.Close()
	})
}

func TestNew_refuses(t *testing.T) {
	t.Parallel()
	_, err := telemetry.New(telemetry.Options{QueueSize: -1})
	must.ErrorContains(t, err, "Options.QueueSize is -1")
}
