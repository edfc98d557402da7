package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
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
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/telemetry"
)

var rewrite = flag.Bool("rewrite", false, "write down what is scraped as what is expected")

// log is an FSM whose every entry is counted.
type log struct {
	*testing.T
	*telemetry.Telemetry
	fsm   *shims.FSM
	index uint64
	eval  cluster.EvalID // of the last mark
	out   bytes.Buffer   // what was logged
}

// newLog begins a log of three nodes and a job of three allocations on two of them.
func newLog(t *testing.T, o telemetry.Options) *log {
	t.Helper()
	l := &log{T: t}
	o.Logger = hclog.New(&hclog.LoggerOptions{Output: &l.out})
	var err error
	l.Telemetry, err = telemetry.New(o)
	must.NoError(t, err)
	l.fsm = shims.NewFSM(shims.FSMConfig{OnApply: l.OnApply})
	l.begin()
	return l
}

func (l *log) begin() {
	for _, id := range []cluster.NodeID{"n1", "n2", "n3"} {
		n := &cluster.Node{ID: id, Name: string(id), Status: cluster.NodeReady, Resources: cluster.Resources{CPU: 1000}}
		n.Canonicalize()
		l.apply(&shims.NodeRegister{At: time.Now(), Node: n})
	}
	job := &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{{Name: "g", Count: 3, Tasks: []*cluster.Task{{Name: "t"}}}}}
	job.Canonicalize()
	l.apply(&shims.JobRegister{Job: job, Evals: []*cluster.Evaluation{eval("e0")}})
	done := eval("e0")
	done.Status = cluster.EvalComplete
	l.apply(&shims.ApplyPlan{Plan: cluster.Plan{At: time.Now(), SnapshotIndex: l.index, Eval: done, Places: []*cluster.Allocation{
		l.place("a1", "", "n1", 0), l.place("a2", "", "n1", 1), l.place("a3", "", "n2", 2),
	}}})
	l.report(cluster.ClientRunning, "a1", "a2", "a3")
}

func eval(id cluster.EvalID) *cluster.Evaluation {
	return &cluster.Evaluation{
		ID: id, Namespace: "default", JobID: "web", Type: cluster.JobService, Priority: 50, Status: cluster.EvalPending,
	}
}

var webKey = cluster.JobKey{Namespace: "default", ID: "web"}

func (l *log) place(id, previous cluster.AllocID, on cluster.NodeID, number int) *cluster.Allocation {
	return &cluster.Allocation{
		ID: id, Namespace: "default", JobID: "web", Job: l.state().Job(webKey), TaskGroup: "g", NodeID: on, Name: fmt.Sprintf("web.g[%d]", number),
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending, PreviousAllocation: previous, CreateTime: time.Now(),
	}
}

func (l *log) state() *statestore.Snapshot { return l.fsm.Store().Snapshot() }

// apply applies a message a second after the last.
func (l *log) apply(m shims.Message) shims.Response {
	l.Helper()
	time.Sleep(time.Second)
	data, err := shims.Encode(m)
	must.NoError(l, err)
	l.index++
	response, err := l.fsm.ApplyEntry(l.index, data)
	must.NoError(l, err)
	l.Answered(m, shims.Answer{Outcome: raftwrite.Applied, Index: l.index, Response: response})
	synctest.Wait()
	return response
}

func (l *log) report(status cluster.ClientStatus, ids ...cluster.AllocID) {
	l.Helper()
	m := new(shims.AllocClientUpdate)
	for _, id := range ids {
		healthy := true
		r := cluster.AllocReport{Alloc: id, Node: l.state().Alloc(id).NodeID, ClientStatus: status, At: time.Now()}
		if status == cluster.ClientRunning {
			r.Healthy, r.HealthyAt = &healthy, r.At
		}
		m.Reports = append(m.Reports, r)
	}
	l.apply(m)
}

func (l *log) drain(deadline time.Duration) {
	l.Helper()
	l.apply(&shims.NodeUpdateDrain{DrainUpdate: statestore.DrainUpdate{Node: "n1", Drain: "d1", Spec: &cluster.DrainSpec{Deadline: deadline}, At: time.Now()}})
}

