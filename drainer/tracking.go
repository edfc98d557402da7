package drainer

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// track takes in what the node watcher has told, and what has changed.
func (t *Term) track(look Look) {
	var anew []cluster.NodeID          // whose groups are judged anew
	begun := map[cluster.NodeID]bool{} // those of which another drain has begun
	for _, post := range t.tracker.take() {
		anew = append(anew, post.id)
		if post.node != nil {
			if t.remember(post.node) {
				begun[post.id] = true
			}
		} else {
			// What is left there is not the drain's any more, and its groups are dropped
			// if nothing of them drains elsewhere.
			t.forget(post.id)
		}
	}
	if look.Changes.All {
		for id, n := range t.nodes { //lint:order they are sorted
			t.dirty[id], n.passed = true, false // the clock may have been set back
			anew = append(anew, id)
		}
	}
	t.dateAnew(begun, look.Now)
	t.judgeGroupsOn(look.View, anew)
	t.trackChanges(look)
}

// judgeGroupsOn has the groups judged anew that have something on the nodes. It sorts
// them.
func (t *Term) judgeGroupsOn(v View, nodes []cluster.NodeID) {
	if len(nodes) == 0 {
		return
	}
	slices.Sort(nodes)
	t.jobWatcher.RegisterJobs(groupsOn(v, cluster.StageConsumers, slices.Compact(nodes)...))
}

// remember takes in a node's drain, or its new strategy, and reports whether the drain is
// another than it was.
func (t *Term) remember(node *cluster.Node) (begins bool) {
	n := t.nodes[node.ID]
	begins = n == nil || n.drain != node.Drain.ID
	if begins {
		t.forget(node.ID)
		n = &drainingNode{id: node.ID, drain: node.Drain.ID}
		t.nodes[node.ID] = n
		t.logger.Info("draining node", "node", n.id, "name", node.Name, "drain", n.drain, "deadline", node.Drain.Strategy.Deadline)
	}
	n.refused, n.heldBack, n.wait, n.passed = attempts{}, nil, stageWait{}, false
	t.dirty[n.id] = true
	return begins
}

// trackChanges has the nodes planned of which something changed.
func (t *Term) trackChanges(look Look) {
	if look.InFlight == nil { // those gathered are planned now
		for id := range t.gathered {
			t.dirty[id] = true
		}
		clear(t.gathered)
	}
	for _, id := range look.Changes.Nodes {
		if n := t.nodes[id]; n != nil {
			t.dirty[id] = true
			t.judgePlugins(look.View, n)
		}
	}
	for _, id := range look.Changes.Hosts {
		if n := t.nodes[id]; n != nil {
			t.seeHost(look, n)
			t.judgePlugins(look.View, n)
		}
	}
	t.trackJobs(look.Changes)
}

// seeHost has a node planned on which something changed. While writes are in flight
// nothing else is written, and a node that is planned at each of their entries would be
// planned for nothing: it is gathered, and planned once when they are answered. One that
// wishes for something is looked after all the same, so that nobody is told of a wish
// which makes no sense any more, and so is one whose storage plugins had their turn: they
// may wish for something, see seePluginsTurns.
func (t *Term) seeHost(look Look, n *drainingNode) {
	if look.InFlight != nil && !t.ready[n.id] && !n.pluginsTurn {
		t.gathered[n.id] = true
		t.alarms.Remove(n.id) // it dates from before what the node is planned for
		return
	}
	t.dirty[n.id] = true
}

// seePluginsTurns has the nodes planned of whose storage plugins a group has found in this
// step that their turn has come, and may wish for something: when the turn is taken back,
// they are judged anew. Nobody need have told of the node yet: a view may be newer than what
// was told.
func (t *Term) seePluginsTurns(look Look) {
	for _, id := range look.findings.pluginsTurns {
		if n := t.nodes[id]; n != nil && !n.pluginsTurn {
			delete(t.gathered, id)
			t.dirty[id] = true
		}
	}
}

// trackJobs has the nodes planned whose drains wait for a job that changed.
func (t *Term) trackJobs(changes Changes) {
	see := func(job cluster.JobKey) {
		for id := range t.waiting[job] {
			t.dirty[id] = true
		}
	}
	for _, job := range changes.Jobs {
		see(job.Key)
	}
	for _, group := range changes.Groups {
		see(group.Key.Job)
	}
}

func (t *Term) forget(id cluster.NodeID) {
	n := t.nodes[id]
	if n == nil {
		return
	}
	t.awaitJobs(n, nil)
	t.withdrawn = t.withdrawn || len(n.marks) > 0
	t.notifier.Remove(id)
	t.alarms.Remove(id)
	delete(t.nodes, id)
	delete(t.ready, id)
	delete(t.dirty, id)
	delete(t.gathered, id)
}

// receive drains the components' channels, in a fixed order.
func (t *Term) receive(look Look) {
	select {
	case t.request = <-t.jobWatcher.Drain():
		t.withdrawn = true
		t.date(t.request.Marks, look.Now)
	default:
	}
	select {
	case moved := <-t.jobWatcher.Migrated():
		debug := t.logger.IsDebug() // for each allocation that moves, what is logged is made for nothing
		for _, m := range moved {
			if debug {
				t.logger.Debug("allocation left its draining node", "alloc", m.Alloc, "node", m.Node,
					"asked", m.Asked, "stopped", m.Stopped, "replaced", m.Replaced, "migrated", m.Migrated)
			}
			if n := t.nodes[m.Node]; n != nil {
				t.seeHost(look, n)
			}
		}
	default:
	}
}

