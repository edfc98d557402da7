package drainer

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/alarm"
)

// jobWatcher is the built-in [DrainingJobWatcher]. It looks after the groups
// that have allocations on draining nodes, judges a group anew when something
// about it changed, and wants what the group's budget allows.
type jobWatcher struct {
	logger   hclog.Logger
	feed     Feed // never nil
	policy   Policy
	backoff  backoff
	drain    chan *DrainRequest // capacity 1
	migrated chan []Migration   // capacity 1

	mu         sync.Mutex
	registered []cluster.GroupKey // guarded by mu
	replies    []DrainReply       // guarded by mu

	// What follows belongs to Step.

	// groups are those that are looked after. A job is followed while it has any.
	groups watchedGroups
	// dirty are the groups to judge in this step, gathered those that may be judged
	// when nothing is in flight: each once, see watchedGroup.dirty.
	dirty, gathered []*watchedGroup
	// heard are groups that were told of in this step, or whose marks were applied: weigh
	// says whether that is news. Waiting are those that were told of while something is in
	// flight, which may be why. Both may have a group twice, and one that is weighed.
	heard, waiting []*watchedGroup
	// fresh are groups of jobs that are followed since this step: its view may
	// be older than that, so they are judged in the next.
	fresh []cluster.GroupKey
	// wanting are the groups that want marks, reevaluating those that want an
	// evaluation; changed says that what they want is not what was last offered.
	wanting, reevaluating groupList
	changed               bool
	// alarms are when groups are to be judged anew although nothing changed.
	alarms alarm.Heap[*watchedGroup]
	// ahead bounds the marks of a request; zero is no bound.
	ahead int
}

// NewJobWatcher is the [DrainingJobWatcherFactory] of the built-in watcher.
func NewJobWatcher(env Env) DrainingJobWatcher {
	return &jobWatcher{
		logger:   env.Logger.Named("jobs"),
		feed:     env.Feed,
		policy:   env.Policy,
		backoff:  backoff{base: env.RetryBase, max: env.RetryMax},
		drain:    make(chan *DrainRequest, 1),
		migrated: make(chan []Migration, 1),
		groups:   watchedGroups{},
		ahead:    env.MarksAhead,
	}
}

func (w *jobWatcher) Drain() <-chan *DrainRequest { return w.drain }

func (w *jobWatcher) Migrated() <-chan []Migration { return w.migrated }

func (w *jobWatcher) RegisterJobs(groups []cluster.GroupKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.registered = append(w.registered, groups...)
}

// reply is the Reply of every request.
func (w *jobWatcher) reply(r DrainReply) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replies = append(w.replies, r)
}

// Step judges every group that something was said of, and offers what is wanted
// if that may have changed.
func (w *jobWatcher) Step(look Look) time.Time {
	registered, replies := w.takePosts()
	for _, key := range w.fresh {
		w.see(w.groups.get(key))
	}
	w.fresh = nil
	w.settle(replies)
	w.admit(registered)
	w.hear(look.Changes)
	w.see(w.alarms.Pop(look.Now)...)
	w.weigh(look.InFlight)

	var moved []Migration
	if due := w.due(look.InFlight); len(due) > 0 {
		m := look.moment(w.policy)
		for _, g := range due {
			moved = append(moved, w.judge(m, g, look.InFlight)...)
		}
	}
	if w.changed {
		w.changed = false
		w.offer()
	}
	w.report(moved)
	if len(w.fresh) > 0 && look.InFlight == nil {
		return look.Now
	}
	return w.alarms.First()
}

func (w *jobWatcher) takePosts() ([]cluster.GroupKey, []DrainReply) {
	w.mu.Lock()
	defer w.mu.Unlock()
	registered, replies := w.registered, w.replies
	w.registered, w.replies = nil, nil
	return registered, replies
}

// due are the groups to judge in this step, in order.
//
// While writes are in flight nothing else is written, and a group that is judged at each
// of their entries would be judged for nothing: it is gathered, and judged once when they
// are answered. What waits to be written is looked after all the same, so that nobody is
// told of a wish which makes no sense any more.
func (w *jobWatcher) due(inFlight func(cluster.AllocID) bool) []*watchedGroup {
	due := w.dirty
	w.dirty = nil
	if inFlight == nil {
		due, w.gathered = append(due, w.gathered...), nil
	} else {
		due = slices.DeleteFunc(due, func(g *watchedGroup) bool {
			gathers := !g.asksBeside(inFlight)
			if gathers {
				w.gathered = append(w.gathered, g)
				w.alarms.Remove(g) // it dates from before what g is judged for
			}
			return gathers
		})
	}
	slices.SortFunc(due, (*watchedGroup).Compare)
	for _, g := range due {
		g.dirty = false
	}
	return due
}

// see has groups judged anew; nil is one that is not looked after.
func (w *jobWatcher) see(groups ...*watchedGroup) {
	for _, g := range groups {
		if g != nil && !g.dirty {
			g.dirty, g.told, g.wrote = true, 0, 0
			w.dirty = append(w.dirty, g)
		}
	}
}