// mark marks allocations of n1 as the drainer would.
func (l *log) mark(class cluster.MarkClass, ids ...cluster.AllocID) shims.MarksApplied {
	l.Helper()
	l.eval = cluster.EvalID(fmt.Sprint("e", l.index))
	m := &shims.AllocUpdateDesiredTransition{Marks: rules.Marks{At: time.Now(), Evals: []*cluster.Evaluation{eval(l.eval)}}}
	d := l.state().Node("n1").Drain
	for _, id := range ids {
		m.Marks.Marks = append(m.Marks.Marks, rules.Mark{
			Alloc: id, Node: "n1", Group: cluster.GroupKey{Job: webKey, Name: "g"}, Drain: d.ID, Revision: d.Revision, Class: class,
		})
	}
	return l.apply(m).(shims.MarksApplied)
}

// move stops a marked allocation, places another on n3, and has their clients report.
func (l *log) move(old, replacement cluster.AllocID, number int) {
	l.Helper()
	done := eval(l.eval)
	done.Status = cluster.EvalComplete
	l.apply(&shims.ApplyPlan{Plan: cluster.Plan{
		At: time.Now(), SnapshotIndex: l.index, Eval: done,
		Stops: []cluster.PlanStop{{Alloc: old, Migrate: true}}, Places: []*cluster.Allocation{l.place(replacement, old, "n3", number)},
	}})
	l.report(cluster.ClientComplete, old)
	l.report(cluster.ClientRunning, replacement)
}

func (l *log) complete() {
	l.Helper()
	d := l.state().Node("n1").Drain
	completed := l.apply(&shims.NodesDrainComplete{Completions: rules.Completions{At: time.Now(), Completions: []rules.Completion{
		{Node: "n1", Drain: d.ID, Revision: d.Revision},
	}}}).(shims.CompletionsApplied)
	must.SliceLen(l, 1, completed.Ended)
}

// scrape returns what Prometheus would read, without what Go says of itself.
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

// value is the value of a series as it was scraped, or empty.
func (l *log) value(series string) string {
	l.Helper()
	for line := range strings.Lines(l.scrape()) {
		if value, is := strings.CutPrefix(strings.TrimSpace(line), series+" "); is {
			return value
		}
	}
	return ""
}

// drained drains n1 as it should be, with a deadline that passes on the way.
func (l *log) drained() {
	l.Helper()
	l.drain(20 * time.Second)
	must.SliceLen(l, 1, l.mark(cluster.MarkPaced, "a1", "a2").Accepted) // one has room, the other is refused
	l.move("a1", "b1", 0)
	time.Sleep(20 * time.Second)
	must.SliceLen(l, 1, l.mark(cluster.MarkDeadline, "a2").Accepted)
	l.move("a2", "b2", 1)
	l.complete()
}

// running are sources as a leader has them.
func (l *log) running() telemetry.Sources {
	began := time.Now()
	status := func(id cluster.DrainID, deadline, bound time.Duration) rules.Status {
		s := rules.Status{Drain: &cluster.Drain{ID: id, Strategy: cluster.DrainStrategy{DrainSpec: cluster.DrainSpec{Deadline: deadline}}}}
		if deadline > 0 {
			s.Drain.Strategy.ForceDeadline = began.Add(deadline)
			s.EndsBy = s.Drain.Strategy.ForceDeadline // as seen now: a time to come
			if now := time.Now(); now.After(s.EndsBy) {
				s.EndsBy = now
			}
			s.EndsBy = s.EndsBy.Add(bound)
		}
		s.Waiting[rules.ReasonWaitingForRoom], s.Waiting[rules.ReasonStopping] = 3, 1
		s.Left[cluster.StageConsumers] = 4
		return s
	}
	return telemetry.Sources{
		Drains: func() ([]rules.Status, error) {
			return []rules.Status{
				status("d1", 0, 0), status("d2", time.Hour, time.Hour), status("d3", time.Second, time.Hour), status("d4", time.Second, time.Second),
			}, nil
		},
		Raft:            leading{state: raft.Leader},
		BlockingQueries: func() int { return 5 },
	}
}

type leading struct {
	state raft.RaftState
	heard time.Time
}

func (l leading) State() raft.RaftState { return l.state }
func (leading) LastIndex() uint64       { return 30 }
func (leading) CommitIndex() uint64     { return 29 }
func (leading) AppliedIndex() uint64    { return 28 }
func (l leading) LastContact() time.Time {
	return l.heard
}

