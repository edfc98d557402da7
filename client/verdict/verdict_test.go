//race:skip one goroutine
package verdict_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/client/verdict"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

func TestTermsOf(t *testing.T) {
	group := func(m *cluster.MigrateStrategy) *cluster.TaskGroup { return &cluster.TaskGroup{Migrate: m} }
	standard := verdict.Terms{Least: 10 * time.Second, Deadline: 5 * time.Minute}
	must.Eq(t, standard, verdict.TermsOf(nil))
	must.Eq(t, standard, verdict.TermsOf(group(nil)))
	must.Eq(t, verdict.Terms{Least: time.Second, Deadline: time.Minute},
		verdict.TermsOf(group(&cluster.MigrateStrategy{MinHealthyTime: time.Second, HealthyDeadline: time.Minute})))
	must.Eq(t, verdict.Terms{Deadline: 5 * time.Minute}, verdict.TermsOf(group(&cluster.MigrateStrategy{})), must.Sprint("the drainer waits for the default deadline"))
}

// The longer of the times of the two blocks applies, for all of them. Bug: no test had an update block. A migrate block
// without a deadline has the default one, also beside a shorter one of the update block.
func TestTermsOf_bothBlocks(t *testing.T) {
	times := []time.Duration{0, time.Second, time.Minute, 10 * time.Minute}
	longest := func(a, b time.Duration) time.Duration {
		if a > b {
			return a
		}
		return b
	}
	for _, leastMigrate := range times {
		for _, deadlineMigrate := range times {
			for _, leastUpdate := range times {
				for _, deadlineUpdate := range times {
					migrate := &cluster.MigrateStrategy{MinHealthyTime: leastMigrate, HealthyDeadline: deadlineMigrate}
					update := &cluster.UpdateStrategy{MinHealthyTime: leastUpdate, HealthyDeadline: deadlineUpdate}
					own := deadlineMigrate
					if own == 0 {
						own = 5 * time.Minute
					}
					must.Eq(t, verdict.Terms{Least: longest(leastMigrate, leastUpdate), Deadline: longest(own, deadlineUpdate)},
						verdict.TermsOf(&cluster.TaskGroup{Migrate: migrate, Update: update}), must.Sprintf("%+v, %+v", migrate, update))
					must.Eq(t, verdict.Terms{Least: longest(10*time.Second, leastUpdate), Deadline: longest(5*time.Minute, deadlineUpdate)},
						verdict.TermsOf(&cluster.TaskGroup{Update: update}), must.Sprintf("no migrate block, %+v", update))
				}
			}
		}
	}
}

// A record of an earlier release has no count.
func TestHistory_ofAnOlderRecord(t *testing.T) {
	var h verdict.History
	must.NoError(t, json.Unmarshal([]byte(`{"Healthy":true,"HealthyAt":"2026-01-01T00:00:00Z"}`), &h))
	must.Eq(t, verdict.History{Healthy: new(true)}, h)
	must.EqOp(t, 10*time.Second, h.Need(verdict.TermsOf(nil)))
}

func TestHistory_need(t *testing.T) {
	minute := verdict.Terms{Least: 10 * time.Second, Deadline: time.Minute}
	for falses, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute} {
		h := verdict.History{Falses: falses}
		must.EqOp(t, want, h.Need(minute))
	}
	h := verdict.History{Falses: 1 << 40}
	must.EqOp(t, time.Minute, h.Need(verdict.Terms{Deadline: time.Minute}))
	must.EqOp(t, verdict.Never, h.Need(verdict.Terms{Least: 1, Deadline: verdict.Never}))
	must.EqOp(t, 0, new(verdict.History).Need(verdict.Terms{Deadline: time.Minute}))
	third := verdict.History{Falses: 3}
	must.EqOp(t, 8*time.Second, third.Need(verdict.Terms{Deadline: time.Minute}), must.Sprint("bug: it was zero for ever"))
}