// hear takes in what has changed; every group is judged anew if anything may have.
func (w *jobWatcher) hear(changes Changes) {
	for _, told := range changes.Groups {
		if g := w.groups.get(told.Key); g != nil {
			w.note(g, &g.told, told.At)
		} else {
			w.begin(told.Key)
		}
	}
	if changes.All {
		for _, groups := range w.groups { //lint:order they are sorted when they are judged
			w.see(groups...)
		}
		return
	}
	for _, told := range changes.Jobs {
		for _, g := range w.groups[told.Key] {
			w.note(g, &g.told, told.At)
		}
	}
}

// note notes an entry in which a group changed or its marks were applied, unless the group
// is to be judged anyway. Zero is several entries or none that is known: they cannot be told
// apart.
func (w *jobWatcher) note(g *watchedGroup, entry *uint64, at uint64) {
	switch {
	case g.dirty || *entry == at && at != 0:
	case at == 0 || *entry != 0:
		w.see(g)
	default:
		*entry = at
		w.heard = append(w.heard, g)
	}
}

// weigh has the groups judged anew that were heard of, but for those of which nothing has
// changed but that all they wished was written: that was counted when it was planned, as
// was what leaves with their nodes, and the plan stands. What is told before the answer
// waits for it.
func (w *jobWatcher) weigh(inFlight func(cluster.AllocID) bool) {
	if inFlight == nil {
		w.heard, w.waiting = append(w.heard, w.waiting...), nil
	}
	for _, g := range w.heard {
		switch {
		case g.told == 0 && g.wrote == 0: // weighed, or to be judged anyway
		case w.alarms.Has(g):
			w.see(g) // it may have nothing to wait for any more
		case g.told == g.wrote && len(g.asked) == 0 && !g.reevaluate:
			w.want(g, false)
			g.told, g.wrote = 0, 0
		case g.wrote == 0 && inFlight != nil && !g.asksBeside(inFlight):
			w.waiting = append(w.waiting, g)
		default:
			w.see(g)
		}
	}
	w.heard = nil
}

// admit begins to look after groups, and judges anew those it looks after.
func (w *jobWatcher) admit(groups []cluster.GroupKey) {
	for _, key := range groups {
		if g := w.groups.get(key); g != nil {
			w.see(g)
		} else {
			w.begin(key)
		}
	}
}

// begin begins to look after a group.
func (w *jobWatcher) begin(key cluster.GroupKey) {
	if len(w.groups[key.Job]) == 0 {
		w.feed.Follow(key.Job)
	}
	w.groups.add(&watchedGroup{key: key})
	w.fresh = append(w.fresh, key)
}

// settle takes in what became of what was asked. Of a group of which all was applied weigh
// says whether it is judged anew; every other that is spoken of is.
func (w *jobWatcher) settle(replies []DrainReply) {
	for _, r := range replies {
		w.changed = true
		refusals := r.refusedGroups()
		var g *watchedGroup
		for i, m := range r.Marks { // those of a group are next to each other
			if i == 0 || m.Group != r.Marks[i-1].Group {
				if g = w.groups.get(m.Group); g == nil {
					continue
				}
				if r.Outcome == Applied && !refusals[g.key] {
					g.refused = nil
					w.note(g, &g.wrote, r.Index)
				} else {
					w.see(g)
				}
			}
			if g != nil {
				g.answered(m.Alloc)
			}
		}
		for key := range refusals { //lint:order each group by itself
			if g := w.groups.get(key); g != nil && g.refused.wait(r.At).IsZero() {
				g.refused = g.refused.again(w.backoff, r.At)
			}
		}
		for _, key := range r.Reevaluated {
			if g := w.groups.get(key); g != nil {
				w.answerEvaluation(g, r)
			}
		}
	}
}

// answerEvaluation takes in what became of an evaluation that was wanted. Only one
// that was written is waited for: what failed is spaced with all that failed.
func (w *jobWatcher) answerEvaluation(g *watchedGroup, r DrainReply) {
	g.reevaluate = false
	w.see(g)
	if r.Outcome == Applied {
		g.reevaluated = g.reevaluated.again(w.backoff, r.At)
	}
}

// refusedGroups are the groups of which a mark was refused: they wait longer each
// time, in case plan and state cannot agree.
func (r DrainReply) refusedGroups() map[cluster.GroupKey]bool {
	if len(r.Refused) == 0 {
		return nil
	}
	refused := make(map[cluster.AllocID]bool, len(r.Refused))
	for _, refusal := range r.Refused {
		refused[refusal.Alloc] = true
	}
	groups := map[cluster.GroupKey]bool{}
	for _, m := range r.Marks {
		if refused[m.Alloc] {
			groups[m.Group] = true
		}
	}
	return groups
}