// What a server says of a drain, to the letter: names, labels, help and values.
func TestScrape(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{CertificateExpires: func() time.Time { return time.Unix(1_900_000_000, 0) }})
		l.drained()
		l.Watch(l.running())
		must.Eq(t, "4", l.value(`nodedrain_drains{state="draining"}`))
		l.apply(&shims.NodeUpdateStatus{At: time.Now(), Node: "n2", Status: cluster.NodeDown})
		l.apply(&shims.NodeUpdateStatus{At: time.Now(), Node: "n2", Status: cluster.NodeDown}) // it was already
		time.Sleep(3 * time.Second)
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
		want, err := os.ReadFile(golden)
		must.NoError(t, err)
		must.Eq(t, string(want), got)
		must.StrNotContains(t, l.out.String(), "broken")
		l.Close()
	})
}

// Every series of the golden scrape stands in the table of docs/metrics.md, and none
// stands there that there is not.
func TestScrape_isDocumented(t *testing.T) {
	t.Parallel()
	golden, err := os.ReadFile("testdata/scrape.txt")
	must.NoError(t, err)
	series := map[string]string{}
	for line := range strings.Lines(string(golden)) {
		if rest, is := strings.CutPrefix(line, "# TYPE "); is {
			name, kind, _ := strings.Cut(strings.TrimSpace(rest), " ")
			series[name] = kind
		}
	}
	text, err := os.ReadFile("../docs/metrics.md")
	must.NoError(t, err)
	documented := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if columns := strings.Split(line, "|"); len(columns) > 4 && strings.HasPrefix(columns[1], " `nodedrain_") {
			documented[strings.Trim(columns[1], " `")] = strings.TrimSpace(columns[2])
		}
	}
	must.MapEq(t, series, documented)
}

// A broken promise is counted and logged, whoever let it pass: here an FSM that was
// told that the group has more room than it has.
func TestAudit_countsWhatIsBroken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		l.drain(0)
		must.Eq(t, "0", l.value(`nodedrain_invariant_violations_total{guarantee="G1"}`))
		// The witness sees an entry whose state has lost an allocation on the way: what
		// was room is none any more.
		before := l.state()
		broken := shims.Applied{
			Index: before.Index() + 1, Type: shims.AllocUpdateDesiredTransitionType, Before: before, After: l.withLess(before, "a3", "a1"),
			Message: &shims.AllocUpdateDesiredTransition{Marks: rules.Marks{At: time.Now(), Marks: []rules.Mark{{Alloc: "a1", Node: "n1"}}}}, Response: shims.MarksApplied{},
		}
		l.OnApply(broken)
		synctest.Wait()
		must.Eq(t, "1", l.value(`nodedrain_invariant_violations_total{guarantee="G1"}`))
		must.StrContains(t, l.out.String(), "[ERROR] telemetry: a guarantee of the drainer is broken: guarantee=G1")
		for _, field := range []string{"node=n1", "drain=d1", "alloc=a1", "job=default/web", "group=g"} {
			must.StrContains(t, l.out.String(), field)
		}
		// However often that goes on, it is counted, and the log stays readable.
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

// withLess is the state after the mark of one allocation, made anew in which another
// is down.
func (l *log) withLess(before *statestore.Snapshot, lost, marked cluster.AllocID) *statestore.Snapshot {
	other := shims.NewFSM(shims.FSMConfig{})
	var stream bytes.Buffer
	must.NoError(l, before.Persist(&stream))
	must.NoError(l, other.Restore(readCloser{&stream}))
	apply := func(index uint64, m shims.Message) {
		data, err := shims.Encode(m)
		must.NoError(l, err)
		_, err = other.ApplyEntry(index, data)
		must.NoError(l, err)
	}
	d := before.Node("n1").Drain
	apply(before.Index()+1, &shims.AllocUpdateDesiredTransition{Marks: rules.Marks{At: time.Now(), Evals: []*cluster.Evaluation{eval("x")}, Marks: []rules.Mark{{
		Alloc: marked, Node: "n1", Group: cluster.GroupKey{Job: webKey, Name: "g"}, Drain: d.ID, Revision: d.Revision, Class: cluster.MarkPaced,
	}}}})
	apply(before.Index()+2, &shims.AllocClientUpdate{Reports: []cluster.AllocReport{{Alloc: lost, Node: "n2", ClientStatus: cluster.ClientFailed, At: time.Now()}}})
	return other.Store().Snapshot()
}

