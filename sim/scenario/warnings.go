package scenario

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Each check warns of a likely typing error. If the value is intended, the warning stays.

const (
	shortDeadline = time.Second
	longDeadline  = 30 * 24 * time.Hour
	longKill      = 24 * time.Hour
	longDelay     = time.Minute
	farAhead      = 24 * time.Hour
	manyEvents    = 2000
	shortDelay    = time.Microsecond
	longFault     = 24 * time.Hour
)

// review warns of valid but unlikely values.
type review struct{ file *parser }

// groups warns of a job's groups.
func (r review) groups(j *Job, line int) {
	for i := range j.Groups {
		g := &j.Groups[i]
		label := GroupText(cluster.GroupKey{Job: j.Key, Name: g.Name})
		if g.MaxParallel != nil && *g.MaxParallel > g.Count {
			r.file.warn(line, "%s: max-parallel %d is more than the count of %d", label, *g.MaxParallel, g.Count)
		}
		if g.MaxSurge > 0 && g.Migrate {
			r.file.warn(line, "%s: max-surge has no effect: its data moves when it has ended", label)
		}
		if g.Kill > longKill && g.Kill <= longest { // a longer one tests the largest duration
			r.file.warn(line, "%s: kill=%s is more than a day", label, DurationText(g.Kill))
		}
		healthy, deadline := g.MinHealthy, g.HealthyDeadline
		if healthy == 0 {
			healthy = cluster.DefaultMinHealthyTime
		}
		if deadline == 0 {
			deadline = cluster.DefaultHealthyDeadline
		}
		if healthy > deadline {
			r.file.warn(line, "%s: min-healthy=%s is more than the healthy deadline of %s", label, DurationText(healthy), DurationText(deadline))
		}
		for _, class := range g.Classes {
			if !r.file.scope.classes[class] {
				r.file.warn(line, "%s: no node above is of class %s", label, class)
			}
		}
		for _, d := range g.Devices {
			if !r.hasDevices(d.Name) {
				r.file.warn(line, "%s: no node above has a device %s", label, d.Name)
			}
		}
		if g.Check != nil && j.Type.ToCompletion() {
			r.file.warn(line, "%s: batch work has no check", label)
		}
	}
}

// wholeFile warns of values that need the whole file.
func (r review) wholeFile() {
	s := r.file.scenario
	if len(s.Prose) == 0 {
		r.file.warn(1, "no comment at the beginning states why the scenario exists")
	}
	for _, d := range [...]struct {
		name string
		is   Range
	}{{"commit", s.Cluster.Commit}, {"wake", s.Cluster.Wake}, {"schedule", s.Cluster.Schedule}, {"establish", s.Cluster.Establish}} {
		if d.is.Max > longDelay {
			r.file.warn(r.file.once["cluster"], "%s=%s is more than a minute", d.name, d.is)
		}
	}
	r.surplus()
	r.unserved()
	r.end()
	if len(s.Events) > manyEvents {
		r.file.warn(s.Events[manyEvents].Line, "more than %d events", manyEvents)
	}
	r.sameIndex()
	r.order()
	for i := range s.Events {
		r.oneEvent(&s.Events[i])
	}
}

// order warns of a scenario without a drain, and of events that are not in the order of their times.
// With a seed, the order in the file changes the draws, and a shrunk scenario may depend on it.
func (r review) order() {
	drains := false
	for i := range r.file.scenario.Events {
		e := &r.file.scenario.Events[i]
		if i > 0 && r.file.scenario.Seed == 0 && e.At < r.file.scenario.Events[i-1].At {
			r.file.warn(e.Line, "this event at %s comes after an event at %s", DurationText(e.At), DurationText(r.file.scenario.Events[i-1].At))
		}
		_, drained := e.Op.(*Drain)
		drains = drains || drained
	}
	if !drains && len(r.file.problems) == 0 {
		r.file.warn(1, "nothing is drained")
	}
}

// sameIndex warns of two running allocations with one index if neither has replaced the other. A
// scheduler makes no such allocations.
func (r review) sameIndex() {
	type place struct {
		group cluster.GroupKey
		index int
	}
	found := map[place]bool{}
	for i := range r.file.scenario.Allocs {
		a := &r.file.scenario.Allocs[i]
		if a.Canary || a.Replaces != nil || a.Desired != "" || a.Client != "" || r.everyNode(a.Group.Job) {
			continue
		}
		for n := range a.number() {
			at := place{a.Group, a.Indexes.First + n}
			if found[at] {
				r.file.warn(r.file.scope.jobs[a.Group.Job].line, "%s[%d] is declared twice", GroupText(at.group), at.index)
				break
			}
			found[at] = true
		}
	}
}

// everyNode reports whether a job runs on every node. All its allocations have one index.
func (r review) everyNode(key cluster.JobKey) bool {
	job := r.file.scope.jobs[key]
	return job != nil && r.file.scenario.Jobs[job.at].Type.EveryNode()
}

