//race:skip one goroutine
package checks_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/client/checks"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// group returns a group with two tasks and one service of the group.
func group(all ...cluster.ServiceCheck) *cluster.TaskGroup {
	return &cluster.TaskGroup{
		Name: "g", Tasks: []*cluster.Task{{Name: "a"}, {Name: "b"}},
		Services: []cluster.Service{{Name: "web", TaskName: "a", PortLabel: "80", Checks: all}},
	}
}

func check(name string, change ...func(*cluster.ServiceCheck)) cluster.ServiceCheck {
	c := cluster.ServiceCheck{Name: name, Type: cluster.CheckTCP, Interval: 10 * time.Second, Timeout: 2 * time.Second}
	for _, f := range change {
		f(&c)
	}
	return c
}

// bench is a set with its clock.
type bench struct {
	set   *checks.Set
	now   checks.Time
	start checks.Start
}

func newBench(restored bool, all ...cluster.ServiceCheck) *bench {
	return &bench{set: checks.New(checks.Of(group(all...)), restored), now: checks.Time{Boot: time.Hour, Wall: time.Unix(1000, 0)}, start: checks.Start{ID: "1", Since: time.Hour}}
}

func (b *bench) step() checks.Work {
	return b.set.Step(b.now, func(checks.Definition) checks.Start { return b.start })
}

func (b *bench) wait(d time.Duration) {
	b.now = checks.Time{Boot: b.now.Boot + d, Wall: b.now.Wall.Add(d)}
}

func TestOf(t *testing.T) {
	g := group(check("one"))
	g.Services = append(g.Services, g.Services[0], cluster.Service{Name: "web", Checks: []cluster.ServiceCheck{check("one")}})
	g.Tasks[1].Services = []cluster.Service{{Name: "web", Checks: []cluster.ServiceCheck{check("one", func(c *cluster.ServiceCheck) { c.TaskName = "a" })}}}
	var all []string
	for _, d := range checks.Of(g) {
		all = append(all, fmt.Sprintf("%s/%s/%d/%s of %q", d.Owner, d.Key.Service, d.Place, d.Key.Check, d.Task))
	}
	must.Eq(t, []string{`/web/0/one of "a"`, `/web/1/one of "a"`, `/web/2/one of ""`, `b/web/0/one of "a"`}, all)
}

// A run that is never answered fails once in each interval, and no other run begins.
func TestSet_hangingRun(t *testing.T) {
	b := newBench(false, check("c", func(c *cluster.ServiceCheck) { c.FailuresBeforeCritical = 3 }))
	w := b.step()
	must.SliceLen(t, 1, w.Begin)
	var failedAt time.Duration
	for b.now.Boot < 2*time.Hour && failedAt == 0 {
		b.wait(w.Next - b.now.Boot)
		w = b.step()
		must.SliceEmpty(t, w.Begin)
		if b.set.Reports()[0].Status == checks.Failure {
			failedAt = b.now.Boot - time.Hour
		}
	}
	must.EqOp(t, 30*time.Second, failedAt)
	must.StrContains(t, b.set.Reports()[0].Output, "timeout of 2s")
	b.set.Answer(1, b.now, checks.Result{Outcome: checks.Passed})
	must.EqOp(t, checks.Failure, b.set.Reports()[0].Status, must.Sprint("a late answer does not count"))
	b.wait(10 * time.Second)
	must.SliceLen(t, 1, b.step().Begin)
}

// A run of an earlier start is ended. Its answer does not count, and the first run of the next start waits for it.
func TestSet_newStart(t *testing.T) {
	b := newBench(false, check("c"))
	b.step()
	b.start.ID = ""
	must.Eq(t, []uint64{1}, b.step().End)
	b.start.ID = "2"
	must.SliceEmpty(t, b.step().Begin)
	b.set.Answer(1, b.now, checks.Result{Outcome: checks.Passed})
	must.EqOp(t, checks.Pending, b.set.Reports()[0].Status)
	must.SliceLen(t, 1, b.step().Begin)
}

// A warning counts for the health and for the restart on its own: each block has its own exception.
func TestSet_warnings(t *testing.T) {
	for _, test := range []struct {
		onUpdate cluster.CheckOnUpdate
		ignores  bool
		status   checks.Status
		restarts int
	}{
		{cluster.CheckMustPass, false, checks.Failure, 3},
		{cluster.CheckMustPass, true, checks.Failure, 0},
		{cluster.CheckMayWarn, false, checks.Success, 3},
		{cluster.CheckMayWarn, true, checks.Success, 0},
	} {
		t.Run(fmt.Sprintf("%s, ignored %t", test.onUpdate, test.ignores), func(t *testing.T) {
			b := newBench(false, check("c", func(c *cluster.ServiceCheck) {
				c.OnUpdate, c.Restart = test.onUpdate, &cluster.CheckRestart{Limit: 2, IgnoreWarnings: test.ignores}
			}))
			restarts := 0
			for range 6 {
				w := b.step()
				must.SliceLen(t, 1, w.Begin)
				b.set.Answer(w.Begin[0].Number, b.now, checks.Result{Outcome: checks.Warned})
				restarts += len(b.step().Restart)
				b.wait(10 * time.Second)
			}
			must.EqOp(t, test.restarts, restarts)
			must.EqOp(t, test.status, b.set.Reports()[0].Status)
		})
	}
}