type readCloser struct{ *bytes.Buffer }

func (readCloser) Close() error { return nil }

// A log that is read again at a start is witnessed, and its drains are not counted as
// if they ended now. Who comes late, or misses entries, goes on from the state.
func TestAudit_replay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var entries []shims.Applied
		first := newLog(t, telemetry.Options{})
		first.fsm = shims.NewFSM(shims.FSMConfig{OnApply: func(a shims.Applied) {
			entries = append(entries, a)
			first.OnApply(a)
		}})
		first.index = 0
		first.begin()
		first.drained()
		const ended = `nodedrain_drains_ended_total{outcome="deadline reached"}`
		must.Eq(t, "1", first.value(ended))

		for begin := range entries {
			late, err := telemetry.New(telemetry.Options{})
			must.NoError(t, err)
			l := &log{T: t, Telemetry: late}
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

// Entries that go by unseen, whichever they are, make the witness begin anew, and are
// no broken promise.
func TestAudit_gaps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		var entries []shims.Applied
		l.fsm = shims.NewFSM(shims.FSMConfig{OnApply: func(a shims.Applied) { entries = append(entries, a) }})
		l.index = 0
		l.begin()
		l.drained()
		l.Close()
		for from := range entries {
			for to := from + 1; to < len(entries); to++ {
				gappy, err := telemetry.New(telemetry.Options{})
				must.NoError(t, err)
				for i, a := range entries {
					if i < from || i >= to {
						gappy.OnApply(a)
					}
				}
				gappy.Close()
				summary, err := gappy.Summary()
				must.NoError(t, err)
				for _, c := range summary.Counters {
					if c.Name == "nodedrain_invariant_violations_total" {
						must.Zero(t, c.Count, must.Sprintf("without %d to %d: %v", from, to, c))
					}
				}
			}
		}
	})
}

// The witness does not remember drains for ever: when it remembers much that is over
// another goes on in its place, and misses nothing.
func TestAudit_remembersWithinBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		const bound = 30
		l.SetRemembers(bound)
		most := 0
		for i := range 60 {
			id := cluster.DrainID(fmt.Sprint("d", i))
			l.apply(&shims.NodeUpdateDrain{DrainUpdate: statestore.DrainUpdate{Node: "n1", Drain: id, Spec: new(cluster.DrainSpec), At: time.Now()}})
			must.SliceLen(t, 1, l.mark(cluster.MarkPaced, "a1").Accepted)
			l.apply(&shims.NodeUpdateDrain{DrainUpdate: statestore.DrainUpdate{Node: "n1", At: time.Now()}})
			size, err := strconv.Atoi(l.value("nodedrain_witness_size"))
			must.NoError(t, err)
			most = max(most, size)
		}
		// It began with nothing, and later with the records that are kept, ten of them.
		must.Between(t, bound, most, bound+cluster.MaxDrainRecordsPerNode+5)
		must.Eq(t, "60", l.value(`nodedrain_drains_ended_total{outcome="cancelled"}`))
		must.StrNotContains(t, l.out.String(), "broken")
		l.Close()
	})
}

// A drain has one first mark, however many are made at once; and it is late only after
// its deadline.
func TestAudit_times(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		l.drain(time.Second)
		time.Sleep(10 * time.Second)
		must.SliceLen(t, 2, l.mark(cluster.MarkDeadline, "a1", "a2").Accepted)
		must.Eq(t, "1", l.value("nodedrain_drain_first_mark_seconds_count"))
		must.Eq(t, "11", l.value("nodedrain_drain_first_mark_seconds_sum"))
		l.Close()

		l = newLog(t, telemetry.Options{})
		l.drain(time.Hour)
		l.mark(cluster.MarkPaced, "a1")
		l.move("a1", "b1", 0)
		l.mark(cluster.MarkPaced, "a2")
		l.move("a2", "b2", 1)
		l.complete()
		must.Eq(t, "1", l.value(`nodedrain_drains_ended_total{outcome="complete"}`))
		must.Eq(t, "9", l.value(`nodedrain_drain_duration_seconds_sum{outcome="complete"}`))
		must.Eq(t, "0", l.value("nodedrain_drain_deadline_lateness_seconds_count"))
		l.Close()
	})
}

