package timed

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// maxViolations is the largest number of violations that a judge keeps.
const maxViolations = 20

// firstVersion is the cluster version from which on the state learns times.
const firstVersion = 9

// Judge collects the violations of one run. Create it with [New]. A Judge is not safe for concurrent use.
// It never changes the rows that it reads.
type Judge struct {
	invariant.Findings
	// ran has the time of the entry with the first report that an allocation runs.
	ran map[cluster.AllocID]time.Time
	// ended has the ends of allocations.
	ended  map[cluster.AllocID]end
	groups map[cluster.GroupKey]*counts
}

// counts are the numbers of times of a group, by bucket.
type counts struct{ start, verdict, stop [32]int }

// end is the end of an allocation on a node, in an entry.
type end struct {
	at    time.Time
	index uint64
	node  cluster.NodeID
}

// New returns a judge of a run that has not started, or whose allocations have neither started nor ended in an entry.
func New() *Judge {
	return &Judge{ran: make(map[cluster.AllocID]time.Time), ended: make(map[cluster.AllocID]end), groups: make(map[cluster.GroupKey]*counts)}
}

// Applied checks an entry. Call it once for each entry, in the order of the log.
func (j *Judge) Applied(now time.Time, a shims.Applied) {
	if a.Before == nil || a.After == nil {
		return
	}
	switch m := a.Message.(type) {
	case *shims.AllocClientUpdate:
		of := make(map[cluster.AllocID][]cluster.AllocReport)
		for _, r := range m.Reports {
			of[r.Alloc] = append(of[r.Alloc], r)
		}
		for _, id := range slices.Sorted(maps.Keys(of)) {
			j.noteEnd(a, of[id], m.At)
		}
		touched := make(map[cluster.GroupKey]bool)
		for _, id := range slices.Sorted(maps.Keys(of)) {
			before, after := a.Before.Alloc(id), a.After.Alloc(id)
			if before == nil || after == nil {
				continue
			}
			touched[after.GroupKey()] = true
			if a.Before.ClusterVersion() >= firstVersion && !m.At.IsZero() {
				j.count(m.At, before, after, a.After.Alloc(after.PreviousAllocation), of[id])
			}
		}
		j.compare(now, a.Index, a.After, touched)
	case *shims.JobRegister, *shims.JobDeregister, *shims.Collect:
		known := make(map[cluster.GroupKey]bool)
		for k := range j.groups {
			known[k] = true
		}
		j.compare(now, a.Index, a.After, known)
	}
}

// End compares all groups at the end of the run.
func (j *Judge) End(now time.Time, s *statestore.Snapshot) {
	all := make(map[cluster.GroupKey]bool)
	for job := range s.Jobs() {
		for _, g := range job.TaskGroups {
			all[cluster.GroupKey{Job: job.Key(), Name: g.Name}] = true
		}
	}
	j.compare(now, s.Index(), s, all)
}

// count counts what the reports of an allocation end, in an entry of a time. previous is the allocation that this one
// replaces, after the entry, or nil.
func (j *Judge) count(at time.Time, before, after, previous *cluster.Allocation, reports []cluster.AllocReport) {
	k := after.GroupKey()
	if j.groups[k] == nil {
		j.groups[k] = new(counts)
	}
	c := j.groups[k]
	status := before.ClientStatus
	for _, r := range reports {
		if r.Node != before.NodeID || r.ClientStatus == "lost" || r.ClientStatus == "unknown" {
			continue // no client may report it
		}
		if status != "pending" && status != "running" && status != "unknown" {
			break // it has ended
		}
		if _, before := j.ran[r.Alloc]; !before && status == "pending" && r.ClientStatus == "running" {
			j.ran[r.Alloc] = at
			c.start[bucket(at.Sub(j.startable(after, previous)))]++
		}
		status = r.ClientStatus
	}
	_, judged := opinion.Verdict(before)
	if good, _ := opinion.Verdict(after); good && !judged && before.ClientStatus != "unknown" {
		if since, ran := j.ran[after.ID]; ran {
			c.verdict[bucket(at.Sub(since))]++
		}
	}
	if before.ClientStatus != "running" || !completed(after) {
		return
	}
	switch mark := after.DesiredTransition; {
	case mark.Migrate && mark.Drain != "":
		c.stop[bucket(at.Sub(mark.MarkedAt))]++
	case after.DesiredStatus != "run":
		c.stop[bucket(at.Sub(after.StoppedAt))]++
	}
}

