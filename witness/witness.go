package witness

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// Witness follows the application of one log. Make it with [New] or [Resume].
type Witness struct {
	options Options
	groups  map[cluster.GroupKey]*group
	drains  map[cluster.DrainID]*drain
	marks   map[cluster.AllocID]*mark
	// counting are the ended drains whose records count unconfirmed allocations, by node.
	counting map[cluster.NodeID][]cluster.DrainID
	findings []Finding
	found    int // all findings, including those not kept
}

// group is a group that has had an allocation on a draining node.
type group struct {
	now, lowest, lowestAtMark Level
	pacedMarks                int
}

// New returns a witness of a log from its beginning.
func New(o Options) *Witness {
	if o.MaxFindings == 0 {
		o.MaxFindings = DefaultMaxFindings
	}
	return &Witness{
		options:  o,
		groups:   make(map[cluster.GroupKey]*group),
		drains:   make(map[cluster.DrainID]*drain),
		marks:    make(map[cluster.AllocID]*mark),
		counting: make(map[cluster.NodeID][]cluster.DrainID),
	}
}

// Observe judges one entry. Entries come in the order of the log, each once.
func (w *Witness) Observe(e Entry) {
	nodes := sorted(e.Touched.Nodes)
	allocs := touchedAllocs(e)
	for _, id := range nodes {
		w.observeNode(e, id)
	}
	fresh := make(map[cluster.GroupKey][]*cluster.Allocation)
	for _, id := range allocs {
		if a := w.observeAlloc(e, id); a != nil {
			g := groupOf(a)
			fresh[g] = append(fresh[g], a)
			w.follow(g)
		}
	}
	w.judgeCounts(e, nodes, allocs)
	confirmations{w, e}.judgeConfirmations(nodes, allocs)
	keys := slices.SortedFunc(maps.Keys(fresh), cluster.GroupKey.Compare)
	if !w.options.MarksOnly {
		keys = w.touchedGroups(e, nodes, allocs)
	}
	w.recount(e, keys, fresh)
}

// touchedAllocs returns, in order, the allocations named by the entry and their
// predecessors: a replacement changes the count of its predecessor's drain.
func touchedAllocs(e Entry) []cluster.AllocID {
	ids := slices.Clone(e.Touched.Allocs)
	for _, id := range e.Touched.Allocs {
		if a := e.After.Alloc(id); a != nil && a.PreviousAllocation != "" {
			ids = append(ids, a.PreviousAllocation)
		}
	}
	return sorted(ids)
}

