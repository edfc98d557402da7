package checks

import (
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Time is one reading of the clocks of the node: the time since the boot of the machine, and the time of day.
type Time struct {
	Boot time.Duration
	Wall time.Time
}

// Never is no time.
const Never time.Duration = math.MaxInt64

// MaxOutput is the largest output of a result, in bytes.
const MaxOutput = 3 << 10

// AnswerSlack is how long after its timeout a run may take to end. Later it counts as failed.
const AnswerSlack = 5 * time.Second

// Key identifies a check of an allocation.
type Key struct {
	// Owner is the task of the service, or empty for a service of the group.
	Owner, Service string
	// Place counts the earlier services of the owner with the same name.
	Place int
	Check string
}

// Definition is one check of a group, with its service.
type Definition struct {
	Key
	// Task is the task that the check belongs to, or empty for all main tasks.
	Task    string
	Service *cluster.Service
	Check   *cluster.ServiceCheck
}

// Of returns the checks of a group, in the order of their services.
func Of(g *cluster.TaskGroup) (all []Definition) {
	type name struct{ owner, service string }
	places := map[name]int{}
	for owner, s := range g.ServiceDefinitions() {
		of := name{owner, s.Name}
		for i := range s.Checks {
			c := &s.Checks[i]
			all = append(all, Definition{
				Key: Key{Owner: owner, Service: s.Name, Place: places[of], Check: c.Name}, Task: g.CheckTask(owner, s, c), Service: s, Check: c,
			})
		}
		places[of]++
	}
	return all
}

// equal reports whether a check continues under another definition: its runs and their meaning are the same.
func (d Definition) equal(o Definition) bool {
	return d.Key == o.Key && d.Task == o.Task && d.Check.Equal(*o.Check) &&
		d.Service.PortLabel == o.Service.PortLabel && d.Service.Address == o.Service.Address
}

// decides reports whether the check decides about the health of its allocation.
func (d Definition) decides() bool { return d.Check.OnUpdate != cluster.CheckIgnored }

// String names the check for operators.
func (d Definition) String() string {
	return fmt.Sprintf("check %q of service %q", d.Key.Check, d.Key.Service)
}

// Outcome is how a run has ended.
type Outcome uint8

// The outcomes of a run.
const (
	Failed Outcome = iota
	// Warned: a script has exited with 1.
	Warned
	Passed
)

// Result is the result of a run.
type Result struct {
	Outcome Outcome
	// Code is the status of an HTTP answer, or zero.
	Code   int
	Output string
}

// Status is what the results of a check mean. Its values are those of the compatible API.
type Status string

// The values of [Status].
const (
	// Pending: too few results have come since the start of the task.
	Pending Status = "pending"
	Success Status = "success"
	Failure Status = "failure"
)

// Report describes a check.
type Report struct {
	Definition
	Status Status
	// Output and Code are those of the last result of this start of the task, and At is its time, or zero.
	Output string
	Code   int
	At     time.Time
}

// Run is one run of a check.
type Run struct {
	Definition
	// Number identifies the run in its set.
	Number uint64
}

// Start is the present start of a task.
type Start struct {
	// ID identifies the start. It is empty if the checks of the task must not run.
	ID string
	// Since is when the task has started.
	Since time.Duration
}

// Work is what the owner of a [Set] must do after a step.
type Work struct {
	// Begin are runs that begin, and End the numbers of runs whose results are no longer needed. Their answers come
	// nevertheless.
	Begin []Run
	End   []uint64
	// Restart are checks that have failed so often that their tasks must be restarted.
	Restart []Report
	// Next is when the next step is due, or [Never].
	Next time.Duration
}

// Set are the checks of one allocation.
type Set struct {
	all []*check
	// dropped are the runs that a change of the definitions has ended.
	dropped []uint64
	last    uint64
}

// check is the state of one check.
type check struct {
	Report
	start Start
	// restored: the first run has to be spread.
	restored bool
	// due is when the next run begins.
	due time.Duration
	// run is the run in flight, or zero. It began at began. ended: its result is not needed.
	run   uint64
	began time.Duration
	ended bool
	// passes and fails count the last results, and restarts those that count for a restart.
	passes, fails, restarts int
	// passesSince is when the check has last become successful, and resultAt when it had its last result.
	passesSince, resultAt time.Duration
}

// New returns a set. restored means that a restarted client takes over many allocations: the first runs are
// spread over the interval.
func New(defs []Definition, restored bool) *Set {
	s := &Set{}
	s.Update(defs)
	for _, c := range s.all {
		c.restored = restored
	}
	return s
}

// Update changes the definitions. A check whose definition does not change continues.
func (s *Set) Update(defs []Definition) {
	old := s.all
	s.all = nil
	for _, d := range defs {
		c := &check{Report: Report{Definition: d, Status: Pending}}
		for i, o := range old {
			if o != nil && o.equal(d) {
				o.Definition = d
				c, old[i] = o, nil
				break
			}
		}
		s.all = append(s.all, c)
	}
	for _, o := range old {
		if o != nil && o.run != 0 && !o.ended {
			s.dropped = append(s.dropped, o.run)
		}
	}
}

// Step begins the runs that are due. startOf returns the present start of the tasks of a check.
func (s *Set) Step(now Time, startOf func(Definition) Start) Work {
	w := Work{End: s.dropped, Next: Never}
	s.dropped = nil
	for _, c := range s.all {
		if start := startOf(c.Definition); start.ID != c.start.ID {
			c.begin(now.Boot, start)
			if c.run != 0 && !c.ended {
				c.ended = true
				w.End = append(w.End, c.run)
			}
		}
		if c.start.ID == "" {
			continue
		}
		if c.run == 0 && now.Boot >= c.due {
			s.last++
			c.run, c.began, c.ended, c.due = s.last, now.Boot, false, later(now.Boot, c.Check.Interval)
			w.Begin = append(w.Begin, Run{Definition: c.Definition, Number: c.run})
		}
		if c.run != 0 && now.Boot >= c.overdue() {
			c.note(now, Result{Output: "the check has not ended in its timeout of " + c.Check.Timeout.String()})
			c.due = later(now.Boot, c.Check.Interval)
		}
		if r := c.Check.Restart; r != nil && c.restarts >= r.Limit {
			c.restarts = 0
			w.Restart = append(w.Restart, c.Report)
		}
		if c.run != 0 {
			w.Next = min(w.Next, c.overdue())
		} else {
			w.Next = min(w.Next, c.due)
		}
	}
	return w
}

// Answer takes in the result of a run. The owner steps the set next.
func (s *Set) Answer(run uint64, now Time, r Result) {
	for _, c := range s.all {
		if c.run != run {
			continue
		}
		needed := !c.ended && now.Boot < c.overdueSince()
		c.run, c.ended = 0, false
		if needed {
			c.note(now, r)
		}
	}
}

// Reports describes all checks.
func (s *Set) Reports() (all []Report) {
	for _, c := range s.all {
		all = append(all, c.Report)
	}
	return all
}

// Verdict returns what the checks that decide mean together: [Failure] if one fails, [Pending] if one has too few
// results, and [Success] since a time if all pass or none decides. A client that was frozen must not decide by results of
// before: a check whose last result is too old is pending too.
func (s *Set) Verdict(now time.Duration) (status Status, since time.Duration) {
	status = Success
	for _, c := range s.all {
		switch {
		case !c.decides():
		case c.Status == Failure:
			return Failure, 0
		case c.Status == Pending || now > later(c.resultAt, later(c.Check.Interval, later(c.Check.Timeout, AnswerSlack))):
			status = Pending
		default:
			since = max(since, c.passesSince)
		}
	}
	return status, since
}

// Deciding returns the checks that decide and have the status.
func (s *Set) Deciding(status Status) (all []Report) {
	for _, c := range s.all {
		if c.decides() && c.Status == status {
			all = append(all, c.Report)
		}
	}
	return all
}

// begin begins with a start of the task.
func (c *check) begin(now time.Duration, start Start) {
	c.start, c.due = start, now
	c.Status, c.Output, c.Code, c.At = Pending, "", 0, time.Time{}
	c.passes, c.fails, c.restarts = 0, 0, 0
	if c.restored && start.ID != "" {
		c.restored = false
		c.due = later(now, c.spread())
	}
}

// overdueSince is from when on the run in flight counts as failed.
func (c *check) overdueSince() time.Duration {
	return later(later(c.began, c.Check.Timeout), AnswerSlack)
}

// overdue is when the run in flight next counts as failed.
func (c *check) overdue() time.Duration { return max(c.due, c.overdueSince()) }

// spread is a time within the interval. It is the same for each client.
func (c *check) spread() time.Duration {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%q %q %q %d %q", c.start.ID, c.Owner, c.Key.Service, c.Place, c.Key.Check)
	return time.Duration(h.Sum64() % uint64(max(1, c.Check.Interval)))
}

// note counts a result.
func (c *check) note(now Time, r Result) {
	c.Output, c.Code, c.At, c.resultAt = cut(r.Output), r.Code, now.Wall, now.Boot
	passes := r.Outcome == Passed || r.Outcome == Warned && c.Check.OnUpdate == cluster.CheckMayWarn
	if passes {
		c.passes, c.fails = c.passes+1, 0
	} else {
		c.passes, c.fails = 0, c.fails+1
	}
	switch {
	case c.Status != Success && c.passes >= max(1, c.Check.SuccessBeforePassing):
		c.Status, c.passesSince = Success, now.Boot
	case c.fails >= max(1, c.Check.FailuresBeforeCritical):
		c.Status = Failure
	}
	switch restart := c.Check.Restart; {
	case restart == nil:
	case r.Outcome == Passed || r.Outcome == Warned && restart.IgnoreWarnings:
		c.restarts = 0
	case now.Boot >= later(c.start.Since, restart.Grace):
		c.restarts++
	}
}

// cut returns valid UTF-8 of at most [MaxOutput].
func cut(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), MaxOutput)], "")
}

// later is the time after a wait. A sum that overflows is [Never].
func later(at, wait time.Duration) time.Duration {
	if wait > Never-at {
		return Never
	}
	return at + wait
}