// A client that was frozen does not decide by a result of before.
func TestSet_frozen(t *testing.T) {
	b := newBench(false, check("c"))
	b.step()
	b.set.Answer(1, b.now, checks.Result{Outcome: checks.Passed})
	b.step()
	status := func() checks.Status {
		status, _ := b.set.Verdict(b.now.Boot)
		return status
	}
	must.EqOp(t, checks.Success, status())
	b.wait(time.Hour)
	must.SliceLen(t, 1, b.step().Begin)
	must.EqOp(t, checks.Pending, status())
	b.set.Answer(2, b.now, checks.Result{Outcome: checks.Passed})
	must.EqOp(t, checks.Success, status())
}

func TestSet_update(t *testing.T) {
	b := newBench(false, check("same"), check("other"), check("gone"))
	for _, r := range b.step().Begin {
		if r.Key.Check != "gone" {
			b.set.Answer(r.Number, b.now, checks.Result{Outcome: checks.Passed})
		}
	}
	b.set.Update(checks.Of(group(check("new"), check("same"), check("other", func(c *cluster.ServiceCheck) { c.Timeout = time.Second }))))
	w := b.step()
	must.Eq(t, []uint64{3}, w.End)
	must.SliceLen(t, 2, w.Begin)
	var all []string
	for _, r := range b.set.Reports() {
		all = append(all, fmt.Sprint(r.Key.Check, " ", r.Status))
	}
	must.Eq(t, []string{"new pending", "same success", "other pending"}, all)
}

// After a restart of the client the first runs are spread over the interval, and those of later starts are not.
func TestSet_restored(t *testing.T) {
	var firsts []time.Duration
	for i := range 100 {
		b := newBench(true, check(fmt.Sprint("c", i)))
		w := b.step()
		if len(w.Begin) == 0 {
			firsts = append(firsts, w.Next-b.now.Boot)
			must.Between(t, 0, w.Next-b.now.Boot, 10*time.Second)
		}
		b.start.ID = "2"
		must.SliceLen(t, 1, b.step().Begin)
	}
	slices.Sort(firsts)
	must.Less(t, 3*time.Second, firsts[10])
	must.Greater(t, 7*time.Second, firsts[len(firsts)-10])
}

func TestSet_output(t *testing.T) {
	b := newBench(false, check("c"))
	b.step()
	b.set.Answer(1, b.now, checks.Result{Output: strings.Repeat("ä", checks.MaxOutput) + "\xff"})
	must.LessEq(t, checks.MaxOutput, len(b.set.Reports()[0].Output))
	must.EqOp(t, "", strings.Trim(b.set.Reports()[0].Output, "ä"))
}

// A job may have waits of centuries.
func TestSet_overflow(t *testing.T) {
	b := newBench(false, check("c", func(c *cluster.ServiceCheck) {
		c.Interval, c.Timeout, c.Restart = checks.Never, checks.Never, &cluster.CheckRestart{Limit: 1, Grace: checks.Never}
	}))
	must.EqOp(t, checks.Never, b.step().Next)
	b.set.Answer(1, b.now, checks.Result{})
	w := b.step()
	must.EqOp(t, checks.Never, w.Next)
	must.SliceEmpty(t, w.Restart)
}

// second is what happens to the check in one second: the start of its task, and the result of the run in flight if it ends.
type second struct {
	start   int // zero: the task does not run
	ends    bool
	outcome checks.Outcome
}

// twin is a simple form of the rules for one check. It reads all seconds from the beginning.
type twin struct {
	c        cluster.ServiceCheck
	interval int
	timeout  int
	began    []int // the seconds in which runs began
	restarts []int // the seconds in which the task must restart
	status   checks.Status
	since    int
	resultAt int // the second of the last result
}