// surplus warns of groups with more allocations than their count.
func (r review) surplus() {
	has := map[cluster.GroupKey]int{}
	for i := range r.file.scenario.Allocs {
		a := &r.file.scenario.Allocs[i]
		if !a.Canary && a.Desired != cluster.DesiredStop && a.Client != cluster.ClientLost &&
			a.Client != cluster.ClientFailed && a.Client != cluster.ClientComplete {
			has[a.Group] += a.number()
		}
	}
	for j, g := range r.file.scenario.EachGroup() {
		key := cluster.GroupKey{Job: j.Key, Name: g.Name}
		if !j.Type.EveryNode() && has[key] > g.Count {
			r.file.warn(r.file.scope.jobs[j.Key].line, "%s: %d allocations with a count of %d", GroupText(key), has[key], g.Count)
		}
	}
}

// unserved warns of volumes without a storage plugin.
func (r review) unserved() {
	for i := range r.file.scenario.Volumes {
		v := &r.file.scenario.Volumes[i]
		serves := func(g Group) bool { return g.Serves.Plugin == v.Plugin && g.Serves.PluginType().Node() }
		if !slices.ContainsFunc(r.file.scenario.Jobs, func(j Job) bool { return slices.ContainsFunc(j.Groups, serves) }) {
			r.file.warn(r.file.scope.volumes[v.IDs()[0]], "no job is the storage plugin %s on the nodes", v.Plugin)
		}
	}
}

// end warns of events after the end of the run.
func (r review) end() {
	run, line := r.file.scenario.Run, r.file.once["run"]
	if run.For > 0 && run.Calm >= run.For {
		r.file.warn(line, "calm=%s is not before the end at %s", DurationText(run.Calm), DurationText(run.For))
	}
	for i := range r.file.scenario.Events {
		e := &r.file.scenario.Events[i]
		if run.For > 0 && e.At >= run.For {
			r.file.warn(e.Line, "no event happens at %s: for=%s", DurationText(e.At), DurationText(run.For))
		} else if _, is := e.Op.(*Fault); is && run.Calm > 0 && e.At >= run.Calm {
			r.file.warn(e.Line, "no fault strikes at %s: calm=%s", DurationText(e.At), DurationText(run.Calm))
		}
	}
}

// oneEvent warns of an event by itself.
func (r review) oneEvent(e *Event) {
	switch o := e.Op.(type) {
	case *Drain:
		if o.Deadline > 0 && o.Deadline < shortDeadline {
			r.file.warn(e.Line, "a deadline of %s: write force for no wait", DurationText(o.Deadline))
		} else if o.Deadline > longDeadline && o.Deadline != Never {
			r.file.warn(e.Line, "a deadline of %s is more than a month", DurationText(o.Deadline))
		}
	case *Clock:
		if o.Ahead > farAhead || o.Ahead < -farAhead {
			r.file.warn(e.Line, "a clock is set %s ahead", DurationText(o.Ahead))
		}
	case *Elect:
		if o.Unaware > longDelay {
			r.file.warn(e.Line, "a leader acts as one for %s after its term", DurationText(o.Unaware))
		}
	case *TargetChange:
		if r.file.scenario.Cluster.Clients != RealClients {
			r.file.warn(e.Line, "no check runs: the file has no clients=%s", RealClients)
		} else if !r.file.scenario.checked(o.Match) {
			r.file.warn(e.Line, "no group of %s has a check", o.Match)
		}
	case *Edit:
		if o.Count != nil && o.MaxParallel != nil && *o.MaxParallel > *o.Count {
			r.file.warn(e.Line, "max-parallel %d is more than the count of %d", *o.MaxParallel, *o.Count)
		}
	case *Fault:
		if o.Delay.Max > 0 && o.Delay.Max < shortDelay {
			r.file.warn(e.Line, "%s: a delay of %s has no effect", o.Name, DurationText(o.Delay.Max))
		}
		if o.Name.Kind().Real && r.file.scenario.Cluster.Clients != RealClients {
			r.file.warn(e.Line, "%s does not strike: the file has no clients=%s", o.Name, RealClients)
		} else if o.Name.Kind().Devices && !r.hasDevices("") {
			r.file.warn(e.Line, "%s does not strike: no node has devices", o.Name)
		} else if o.Name.Kind().Volumes && len(r.file.scenario.Volumes) == 0 {
			r.file.warn(e.Line, "%s does not strike: there are no volumes", o.Name)
		}
		if o.For > longFault {
			r.file.warn(e.Line, "%s is armed for %s, which is more than a day", o.Name, DurationText(o.For))
		}
		if o.Count > 1 && o.Probability != 0 && o.For == 0 && o.Probability < 0.001 {
			r.file.warn(e.Line, "%s is armed until it has struck %d times, at one opportunity of %.0f", o.Name, o.Count, 1/o.Probability)
		}
	}
}

// hasDevices reports whether a node has devices with the name, or with any name if it is empty.
func (r review) hasDevices(name string) bool {
	return slices.ContainsFunc(r.file.scenario.Nodes, func(n Node) bool {
		return slices.ContainsFunc(n.Devices, func(d Devices) bool {
			return name == "" || name == d.Kind.Type || name == d.Kind.String()
		})
	})
}
