package onnode

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// deciding returns the checks that decide about the health of an allocation.
func (a *alloc) deciding() (all []cluster.ServiceCheck) {
	g := a.group()
	tasksDecide := g.Migrate != nil && g.Migrate.HealthCheck == cluster.HealthTaskStates && g.Update != nil && g.Update.HealthCheck == cluster.HealthTaskStates
	services := g.Services
	for _, t := range g.Tasks {
		services = append(services[:len(services):len(services)], t.Services...)
	}
	for _, s := range services {
		for _, c := range s.Checks {
			if c.OnUpdate != cluster.CheckIgnored && !tasksDecide {
				all = append(all, c)
			}
		}
	}
	return all
}

// failsWithin is how long a client takes to find that a target does not pass.
func failsWithin(c cluster.ServiceCheck) time.Duration {
	return (c.Interval+c.Timeout)*time.Duration(max(1, c.FailuresBeforeCritical)) + noticed
}

// passesWithin is how long a client takes to find that a target passes. Its first run after the start of the client waits for
// an interval.
func passesWithin(c cluster.ServiceCheck) time.Duration {
	return (c.Interval+c.Timeout)*time.Duration(max(1, c.SuccessBeforePassing)+1) + noticed
}

// badTarget returns the check whose target has not passed for longer than a client takes to find it, and a time, or an empty
// name.
func (v verdicts) badTarget(n *machine.Node, a *alloc, at time.Time, longer time.Duration) (name string, since time.Time) {
	for _, c := range a.deciding() {
		if t := machine.TargetOf(n, a.id, c.Name); t.State != machine.TargetPasses && t.Since.Add(failsWithin(c)+longer).Before(at) {
			return c.Name, t.Since
		}
	}
	return "", time.Time{}
}

// mayFail reports whether a check may have failed at a time: its target did not pass a short time before.
func (v verdicts) mayFail(n *machine.Node, a *alloc, at time.Time) bool {
	for _, c := range a.deciding() {
		if t := machine.TargetOf(n, a.id, c.Name); !t.Since.IsZero() && (t.State != machine.TargetPasses || at.Before(t.Since.Add(passesWithin(c)))) {
			return true
		}
	}
	return false
}

// passesSince returns since when a client that has started at a time has found that all targets pass. It is false if one does
// not.
func (v verdicts) passesSince(n *machine.Node, a *alloc, started time.Time) (since time.Time, all bool) {
	for _, c := range a.deciding() {
		t := machine.TargetOf(n, a.id, c.Name)
		if t.State != machine.TargetPasses {
			return since, false
		}
		for _, at := range []time.Time{t.Since, started, a.health.since} {
			if found := at.Add(passesWithin(c)); found.After(since) {
				since = found
			}
		}
	}
	return since, true
}

// watched reports whether the client works, and all tasks have run, for longer than it takes to find that a target does not
// pass.
func (v verdicts) watched(n *machine.Node, a *alloc, longer time.Duration) bool {
	for _, c := range a.deciding() {
		within := failsWithin(c) + c.Interval + longer
		if !v.works(n, within) || !v.judge.now.After(a.health.since.Add(within)) {
			return false
		}
	}
	r := n.Record(a.id)
	if r == nil || r.Stopping {
		return false
	}
	for i := range r.Tasks {
		if t := a.group().Tasks[i]; t.Main() && r.Tasks[i].Phase != client.PhaseRunning {
			return false
		}
	}
	return true
}