// noteEnd keeps when an allocation has ended, if it did in this entry. The reports are those of the allocation. Below the
// version the row has only their time.
func (j *Judge) noteEnd(a shims.Applied, reports []cluster.AllocReport, at time.Time) {
	id := reports[0].Alloc
	before, after := a.Before.Alloc(id), a.After.Alloc(id)
	if before != nil && after != nil && !completed(before) && completed(after) {
		if a.Before.ClusterVersion() < firstVersion || at.IsZero() {
			i := slices.IndexFunc(reports, func(r cluster.AllocReport) bool {
				return r.Node == after.NodeID && r.ClientStatus == after.ClientStatus
			})
			if i < 0 {
				return // none of them ended it
			}
			at = reports[i].At
		}
		j.ended[id] = end{at, a.Index, after.NodeID}
	}
}

// startable returns when nothing but its own start kept an allocation from running.
func (j *Judge) startable(a, previous *cluster.Allocation) time.Time {
	if previous == nil || previous.DesiredStatus == "run" || previous.StoppedAt.After(a.CreateTime) {
		return a.CreateTime
	}
	last, ended := j.ended[previous.ID]
	copied := a.DataIn != nil && a.DataIn.State == "copied" && a.DataIn.Peer == a.PreviousAllocation
	if !ended || last.index <= a.CreateIndex || last.at.Before(a.CreateTime) || !copied && last.node != a.NodeID {
		return a.CreateTime
	}
	return last.at
}

func completed(a *cluster.Allocation) bool {
	return a.ClientStatus == "complete" || a.ClientStatus == "failed"
}

// bucket returns the number of the bucket of a time. A bucket ends where the time is 3/2 of that of the bucket before.
func bucket(d time.Duration) (i int) {
	for end := 100 * time.Millisecond; i < 31 && d >= end; i++ {
		end += end / 2
	}
	return i
}

// compare compares the rows of groups with what the judge has counted.
func (j *Judge) compare(now time.Time, index uint64, s *statestore.Snapshot, groups map[cluster.GroupKey]bool) {
	for _, k := range slices.SortedFunc(maps.Keys(groups), cluster.GroupKey.Compare) {
		report := func(c invariant.Check, format string, args ...any) {
			j.Add(maxViolations, c, invariant.Violation{At: now, Index: index, Group: k}, format, args...)
		}
		row := statestore.LearnedTimes(s.State, k)
		if !exists(s.Job(k.Job), k.Name) {
			delete(j.groups, k)
			if row != nil {
				report(NoGroup, "the state has times of a group that does not exist")
			}
			continue
		}
		if row != nil && s.ClusterVersion() < firstVersion {
			report(Below, "the state has times, and its version is %d", s.ClusterVersion())
		}
		var want, got counts
		if c := j.groups[k]; c != nil {
			want = *c
		}
		if row != nil {
			got = counts{numbers(row.Start), numbers(row.Verdict), numbers(row.Stop)}
		}
		if got.start != want.start {
			report(Start, "the state has %v, and the entries %v", got.start, want.start)
		}
		if got.verdict != want.verdict {
			report(Verdict, "the state has %v, and the entries %v", got.verdict, want.verdict)
		}
		if got.stop != want.stop {
			report(Stop, "the state has %v, and the entries %v", got.stop, want.stop)
		}
	}
}

func exists(job *cluster.Job, group string) bool {
	return job != nil && slices.ContainsFunc(job.TaskGroups, func(g *cluster.TaskGroup) bool { return g.Name == group })
}

func numbers(of [32]uint16) (all [32]int) {
	for i, n := range of {
		all[i] = int(n)
	}
	return all
}
