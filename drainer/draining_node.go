package drainer

import (
	"log/slog"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// drainingNode is what a term keeps of one draining node. Everything except the retries can be
// derived from the state.
type drainingNode struct {
	id    cluster.NodeID
	drain cluster.DrainID
	// marks and completion are the writes that the node needs in this step.
	marks      []rules.Mark
	completion *rules.Completion
	// planned means that the node was planned since its drain was last set. The plans of its groups
	// depend on passed, paused, pluginsTurn and serving, which are facts of that plan.
	planned, passed, paused, pluginsTurn bool
	serving                              []cluster.PluginID
	// watched is the deadline that the notifier watches, or zero if it watches none or has
	// announced it.
	watched time.Time
	// waitsFor are the jobs for which the drain's completion waits. The feed follows them.
	waitsFor []cluster.JobKey
	// retries spaces the node's marks, ending spaces its completion.
	retries retries
	ending  retry
	// placed are the allocations that were placed on the node after the drain began, and unowned those
	// that are marked, but by no drain.
	placed, unowned observed
}

// drainingNodes are the nodes that a term drains.
type drainingNodes struct {
	logger   *slog.Logger
	feed     Feed
	notifier DrainDeadlineNotifier
	jobs     DrainingJobWatcher
	// marksAhead is how many marks a round of writes takes.
	marksAhead int

	byID   map[cluster.NodeID]*drainingNode
	agenda agenda[cluster.NodeID]
	// writing are the nodes that need a write, in order. The next step plans them again.
	writing []cluster.NodeID
	// waiting are the nodes whose completion waits for a job.
	waiting map[cluster.JobKey][]cluster.NodeID
}

// track applies the posts of the node watcher.
func (d *drainingNodes) track(posts []trackPost, v rules.View) {
	for _, post := range posts {
		if post.node == nil {
			d.logEnd(d.byID[post.id], v.Node(post.id))
			d.forget(post.id)
			d.jobs.RegisterJobs(groupsOn(v, post.id)) // the remaining allocations need not leave any more
			continue
		}
		n := d.byID[post.id]
		if n == nil || n.drain != post.node.Drain.ID {
			if n != nil {
				d.logger.Info("drain ended, and another of its node has begun", "node", n.id, "drain", n.drain)
			}
			d.forget(post.id)
			n = &drainingNode{id: post.id, drain: post.node.Drain.ID}
			d.byID[n.id] = n
			d.logger.Info("draining node", "node", n.id, "name", post.node.Name, "drain", n.drain, "deadline", post.node.Drain.Strategy.Deadline)
		}
		n.planned, n.retries, n.ending = false, nil, retry{}
		d.agenda.Now(n.id)
	}
}

// logEnd logs how a drain ended, as far as the row of its node shows it. The node is nil if it was
// deleted. n may be nil.
func (d *drainingNodes) logEnd(n *drainingNode, node *cluster.Node) {
	if n == nil {
		return
	}
	name := ""
	if node != nil {
		name = node.Name
	}
	attributes := []any{"node", n.id, "name", name, "drain", n.drain}
	if n.placed.count > 0 {
		attributes = append(attributes, "placed", n.placed.count)
	}
	switch {
	case node == nil:
		d.logger.Info("drain ended: the node was deleted", attributes...)
	case node.LastDrain != nil && node.LastDrain.Status == cluster.DrainStatusCanceled:
		d.logger.Info("drain was cancelled", attributes...)
	default:
		d.logger.Info("drain ended", attributes...)
	}
}

func (d *drainingNodes) forget(id cluster.NodeID) {
	n := d.byID[id]
	if n == nil {
		return
	}
	d.awaitJobs(n, nil)
	d.notifier.Remove(id)
	d.agenda.Drop(id)
	delete(d.byID, id)
}

// noteChanges makes nodes due that changes may concern.
func (d *drainingNodes) noteChanges(reading Reading) {
	d.agenda.Ring(reading.Now)
	d.makeDue(d.writing)
	d.writing = nil
	d.makeDue(reading.Changes.Nodes)
	d.makeDue(reading.Changes.Hosts)
	for _, job := range reading.Changes.Jobs {
		d.makeDue(d.waiting[job])
	}
	for _, group := range reading.Changes.Groups {
		d.makeDue(d.waiting[group.Job])
	}
	if reading.Changes.All {
		for id, n := range d.byID { //lint:order the agenda sorts them
			n.planned = false
			d.agenda.Now(id)
		}
	}
}

// makeDue adds those nodes of the list to the agenda that the term drains.
func (d *drainingNodes) makeDue(ids []cluster.NodeID) {
	for _, id := range ids {
		if d.byID[id] != nil {
			d.agenda.Now(id)
		}
	}
}

// deadlinesPassed makes nodes due whose deadlines the notifier has announced.
func (d *drainingNodes) deadlinesPassed(ids []cluster.NodeID) {
	for _, id := range ids {
		if n := d.byID[id]; n != nil {
			n.watched = time.Time{}
		}
	}
	d.makeDue(ids)
}

// plan plans the due nodes and returns them in order. It adds nodes that need a write to writing.
// It also adds nodes that it does not plan because the others fill a round of writes.
func (d *drainingNodes) plan(reading Reading) (planned []cluster.NodeID) {
	s, count := reading.planner, 0
	planned = d.agenda.Take()
	for _, id := range planned {
		n, node := d.byID[id], s.Node(id)
		n.marks, n.completion = nil, nil
		if !node.Draining() || node.Drain.ID != n.drain {
			continue // the node watcher removes it, or replaces its drain
		}
		full := count >= d.marksAhead
		if !full {
			d.planNode(s, node, n, reading)
			count += len(n.marks)
		}
		if full || len(n.marks) > 0 || n.completion != nil {
			d.writing = append(d.writing, id)
		}
	}
	return planned
}

func (d *drainingNodes) planNode(s *rules.Planner, node *cluster.Node, n *drainingNode, reading Reading) {
	plan := s.PlanNode(node)
	if !n.planned || n.passed != plan.Passed || n.paused != plan.Paused || n.pluginsTurn != plan.PluginsTurn || !slices.Equal(n.serving, plan.Serving) {
		n.planned, n.passed, n.paused, n.pluginsTurn, n.serving = true, plan.Passed, plan.Paused, plan.PluginsTurn, plan.Serving
		d.jobs.RegisterJobs(groupsOn(reading.View, n.id))
	}
	again := n.retries.keep(plan.Marks, reading.Now, d.logger)
	n.marks = slices.DeleteFunc(plan.Marks, func(m rules.Mark) bool { return n.retries.waits(m, reading.Now) })
	if plan.Completion != nil {
		wait := n.ending.wait(reading.Now, d.logger.With("node", n.id, "drain", n.drain))
		if again = earliest(again, wait); wait.IsZero() {
			n.completion = plan.Completion
		}
	}
	d.agenda.At(n.id, earliest(plan.WakeAt, again))
	d.watchDeadline(n, &node.Drain.Strategy, plan.Passed || plan.Paused)
	if d.awaitJobs(n, plan.WaitsFor) {
		// The view may be older than the follow. The next step reads it again.
		d.agenda.At(n.id, reading.Now)
	}
}

// watchDeadline passes a future deadline to the notifier. A deadline that has passed, a forced drain and a paused
// drain need no timer: the plan has considered them, and the end of a pause is a write.
func (d *drainingNodes) watchDeadline(n *drainingNode, s *cluster.DrainStrategy, untimed bool) {
	var deadline time.Time
	if s.Finite() && !untimed {
		deadline = s.ForceDeadline
	}
	switch {
	case deadline.Equal(n.watched):
		return
	case deadline.IsZero():
		d.notifier.Remove(n.id)
	default:
		d.notifier.Watch(n.id, deadline)
	}
	n.watched = deadline
}

// awaitJobs follows the jobs for which a drain's completion waits, and unfollows the jobs for
// which it waited before. It reports whether it began to follow a job.
func (d *drainingNodes) awaitJobs(n *drainingNode, jobs []cluster.JobKey) (followed bool) {
	before := n.waitsFor
	n.waitsFor = jobs
	for _, job := range jobs {
		if !slices.Contains(before, job) {
			d.waiting[job] = append(d.waiting[job], n.id)
			d.feed.Follow(job)
			followed = true
		}
	}
	for _, job := range before {
		if slices.Contains(jobs, job) {
			continue
		}
		d.waiting[job] = slices.DeleteFunc(d.waiting[job], func(id cluster.NodeID) bool { return id == n.id })
		if len(d.waiting[job]) == 0 {
			delete(d.waiting, job)
		}
		d.feed.Unfollow(job)
	}
	return followed
}

// writes returns the writes that the nodes need, by node.
func (d *drainingNodes) writes() (marks []rules.Mark, completions []rules.Completion) {
	for _, id := range d.writing {
		n := d.byID[id]
		marks = append(marks, n.marks...)
		if n.completion != nil {
			completions = append(completions, *n.completion)
		}
	}
	return marks, completions
}

// answered passes the answers of an applied entry to its nodes.
func (d *drainingNodes) answered(a answered, b Backoff, now time.Time) {
	if a.answer.Outcome != raftwrite.Applied {
		return // the next step plans the nodes again, and the outbox spaces the writes
	}
	refused := refusedMarks(a.answer)
	for _, m := range a.entry.marks {
		if n := d.byID[m.Node]; n != nil && n.drain == m.Drain && rules.PlannedWithNode(m.Class) {
			n.retries.answered(m, !refused[m.Alloc], b, now)
		}
	}
	for _, c := range a.entry.completions {
		if n := d.byID[c.Node]; n != nil && n.drain == c.Drain {
			accepted := !slices.ContainsFunc(a.answer.Response, func(r rules.Refusal) bool { return r.Node == c.Node })
			n.ending.answered(accepted, b, now)
		}
	}
}

// groupsOn returns the groups with allocations on the node that are not client-terminal, each once.
func groupsOn(v rules.View, n cluster.NodeID) []cluster.GroupKey {
	listed := map[cluster.GroupKey]bool{}
	var groups []cluster.GroupKey
	for _, s := range cluster.Stages() {
		for _, leaving := range [...]bool{false, true} {
			for a := range v.NodeAllocs(n, s, leaving) {
				if key := a.GroupKey(); !listed[key] {
					listed[key] = true
					groups = append(groups, key)
				}
			}
		}
	}
	return groups
}