// Raft's goroutine never waits for the witness: what finds the queue full goes by, is
// counted, and is no broken promise.
func TestOnApply_neverBlocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{QueueSize: 1})
		var entries []shims.Applied
		l.fsm = shims.NewFSM(shims.FSMConfig{OnApply: func(a shims.Applied) { entries = append(entries, a) }})
		l.index = 0
		l.begin()
		l.drained()
		l.Close() // the goroutine is gone: nobody empties the queue
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

// A drain is past its bound by the one that was first seen, until its deadline is set
// anew; what ends is forgotten.
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
			for _, state := range []string{"draining", "past deadline", "past bound"} {
				if l.value(`nodedrain_drains{state="`+state+`"}`) == "1" {
					return state
				}
			}
			return "none"
		}
		must.Eq(t, "past deadline", state())
		time.Sleep(time.Minute)
		must.Eq(t, "past deadline", state())
		time.Sleep(time.Second)
		must.Eq(t, "past bound", state())
		d = d.Copy()
		d.Revision = 2
		must.Eq(t, "past deadline", state())
		time.Sleep(2 * time.Minute)
		must.Eq(t, "past bound", state())
		runs = false
		must.Eq(t, "none", state())
		runs = true
		must.Eq(t, "past deadline", state())
		l.Close()
	})
}

// A follower says nothing of drains, which it does not know, and how long ago it
// heard of the leader.
func TestScrape_follower(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		l.Watch(telemetry.Sources{
			Drains: func() ([]rules.Status, error) { return nil, rules.ErrNotEnabled },
			Raft:   leading{state: raft.Follower, heard: time.Now().Add(-2 * time.Second)},
		})
		must.StrNotContains(t, l.scrape(), "nodedrain_drains{")
		must.Eq(t, "0", l.value("nodedrain_raft_leads"))
		must.Eq(t, "2", l.value("nodedrain_raft_last_contact_seconds"))
		l.Watch(telemetry.Sources{Raft: leading{state: raft.Candidate}})
		must.Eq(t, "", l.value("nodedrain_raft_last_contact_seconds"))
		l.Close()
	})
}

// Without a format the same numbers come in JSON, in the shape that clients of the
// compatible API read.
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
		must.SliceContains(t, got.Counters, telemetry.Counter{Name: "nodedrain_drains_ended_total", Count: 1, Labels: map[string]string{"outcome": "deadline reached"}})
		must.SliceContains(t, got.Samples, telemetry.Sample{
			Name: "nodedrain_http_request_seconds", Count: 2, Sum: 1, Mean: 0.5, Labels: map[string]string{"route": "GET /v1/nodes"},
		})
		must.SliceContains(t, got.Gauges, telemetry.Gauge{Name: "nodedrain_witness_index", Value: float64(l.index), Labels: map[string]string{}})
		must.StrContains(t, answer.Body.String(), `"Points":[]`)
		l.Close()
	})
}

// Routes that nobody knows beforehand do not grow without end.
func TestRequest_routesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		for i := range telemetry.MaxRoutes + 7 {
			l.Request(fmt.Sprint("/", i), 200, 0)
		}
		l.Request("/0", 200, 0)
		must.Eq(t, telemetry.MaxRoutes+2, strings.Count(l.scrape(), "nodedrain_http_requests_total{")) // other: 200, and 404 from the start
		must.Eq(t, "7", l.value(`nodedrain_http_requests_total{code="200",route="other"}`))
		must.Eq(t, "2", l.value(`nodedrain_http_requests_total{code="200",route="/0"}`))
		l.Close()
	})
}

// Events that begin a series at the same time are all counted.
func TestRequest_concurrently(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, telemetry.Options{})
		const series, events = 200, 8
		for code := range series {
			start := make(chan struct{})
			for range events {
				go func() {
					<-start
					l.Request("GET /v1/nodes", code, time.Millisecond)
				}()
			}
			synctest.Wait()
			close(start)
			synctest.Wait()
		}
		scraped := l.scrape()
		for code := range series {
			must.StrContains(t, scraped, fmt.Sprintf("nodedrain_http_requests_total{code=\"%d\",route=\"GET /v1/nodes\"} %d\n", code, events))
		}
		l.Close()
	})
}

func TestNew_refuses(t *testing.T) {
	t.Parallel()
	_, err := telemetry.New(telemetry.Options{QueueSize: -1})
	must.ErrorContains(t, err, "Options.QueueSize is -1")
}
