package drainer

import (
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/inbox"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// jobWatcher is the built-in [DrainingJobWatcher]. It watches the groups that have allocations on
// draining nodes. It plans a group when a change may concern it, and requests the marks that the
// group's budget allows.
//
// It keeps no marks from one step to the next: a group that had a mark in the last request is
// planned again.
type jobWatcher struct {
	logger     *slog.Logger
	feed       Feed // never nil
	policy     rules.Policy
	retry      Backoff
	marksAhead int // bounds the marks of a request; zero is no bound
	drain      chan *DrainRequest
	migrated   chan []cluster.NodeID

	registered inbox.Inbox[cluster.GroupKey]
	replies    inbox.Inbox[DrainReply]

	// The fields below belong to Step.

	groups watchedGroups
	agenda agenda[*watchedGroup]
	// added are the groups that this step began to watch. Its view may be older than the Follow of
	// their jobs, so the next step plans them again.
	added []*watchedGroup
	// requesting are the groups with something in the last request.
	requesting []*watchedGroup
	// found is what plans have found since takeForeign was called, or nil.
	found []foreign
}

// NewJobWatcher is the [DrainingJobWatcherFactory] of the built-in watcher.
func NewJobWatcher(env Env) DrainingJobWatcher {
	return &jobWatcher{
		logger:     env.Logger,
		feed:       env.Feed,
		policy:     env.Policy,
		retry:      env.Retry,
		marksAhead: env.MarksAhead,
		drain:      make(chan *DrainRequest, 1),
		migrated:   make(chan []cluster.NodeID, 1),
		groups:     watchedGroups{},
	}
}

func (w *jobWatcher) Drain() <-chan *DrainRequest { return w.drain }

func (w *jobWatcher) Migrated() <-chan []cluster.NodeID { return w.migrated }

func (w *jobWatcher) RegisterJobs(groups []cluster.GroupKey) { w.registered.Post(groups...) }

// Step plans every group that changes may concern, and sends a request with the marks that they
// need.
func (w *jobWatcher) Step(reading Reading) (wakeAt time.Time) {
	w.agenda.Ring(reading.Now)
	for _, g := range slices.Concat(w.added, w.requesting) {
		if w.groups.get(g.key) == g { // it is still watched
			w.agenda.Now(g)
		}
	}
	w.added = nil
	for _, r := range w.replies.Take() {
		w.settle(r)
	}
	for _, key := range w.registered.Take() {
		w.makeDue(key, true)
	}
	w.noteChanges(reading)
	w.plan(reading)
	if len(w.added) > 0 {
		return reading.Now
	}
	return w.agenda.First()
}

// noteChanges makes groups due that changed, or whose job changed.
func (w *jobWatcher) noteChanges(reading Reading) {
	for _, key := range reading.Changes.Groups {
		w.makeDue(key, reading.Deferred)
	}
	for _, job := range reading.Changes.Jobs {
		for _, g := range w.groups[job] {
			w.makeDue(g.key, reading.Deferred)
		}
	}
	if reading.Changes.All {
		for _, groups := range w.groups { //lint:order the agenda sorts them
			for _, g := range groups {
				w.makeDue(g.key, true)
			}
		}
	}
}

// makeDue makes a group due, and begins to watch it if it is new. skipped means that the group may
// have had states that this watcher has not planned from.
func (w *jobWatcher) makeDue(key cluster.GroupKey, skipped bool) {
	g := w.groups.get(key)
	if g == nil {
		g = &watchedGroup{key: key}
		if len(w.groups[key.Job]) == 0 {
			w.feed.Follow(key.Job)
		}
		w.groups.add(g)
		w.added = append(w.added, g)
	}
	if skipped {
		g.restartHolds()
	}
	w.agenda.Now(g)
}

// settle applies the answers to a request.
func (w *jobWatcher) settle(r DrainReply) {
	if r.Outcome != raftwrite.Applied {
		return // the next step plans the groups again, and the outbox spaces the writes
	}
	refused := refusedMarks(r.Answer)
	for _, m := range r.Marks {
		if g := w.groups.get(m.Group); g != nil {
			g.retries.answered(m, !refused[m.Alloc], w.retry, r.At)
		}
	}
	for _, key := range r.Reevaluated {
		if g := w.groups.get(key); g != nil {
			g.reevaluated.failed(w.retry, r.At)
			w.logger.Info("marked allocations have no open evaluation: the leader creates one",
				"job", key.Job, "group", key.Name, "attempt", g.reevaluated.count)
		}
	}
}

// plan plans the due groups. It sends a request if there is something to write, or if the last
// request was not empty. When the request fills a round of writes, the other groups stay due until
// the round is answered.
func (w *jobWatcher) plan(reading Reading) {
	request := &DrainRequest{Reply: func(r DrainReply) { w.replies.Post(r) }}
	requested := len(w.requesting) > 0
	w.requesting = nil
	most := math.MaxInt
	if w.marksAhead > 0 {
		most = w.marksAhead
	}
	var moved []cluster.NodeID
	planner := reading.rules(w.policy)
	for _, g := range w.agenda.Take() {
		if len(request.Marks) >= most {
			w.agenda.Now(g)
			continue
		}
		marks, reevaluate, left := w.planGroup(planner, g, reading.Now)
		moved = append(moved, left...)
		request.Marks = append(request.Marks, marks...)
		if reevaluate {
			request.Reevaluate = append(request.Reevaluate, g.key)
		}
		if len(marks) > 0 || reevaluate {
			w.requesting = append(w.requesting, g)
		}
	}
	if requested || len(w.requesting) > 0 {
		put(w.drain, request, func(_, newest *DrainRequest) *DrainRequest { return newest })
	}
	if len(moved) > 0 {
		put(w.migrated, moved, func(unread, moved []cluster.NodeID) []cluster.NodeID { return append(unread, moved...) })
	}
}

// planGroup plans one group, and returns the nodes that allocations have left since its last
// plan.
func (w *jobWatcher) planGroup(s *rules.Planner, g *watchedGroup, now time.Time) (marks []rules.Mark, reevaluate bool, left []cluster.NodeID) {
	plan := s.PlanGroup(g.key, func(m rules.Mark) bool { return g.retries.waits(m, now) })
	left = departed(g.nodes, plan.Nodes)
	g.nodes = plan.Nodes
	if len(plan.Nodes) == 0 {
		w.drop(g)
		return nil, false, left
	}
	g.noteHolds(plan.Holds, now)
	w.found = append(w.found, g.noteForeign(plan, s.Node)...)
	reevaluate, at := g.reevaluate(plan, now)
	again := g.retries.keep(slices.Concat(plan.Marks, plan.Postponed), now, w.logger)
	w.agenda.At(g, earliest(plan.WakeAt, earliest(again, at)))
	return plan.Marks, reevaluate, left
}

// drop forgets a group that has nothing on a draining node.
func (w *jobWatcher) drop(g *watchedGroup) {
	w.agenda.Drop(g)
	w.added = slices.DeleteFunc(w.added, func(o *watchedGroup) bool { return o == g })
	w.groups.remove(g)
	if len(w.groups[g.key.Job]) == 0 {
		w.feed.Unfollow(g.key.Job)
	}
}

// takeForeign is for [foreignReporter].
func (w *jobWatcher) takeForeign() []foreign {
	found := w.found
	w.found = nil
	return found
}

// holds is for [holdReporter].
func (w *jobWatcher) holds(now time.Time) map[cluster.GroupKey][]hold {
	holds := map[cluster.GroupKey][]hold{}
	for _, groups := range w.groups { //lint:order each group by itself
		for _, g := range groups {
			if len(g.held) > 0 && !w.agenda.Has(g, now) {
				holds[g.key] = g.held
			}
		}
	}
	return holds
}
