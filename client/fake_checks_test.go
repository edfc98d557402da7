package client_test

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/checks"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// probed is what happened to one run of a check.
type probed struct {
	check      string
	task       client.TaskRef
	began, end time.Duration // end is zero while the run is in flight
}

// fakeChecks decide the results of checks.
type fakeChecks struct {
	// results are the results by check, or nothing for one that passes. hangs are the checks that do not answer
	// before they are ended.
	results map[string]checks.Result
	hangs   map[string]bool
	runs    []*probed
	// flying are the runs that hang.
	flying map[uint64]func()
}

func newFakeChecks() *fakeChecks {
	return &fakeChecks{results: map[string]checks.Result{}, hangs: map[string]bool{}, flying: map[uint64]func(){}}
}

// count counts the runs of a check that have begun.
func (f *fakeChecks) count(check string) (count int) {
	for _, r := range f.runs {
		if r.check == check {
			count++
		}
	}
	return count
}

func (s *shell) Check(run client.CheckRun, reply func(checks.Result)) {
	n := s.node
	name := run.Definition.Check.Name
	p := &probed{check: name, task: run.Task, began: n.boot}
	n.checks.runs = append(n.checks.runs, p)
	answer := func(r checks.Result) func() func() {
		return func() func() {
			p.end = n.boot
			return func() { reply(r) }
		}
	}
	if n.checks.hangs[name] {
		if s.effect() {
			n.checks.flying[run.Number] = func() { s.later(time.Millisecond, answer(checks.Result{Output: "ended"})) }
		}
		return
	}
	r, scripted := n.checks.results[name]
	if !scripted {
		r = checks.Result{Outcome: checks.Passed, Output: "good"}
	}
	s.later(5*time.Millisecond, answer(r))
}

func (s *shell) EndCheck(_ cluster.AllocID, run uint64) {
	if end := s.node.checks.flying[run]; end != nil && s.effect() {
		delete(s.node.checks.flying, run)
		end()
	}
}