// Between two true verdicts are five seconds, however short the least time of the group is.
func TestHistory_trueAgain(t *testing.T) {
	var h verdict.History
	facts := verdict.Facts{Terms: verdict.Terms{Deadline: time.Minute}, Received: time.Second, Since: time.Second, Tasks: verdict.Up}
	h.Judge(time.Second, facts)
	must.True(t, *h.Healthy)
	facts.Tasks = verdict.Down
	h.Judge(2*time.Second, facts)
	must.False(t, *h.Healthy)
	facts.Tasks, facts.Since = verdict.Up, 3*time.Second
	changed, next := h.Judge(5*time.Second, facts)
	must.False(t, changed)
	must.EqOp(t, 6*time.Second, next)
	h.Judge(next, facts)
	must.True(t, *h.Healthy)
}

// second is one second of an allocation.
type second struct {
	tasks  verdict.Tasks
	failed bool
}

// given is one verdict.
type given struct {
	at      int
	healthy bool
}

// twin is a simple form of the rule. It decides each second from all seconds and verdicts so far.
func twin(seconds []second, verdicts []given, least, deadline int) (healthy, changes bool) {
	now, present := len(seconds)-1, seconds[len(seconds)-1]
	falses, lastTrue := 0, -1
	for i, v := range verdicts {
		if v.healthy {
			lastTrue = v.at
			continue
		}
		if i > 0 && verdicts[i-1].healthy {
			for passed := v.at - verdicts[i-1].at; passed >= deadline && falses > 0; passed -= deadline {
				falses--
			}
		}
		falses++
	}
	need := least
	if falses > 0 {
		need = max(need, 1)
	}
	for i := 0; i < falses && need < deadline; i++ {
		need *= 2
	}
	ran := -1 // seconds since the tasks are up
	for i := now; i >= 0 && seconds[i].tasks != verdict.Down; i-- {
		ran++
	}
	judged := len(verdicts) > 0
	good := judged && verdicts[len(verdicts)-1].healthy
	switch {
	case good:
		return false, present.tasks == verdict.Down
	case present.tasks == verdict.Down && present.failed && !judged:
		return false, true
	case present.tasks == verdict.Up && ran >= min(need, deadline) && (lastTrue < 0 || now >= lastTrue+5):
		return true, true
	}
	return false, !judged && now >= deadline
}

// The rule agrees with its twin in each second of random histories. It changes nothing before the time
// that it returned.
func TestHistory_twin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.IntRange(0, 6).Draw(t, "least")
		deadline := rapid.IntRange(max(1, least), 40).Draw(t, "deadline")
		facts := verdict.Facts{Terms: verdict.Terms{Least: time.Duration(least) * time.Second, Deadline: time.Duration(deadline) * time.Second}, Received: time.Second}
		var h verdict.History
		var seconds []second
		var verdicts []given
		wake, since := verdict.Never, 0
		for range rapid.IntRange(1, 12).Draw(t, "stretches") {
			s := second{tasks: rapid.SampledFrom([]verdict.Tasks{verdict.Down, verdict.Down, verdict.Unsure, verdict.Up, verdict.Up, verdict.Up}).Draw(t, "tasks")}
			s.failed = s.tasks == verdict.Down && rapid.IntRange(0, 9).Draw(t, "failed") == 0
			wake = 0 // the facts change
			for range rapid.IntRange(1, 60).Draw(t, "seconds") {
				now := len(seconds)
				if s.tasks != verdict.Down && (now == 0 || seconds[now-1].tasks == verdict.Down) {
					since = now
				}
				seconds = append(seconds, s)
				at := time.Duration(now+1) * time.Second
				facts.Tasks, facts.Failed, facts.Since = s.tasks, s.failed, time.Duration(since+1)*time.Second
				healthy, changes := twin(seconds, verdicts, least, deadline)
				changed, next := h.Judge(at, facts)
				must.EqOp(t, changes, changed, must.Sprintf("second %d", now))
				must.Greater(t, at, next)
				if changed {
					must.EqOp(t, healthy, *h.Healthy)
					must.LessEq(t, at, wake, must.Sprintf("second %d: a change before the time of the next step", now))
					verdicts = append(verdicts, given{now, healthy})
				}
				wake = next
			}
		}
	})
}