// touchedGroups returns, in order, the groups whose healthy count the entry may
// have changed and that have had an allocation on a draining node.
func (w *Witness) touchedGroups(e Entry, nodes []cluster.NodeID, allocs []cluster.AllocID) []cluster.GroupKey {
	touched := make(map[cluster.GroupKey]bool)
	touch := func(a *cluster.Allocation, s State) {
		if a == nil {
			return
		}
		key := groupOf(a)
		if node := s.Node(a.NodeID); node != nil && node.Drain != nil && opinion.Live(a) {
			w.follow(key)
		}
		if w.groups[key] != nil {
			touched[key] = true
		}
	}
	for _, id := range allocs {
		touch(e.Before.Alloc(id), e.Before)
		touch(e.After.Alloc(id), e.After)
	}
	for _, id := range nodes {
		for a := range e.After.AllocsByNode(id) {
			touch(a, e.After)
		}
	}
	for _, key := range e.Touched.Jobs {
		for _, name := range groupNames(e.Before.Job(key), e.After.Job(key)) {
			if g := (cluster.GroupKey{Job: key, Name: name}); w.groups[g] != nil {
				touched[g] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(touched), cluster.GroupKey.Compare)
}

// groupNames returns the names of the groups of the versions of a job, any of
// which may be nil.
func groupNames(versions ...*cluster.Job) []string {
	var names []string
	for _, job := range versions {
		if job == nil {
			continue
		}
		for _, g := range job.TaskGroups {
			if g != nil {
				names = append(names, g.Name)
			}
		}
	}
	return names
}

// recount counts the touched groups again and judges the paced ones of the new marks, which
// are in allocation order.
func (w *Witness) recount(e Entry, keys []cluster.GroupKey, fresh map[cluster.GroupKey][]*cluster.Allocation) {
	var job cluster.JobKey
	var counts map[string]int // of job
	for _, key := range keys {
		if counts == nil || key.Job != job {
			job, counts = key.Job, countHealthy(e.After, key.Job)
		}
		pace, exists := opinion.PaceOf(e.After.Job(key.Job), key.Name)
		now := Level{Healthy: counts[key.Name], Count: pace.Count, Limit: pace.Limit(), Index: e.Index, At: e.At}
		g := w.groups[key]
		g.now = now
		if exists && !w.options.MarksOnly {
			g.lowest.lower(now)
		}
		w.judgePaced(e, key, fresh[key], now, exists)
	}
}

// Level returns the level of a group after the newest entry. It is zero if the group has had no allocation on a draining
// node, and with MarksOnly that after the newest mark.
func (w *Witness) Level(key cluster.GroupKey) Level {
	if g := w.groups[key]; g != nil {
		return g.now
	}
	return Level{}
}

// judgePaced replays the entry's marks on one group. It judges each in the state after the
// marks before it.
func (w *Witness) judgePaced(e Entry, key cluster.GroupKey, marked []*cluster.Allocation, now Level, exists bool) {
	g := w.groups[key]
	level := now
	for _, a := range marked {
		if wasHealthy(e, a) {
			level.Healthy++
		}
		level.Healthy -= activated(e, a)
	}
	for i, a := range marked {
		earlier := level.Healthy
		if wasHealthy(e, a) {
			level.Healthy--
		}
		level.Healthy += activated(e, a)
		if a.DesiredTransition.Class != cluster.MarkPaced {
			continue
		}
		g.pacedMarks++
		f := Finding{Drain: a.DesiredTransition.Drain, Node: a.NodeID, Alloc: a.ID, Group: key}
		switch {
		case !exists:
			f.Kind, f.Why = NoLimit, "paced mark in a group that does not exist"
			w.find(e, f)
			continue
		case surges(e, a):
			least := earlier - fewer(e, a)
			if judgeReplaced(w, e, f, a, marked[i+1:]) && level.Healthy < least {
				f.Kind, f.Why = BelowLimit, "paced mark left fewer healthy allocations than before, its replacement counted"
				f.Healthy, f.Limit = level.Healthy, least
				w.find(e, f)
			}
			at := level
			at.Limit = min(at.Limit, least)
			g.lowestAtMark.lower(at)
			continue
		case level.Healthy < level.Limit:
			f.Kind, f.Why = BelowLimit, "paced mark took its group below its limit"
			f.Healthy, f.Limit = level.Healthy, level.Limit
			w.find(e, f)
		}
		g.lowestAtMark.lower(level)
	}
}

// wasHealthy reports whether a newly marked allocation counted as healthy before its mark
// and no longer counts because of the mark.
func wasHealthy(e Entry, a *cluster.Allocation) bool {
	before := e.Before.Alloc(a.ID)
	return before != nil && healthy(before, e.Before) && healthyButForMark(a, e.After)
}

// follow counts the group from now on.
func (w *Witness) follow(key cluster.GroupKey) {
	if w.groups[key] == nil {
		w.groups[key] = new(group)
	}
}

func (w *Witness) find(e Entry, f Finding) {
	f.Index, f.At = e.Index, e.At
	if w.found++; len(w.findings) < w.options.MaxFindings {
		w.findings = append(w.findings, f)
	}
	if w.options.OnFinding != nil {
		w.options.OnFinding(f)
	}
}

func groupOf(a *cluster.Allocation) cluster.GroupKey {
	return cluster.GroupKey{Job: cluster.JobKey{Namespace: a.Namespace, ID: a.JobID}, Name: a.TaskGroup}
}

// sorted returns the ids in order, each once.
func sorted[T cmp.Ordered](ids []T) []T {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Level is the healthy count of a group at one moment, against its limit.
type Level struct {
	Healthy int
	// Count is the group's count at that moment, and Limit the minimum that its migrate
	// block allowed: Count − max_parallel.
	Count, Limit int
	// Index is the raft index of the entry after which the level held, or zero if it
	// never did. At is the proposer's time of that entry, or zero.
	Index uint64
	At    time.Time
}

// lower replaces l if o is lower, each against its own limit.
func (l *Level) lower(o Level) {
	if l.Index == 0 || o.Healthy-o.Limit < l.Healthy-l.Limit {
		*l = o
	}
}
