package drain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/alloc"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Left counts the allocations that still have to stop. While the drain runs, these include the ones whose node
// cannot be reached: the drain waits until the servers give them up.
func (f *Follower) Left() (n int) {
	for _, a := range f.allocs {
		awaited := !f.DrainEnded && a.ClientStatus == string(cluster.ClientUnknown)
		if (awaited || alloc.Alive(a)) && !f.Stays(a) {
			n++
		}
	}
	return n
}

// Stays reports whether the allocation need not leave: by request, or because it came after the end of
// the drain.
func (f *Follower) Stays(a *wire.Allocation) bool { return f.cameAfter(a) || f.staysByRequest(a) }

// cameAfter reports whether the allocation was placed after the end of the drain.
func (f *Follower) cameAfter(a *wire.Allocation) bool {
	return f.record != nil && f.record.EndIndex > 0 && a.CreateIndex > f.record.EndIndex
}

// InUse returns why the node is not empty for long, or not empty again, although the drain has ended: it is
// eligible, or has allocations that were placed after the end. It is empty if the node is as the drain left it.
func (f *Follower) InUse() string {
	if !f.DrainEnded || f.cancelled {
		return ""
	}
	n := 0
	for _, a := range f.allocs {
		runs := alloc.Alive(a) || a.ClientStatus == string(cluster.ClientUnknown) || a.ClientStatus == string(cluster.ClientLost) && a.ConfirmedAt.IsZero()
		if runs && f.cameAfter(a) && !f.staysByRequest(a) {
			n++
		}
	}
	var why []string
	if f.eligible {
		why = append(why, "it is eligible")
	}
	if n > 0 {
		why = append(why, "it has "+cli.Count(n, "allocation")+" that came after the drain")
	}
	return strings.Join(why, ", and ")
}

// staysByRequest reports whether the drain leaves the allocation: it may ignore system jobs, and leave
// the storage plugins that serve them. Only the servers decide which ones these are.
func (f *Follower) staysByRequest(a *wire.Allocation) bool {
	switch skip := f.SkipSystem || f.Strategy != nil && f.Strategy.IgnoreSystemJobs; {
	case !skip:
		return false
	case isPlugin(a.Job):
		return f.nothingLeft || f.DrainEnded && !marked(a) && a.DesiredStatus == string(cluster.DesiredRun) ||
			slices.ContainsFunc(f.reported, func(r wire.DrainAlloc) bool {
				return r.ID == a.ID && r.Reason == rules.ReasonLeftByRequest.String()
			})
	}
	// One that stops for another reason does not stay, such as after its job has become a service.
	return jobType(a) == string(cluster.JobSystem) && (a.DesiredStatus != string(cluster.DesiredStop) || !alloc.Alive(a))
}

// jobType returns the type of an allocation's job, or empty if it is not known.
func jobType(a *wire.Allocation) string {
	if a.Job == nil || a.Job.Type == nil {
		return ""
	}
	return *a.Job.Type
}

// isPlugin reports whether a job has a storage plugin. Then all its allocations count as
// plugins.
func isPlugin(j *wire.Job) bool {
	return j != nil && slices.ContainsFunc(j.TaskGroups, func(g *wire.TaskGroup) bool {
		return slices.ContainsFunc(g.Tasks, func(t *wire.Task) bool { return t.CSIPluginConfig != nil })
	})
}

// emptyText is the text of a node without allocations that have to stop. It claims that allocations have
// stopped only if there were some, and the node is ready.
func (f *Follower) emptyText() string {
	stay := f.stayText()
	none, all := "No allocations are left on node %q", "All allocations on node %q have stopped"
	if stay != "" {
		none, all = "No other allocations are left on node %q", "All other allocations on node %q have stopped"
	}
	n, use := f.countNow(), f.InUse()
	switch silent := f.status != "" && f.status != string(cluster.NodeReady); {
	case use != "":
		return fmt.Sprintf("Node %q takes work again: %s", f.Node, use)
	case n > 0:
		return fmt.Sprintf(none+", but nothing confirms the end of %s%s", f.Node, cli.Count(n, "allocation"), stay)
	case silent:
		return fmt.Sprintf(none+", which is %s%s", f.Node, f.status, stay)
	case !f.someLeft():
		return fmt.Sprintf("No allocation had to leave node %q%s", f.Node, stay)
	}
	return fmt.Sprintf(all+"%s", f.Node, stay)
}

// someLeft reports whether an allocation has left the node, as far as the drain's record and the rows of the
// node have it.
func (f *Follower) someLeft() bool {
	if f.leaving.most > 0 || f.record != nil && len(f.record.Marked) > 0 {
		return true
	}
	return slices.ContainsFunc(slices.Collect(maps.Values(f.allocs)), func(a *wire.Allocation) bool { return !alloc.Alive(a) && !f.Stays(a) })
}

// maxStaying limits the jobs that one line names.
const maxStaying = 5

// stayText counts the allocations that run and stay by request, and names their jobs. It is empty if there
// are none.
func (f *Follower) stayText() string {
	count, jobs := 0, map[string]bool{}
	for _, a := range f.allocs {
		if alloc.Alive(a) && f.staysByRequest(a) {
			count++
			jobs[cli.JobName(a.Namespace, a.JobID)] = true
		}
	}
	if count == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(jobs))
	if more := len(names) - maxStaying; more > 0 {
		names = append(names[:maxStaying], fmt.Sprintf("%d more", more))
	}
	verb := "stay"
	if count == 1 {
		verb = "stays"
	}
	return cli.SingleLine(fmt.Sprintf("; %s %s by request: %s", cli.Count(count, "allocation"), verb, strings.Join(names, ", ")))
}

// overtime is how long the monitor waits after a drain has ended without all allocations. They have had their
// stop time then. A node whose client has died becomes down in this time, and its allocations lost.
const overtime = 30 * time.Second

// giveUp ends the monitor if allocations do not stop in their stop time, such as one with a process in state D.
// It returns an event then. Before the deadline a drain may end before that time.
func (f *Follower) giveUp(now time.Time) []event {
	if r := f.record; !f.DrainEnded || f.over() || r == nil || r.StillStopping == 0 ||
		r.Outcome != string(cluster.OutcomeDeadlineReached) && r.Outcome != string(cluster.OutcomeForced) {
		return nil
	}
	if f.endObserved.IsZero() {
		f.endObserved = now
	}
	// With the completion policy "marked" the drain does not wait for the stop times, and endsBy has them.
	early := max(0, f.endsBy.Sub(f.record.EndedAt.Time))
	if f.allocs == nil || now.Before(f.endObserved.Add(early+overtime)) {
		return nil
	}
	f.GaveUp = true
	return []event{{now, fmt.Sprintf("%s on node %q did not stop in time and may never stop", cli.Count(f.Left(), "allocation"), f.Node)}}
}

// stillStopText counts the allocations that stop now although the drain was cancelled.
func (f *Follower) stillStopText() string {
	n := 0
	for _, a := range f.allocs {
		if alloc.Alive(a) && a.DesiredStatus == string(cluster.DesiredStop) && !f.Stays(a) {
			n++
		}
	}
	switch n {
	case 0:
		return fmt.Sprintf("No allocation stops on node %q now", f.Node)
	case 1:
		return fmt.Sprintf("1 allocation still stops on node %q", f.Node)
	}
	return fmt.Sprintf("%d allocations still stop on node %q", n, f.Node)
}