// judge plans one group, keeps what it wants, and returns what has left its
// draining nodes since it was last judged.
func (w *jobWatcher) judge(m *moment, g *watchedGroup, inFlight func(cluster.AllocID) bool) []Migration {
	now := m.newGroup(g.key)
	now.expect(len(g.onDraining))
	now.look()
	plan := now.plan(func(id cluster.AllocID) progress {
		switch {
		case inFlight != nil && inFlight(id):
			return wasSent
		case g.asksFor(id):
			return wasAsked
		}
		return notAsked
	})
	if wait := g.refused.wait(m.now); !wait.IsZero() {
		w.alarms.Wake(g, wait)
		w.dropStale(g, plan)
		return nil
	}
	asked, reevaluate := g.asked, g.reevaluate
	g.asked = asks(plan.marks)
	g.keepHolds(plan, m.now)
	w.alarms.Wake(g, earliest(plan.wakeAt, w.judgeEvaluation(g, plan, m.now)))
	moved := departed(m.view, g.onDraining, plan.onDraining)
	g.onDraining = plan.onDraining
	w.changed = w.changed || reevaluate != g.reevaluate || !slices.Equal(asked, g.asked)
	w.keep(g)
	return moved
}

// dropStale takes back what a group that waits after a refusal wishes no longer:
// planned from another state, it would be refused too. Nothing is added.
func (w *jobWatcher) dropStale(g *watchedGroup, plan groupPlan) {
	kept := asks(slices.DeleteFunc(plan.marks, func(m Mark) bool { return !g.asksFor(m.Alloc) }))
	if slices.Equal(kept, g.asked) {
		return
	}
	g.asked, w.changed = kept, true
	w.want(g, len(kept) > 0)
}

// want has the group among those that want marks, or not.
func (w *jobWatcher) want(g *watchedGroup, marks bool) {
	if g.wanting != marks {
		g.wanting = marks
		w.wanting.put(g, marks)
	}
}

// keep notes whether the group wants something, and drops a group that has
// nothing on a draining node any more.
func (w *jobWatcher) keep(g *watchedGroup) {
	w.want(g, len(g.asked) > 0)
	w.reevaluating.put(g, g.reevaluate)
	if len(g.asked) > 0 || g.reevaluate || len(g.onDraining) > 0 {
		return
	}
	w.alarms.Remove(g)
	w.groups.remove(g)
	if len(w.groups[g.key.Job]) == 0 {
		w.feed.Unfollow(g.key.Job)
	}
}

// judgeEvaluation decides whether the group's job is to be evaluated again: at
// once the first time, then less and less often while marked allocations run on.
// It returns when to look again, or zero.
func (w *jobWatcher) judgeEvaluation(g *watchedGroup, plan groupPlan, now time.Time) time.Time {
	switch {
	case !plan.waiting:
		g.reevaluate, g.reevaluated = false, nil
	case !plan.stuck:
		g.reevaluate = false
	case g.reevaluate:
	case !g.reevaluated.wait(now).IsZero():
		return g.reevaluated.until
	default:
		g.reevaluate = true
		w.logger.Info("marked allocations run on without an evaluation, evaluating their job again",
			"job", g.key.Job, "group", g.key.Name, "attempt", g.reevaluated.made()+1)
	}
	return time.Time{}
}

// departed says what became of the allocations that were on draining nodes and
// are live there no longer. One whose node stopped draining has not departed.
// Both are in order.
func departed(v View, before, after []*cluster.Allocation) []Migration {
	var moved []Migration
	for _, was := range before {
		for len(after) > 0 && after[0].ID < was.ID {
			after = after[1:]
		}
		if len(after) > 0 && after[0].ID == was.ID {
			continue
		}
		if a := v.Alloc(was.ID); a == nil || a.ClientTerminal() {
			moved = append(moved, migrationOf(v, was.ID, was.NodeID, a))
		}
	}
	return moved
}

// offer puts the present wish where the drainer looks, in place of an unread one. It
// names no more marks than a round may take: they are the first, and when they are
// answered the next are. Nor does it look further: many more may be wanted.
func (w *jobWatcher) offer() {
	request := &DrainRequest{Reply: w.reply}
	room := math.MaxInt
	if w.ahead > 0 {
		room = w.ahead
	}
	for _, g := range w.wanting {
		for _, a := range g.asked[:min(room, len(g.asked))] {
			request.Marks = append(request.Marks, a.mark(g.key))
			room--
		}
		if room == 0 {
			break
		}
	}
	for _, g := range w.reevaluating {
		if g.reevaluate {
			request.Reevaluate = append(request.Reevaluate, g.key)
		}
	}
	select {
	case <-w.drain:
	default:
	}
	select {
	case w.drain <- request:
	default: // only Step sends, and it has just made room
	}
}

// report puts migrations where the drainer looks, together with unread ones.
func (w *jobWatcher) report(moved []Migration) {
	if len(moved) == 0 {
		return
	}
	select {
	case unread := <-w.migrated:
		moved = append(unread, moved...)
	default:
	}
	select {
	case w.migrated <- moved:
	default: // only Step sends, and it has just made room
	}
}

// Holds implements [HoldReporter].
func (w *jobWatcher) Holds() map[cluster.GroupKey][ReasonCount]time.Time {
	holds := make(map[cluster.GroupKey][ReasonCount]time.Time, len(w.groups))
	for _, groups := range w.groups { //lint:order each group by itself
		for _, g := range groups {
			holds[g.key] = g.heldSince()
		}
	}
	return holds
}