func (w *twin) play(seconds []second) {
	w.began, w.restarts, w.status = nil, nil, checks.Pending
	limit := w.timeout + int(checks.AnswerSlack/time.Second)
	flying, stale, due, last, startAt := -1, false, 0, 0, 0
	var results []checks.Outcome
	count := 0
	note := func(now int, o checks.Outcome) {
		results, w.resultAt = append(results, o), now
		passes := func(o checks.Outcome) bool {
			return o == checks.Passed || o == checks.Warned && w.c.OnUpdate == cluster.CheckMayWarn
		}
		row := 0
		for i := len(results) - 1; i >= 0 && passes(results[i]) == passes(o); i-- {
			row++
		}
		switch {
		case passes(o) && row >= max(1, w.c.SuccessBeforePassing):
			if w.status != checks.Success {
				w.status, w.since = checks.Success, now
			}
		case !passes(o) && row >= max(1, w.c.FailuresBeforeCritical):
			w.status = checks.Failure
		}
		if r := w.c.Restart; r != nil {
			switch {
			case o == checks.Passed || o == checks.Warned && r.IgnoreWarnings:
				count = 0
			case now >= startAt+int(r.Grace/time.Second):
				count++
			}
		}
	}
	for now, s := range seconds {
		if s.ends && flying >= 0 { // answers come before the step
			if !stale && now < flying+limit {
				note(now, s.outcome)
			}
			flying, stale = -1, false
		}
		if s.start != last {
			last, stale, due, startAt = s.start, true, now, now
			results, count, w.status = nil, 0, checks.Pending
		}
		if s.start == 0 {
			continue
		}
		if flying < 0 && now >= due {
			flying, stale, due = now, false, now+w.interval
			w.began = append(w.began, now)
		}
		if flying >= 0 && now >= max(due, flying+limit) {
			note(now, checks.Failed)
			due = now + w.interval
		}
		if r := w.c.Restart; r != nil && count >= r.Limit {
			count = 0
			w.restarts = append(w.restarts, now)
		}
	}
}

// The set agrees with the twin in each second, and has nothing to do before the time that it returned.
func TestSet_twin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := twin{interval: rapid.IntRange(1, 8).Draw(t, "interval"), timeout: rapid.IntRange(1, 6).Draw(t, "timeout")}
		w.c = check("c", func(c *cluster.ServiceCheck) {
			c.Interval, c.Timeout = time.Duration(w.interval)*time.Second, time.Duration(w.timeout)*time.Second
			c.SuccessBeforePassing, c.FailuresBeforeCritical = rapid.IntRange(0, 3).Draw(t, "successes"), rapid.IntRange(0, 3).Draw(t, "failures")
			c.OnUpdate = rapid.SampledFrom([]cluster.CheckOnUpdate{cluster.CheckMustPass, cluster.CheckMayWarn}).Draw(t, "on_update")
			if rapid.Bool().Draw(t, "check_restart") {
				c.Restart = &cluster.CheckRestart{
					Limit: rapid.IntRange(1, 3).Draw(t, "limit"), Grace: time.Duration(rapid.IntRange(0, 20).Draw(t, "grace")) * time.Second,
					IgnoreWarnings: rapid.Bool().Draw(t, "ignore_warnings"),
				}
			}
		})
		set := checks.New(checks.Of(group(w.c)), false)
		var seconds []second
		var began, restarts []int
		var flying uint64
		start, since, wake := 0, 0, checks.Never
		for range rapid.IntRange(1, 15).Draw(t, "stretches") {
			changed := false
			if rapid.IntRange(0, 3).Draw(t, "task") == 0 {
				start, changed = rapid.IntRange(0, 3).Draw(t, "start"), true
			}
			answers := rapid.IntRange(0, 9).Draw(t, "answers") // of ten seconds
			outcome := rapid.SampledFrom([]checks.Outcome{checks.Passed, checks.Passed, checks.Warned, checks.Failed}).Draw(t, "outcome")
			for k := range rapid.IntRange(1, 20).Draw(t, "seconds") {
				now := len(seconds)
				at := checks.Time{Boot: time.Duration(now+1) * time.Second, Wall: time.Unix(int64(now), 0)}
				s := second{start: start, outcome: outcome, ends: flying != 0 && k%10 < answers}
				if now == 0 || seconds[now-1].start != start {
					since = now
				}
				seconds = append(seconds, s)
				if s.ends {
					set.Answer(flying, at, checks.Result{Outcome: outcome})
					flying = 0
				}
				work := set.Step(at, func(checks.Definition) checks.Start {
					if start == 0 {
						return checks.Start{}
					}
					return checks.Start{ID: fmt.Sprint(start), Since: time.Duration(since+1) * time.Second}
				})
				must.Greater(t, at.Boot, work.Next)
				acts := len(work.Begin) + len(work.Restart) + len(work.End)
				must.True(t, acts == 0 || s.ends || changed || now == 0 || at.Boot >= wake, must.Sprintf("second %d: work before the time of the next step", now))
				wake, changed = work.Next, false
				for _, r := range work.Begin {
					must.EqOp(t, 0, flying, must.Sprint("two runs of one check"))
					flying = r.Number
					began = append(began, now)
				}
				if len(work.Restart) > 0 {
					restarts = append(restarts, now)
				}
				w.play(seconds)
				must.EqOp(t, w.status, set.Reports()[0].Status, must.Sprintf("second %d", now))
				status, passesSince := set.Verdict(at.Boot)
				want := w.status
				if limit := w.interval + w.timeout + int(checks.AnswerSlack/time.Second); want == checks.Success && now > w.resultAt+limit {
					want = checks.Pending // an answer came so late that it does not count
				}
				must.EqOp(t, want, status)
				if status == checks.Success {
					must.EqOp(t, time.Duration(w.since+1)*time.Second, passesSince)
				}
			}
		}
		must.Eq(t, w.began, began)
		must.Eq(t, w.restarts, restarts)
	})
}