// ring takes in whose time has come. Where a deadline has passed since the node
// was last planned its groups are judged anew, before anything of them is
// written: they have one less to reckon with, and nothing of them has changed
// that would say so.
func (t *Term) ring(look Look) {
	select {
	case batch := <-t.notifier.NextBatch():
		for _, id := range batch {
			if n := t.nodes[id]; n != nil {
				n.armed = time.Time{}
				t.dirty[id] = true
			}
		}
	default:
	}
	for _, id := range t.alarms.Pop(look.Now) {
		t.dirty[id] = true
	}
	var passed []cluster.NodeID
	for id := range t.dirty { //lint:order they are sorted
		n, node := t.nodes[id], look.node(id)
		if n != nil && !n.passed && node.Draining() && node.Drain.Strategy.Passed(look.Now) {
			n.passed = true
			passed = append(passed, id)
		}
	}
	t.judgeGroupsOn(look.View, passed)
}

// planNodes plans the nodes that something was said of.
func (t *Term) planNodes(look Look) {
	t.planEndsAgain()
	if len(t.dirty) == 0 {
		return
	}
	m := look.moment(t.config.Policy)
	due := slices.Sorted(maps.Keys(t.dirty))
	clear(t.dirty)
	for _, id := range due {
		node, n := look.node(id), t.nodes[id]
		if n == nil {
			continue
		}
		if !node.Draining() || node.Drain.ID != n.drain {
			t.adopt(n, nil, nil) // the node watcher has told, or will
			continue
		}
		if n.stillWaits(m, node) {
			// It may have been gathered. Of its plugins none is unasked, so that no group
			// asks for their turn.
			t.alarms.Wake(id, n.wait.ends)
			continue
		}
		t.planNode(m, node, n)
	}
}

// planEndsAgain has the nodes planned whose end is still to be written and hangs on
// replacements: their jobs are not followed any more.
func (t *Term) planEndsAgain() {
	if c := t.config.Policy.Completion; c != Replaced && c != Migrated {
		return
	}
	for id := range t.ready {
		if t.nodes[id].completion != nil && !t.writer.nodes[id] {
			t.dirty[id] = true
		}
	}
}

func (t *Term) planNode(m *moment, node *cluster.Node, n *drainingNode) {
	plan := m.planNode(node)
	again := n.holdBack(&plan, m.now)
	t.adopt(n, plan.marks, plan.completion)
	t.date(plan.marks, m.now)
	n.wait = plan.end.wait
	t.alarms.Wake(n.id, earliest(plan.end.wait.ends, again))
	if n.rearm(t.notifier, &node.Drain.Strategy, m.now) {
		t.again = true
	}
	t.judgeFirst(m, node, n, plan.end)
	t.awaitJobs(n, plan.end.waitsFor)
}

// judgeFirst has groups judged anew where a node's plan found that something had come by
// which they wish otherwise, and their own step was before: that the turn of its storage
// plugins has come or was taken back, or its deadline if nobody had the node planned until
// then. What the node wants takes room of theirs, and what they wish is written together
// with that, in the next step.
func (t *Term) judgeFirst(m *moment, node *cluster.Node, n *drainingNode, end endState) {
	if !n.passed && node.Drain.Strategy.Passed(m.now) {
		n.passed, t.unheard = true, true
		t.judgeGroupsOn(m.view, []cluster.NodeID{n.id})
	}
	turn := end.stage == cluster.StagePlugins && m.turnHasCome(node, cluster.StagePlugins)
	if turn == n.pluginsTurn {
		return
	}
	n.pluginsTurn = turn
	if groups := groupsOn(m.view, cluster.StagePlugins, n.id); len(groups) > 0 {
		t.unheard = true
		t.jobWatcher.RegisterJobs(groups)
	}
}

// judgePlugins has the node's storage plugins judged anew if their turn had come:
// those of type service leave at their group's pace from then on, and stay when
// the turn is taken back by what lands on the node. Nothing of their group
// changes that would say so.
func (t *Term) judgePlugins(v View, n *drainingNode) {
	if n.pluginsTurn {
		t.jobWatcher.RegisterJobs(groupsOn(v, cluster.StagePlugins, n.id))
	}
}

// adopt takes over what a node wants written.
func (t *Term) adopt(n *drainingNode, marks []Mark, completion *Completion) {
	t.withdrawn = t.withdrawn || len(n.marks) > 0
	n.marks, n.completion = marks, completion
	if len(marks) > 0 || completion != nil {
		t.ready[n.id] = true
	} else {
		delete(t.ready, n.id)
	}
}

// awaitJobs follows the jobs that a drain's end waits for, and no others on its
// account. A job followed since now is looked at once more in the next step,
// whose view will not be older than that.
func (t *Term) awaitJobs(n *drainingNode, jobs []cluster.JobKey) {
	if len(jobs)+len(n.waitsFor) == 0 {
		return
	}
	awaited := make(map[cluster.JobKey]bool, len(jobs))
	for _, job := range jobs {
		awaited[job] = true
		if n.waitsFor[job] {
			continue
		}
		if t.waiting[job] == nil {
			t.waiting[job] = map[cluster.NodeID]bool{}
		}
		t.waiting[job][n.id] = true
		t.feed.Follow(job)
		t.dirty[n.id], t.again = true, true
	}
	for job := range n.waitsFor { //lint:order each job by itself, and a feed only counts
		if !awaited[job] {
			delete(t.waiting[job], n.id)
			if len(t.waiting[job]) == 0 {
				delete(t.waiting, job)
			}
			t.feed.Unfollow(job)
		}
	}
	n.waitsFor = awaited
}
