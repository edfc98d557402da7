package drainertest

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// A store that keeps the fields of decisions passes.
func TestTestStore_stores(t *testing.T) {
	t.Parallel()
	testStores(t, map[string]flaws{
		"a plain store":                  {},
		"a store whose feed reports All": {name: func(c *drainer.Changes) { *c = drainer.Changes{All: true} }},
	})
}

// A store may return times in another location, and lose fields that no decision reads.
//
//race:skip the same goroutines as TestTestStore_stores
func TestTestStore_editedRows(t *testing.T) {
	t.Parallel()
	testStores(t, map[string]flaws{
		"a store with times in another zone": {rows: func(r Rows) Rows { return edited(r, elsewhere) }},
		"a store that loses unread fields":   {rows: func(r Rows) Rows { return edited(r, unread) }},
	})
}

func testStores(t *testing.T, stores map[string]flaws) {
	t.Helper()
	for name, f := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			must.NoError(t, TestStore(func() Store { return newPlainStore(f) }))
		})
	}
}

// TestStore finds each deliberate mistake, and the error names it.
//
//race:skip the same goroutines as TestTestStore_stores
func TestTestStore_mistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		flaws
		want string
	}{
		{"views in another order", flaws{view: func(v rules.View) rules.View { return reversed{v} }}, "NodeAllocs("},
		{"a view without terminal canaries", flaws{view: func(v rules.View) rules.View { return onlyLive{v} }}, "GroupAllocs("},
		{"a view without unconfirmed allocations", flaws{view: func(v rules.View) rules.View { return doubting{v} }}, "Unconfirmed("},
		{"a view that counts system work", flaws{view: func(v rules.View) rules.View { return counting{v} }}, "Consumers("},
		{"a view that counts unreachable nodes", flaws{view: func(v rules.View) rules.View { return reaching{v} }}, "Healthy("},
		{"a view that leaves out stable allocations on draining nodes", flaws{view: func(v rules.View) rules.View { return stableLeftOut{v} }}, "ChangingAllocs("},
		{"a view that counts standbys", flaws{view: func(v rules.View) rules.View { return besides{v} }}, "Healthy("},
		{"a view that counts evicted allocations", flaws{view: func(v rules.View) rules.View { return evicted{v, true} }}, "Healthy("},
		{"a view that leaves out evicted allocations", flaws{view: func(v rules.View) rules.View { return evicted{v, false} }}, "ChangingAllocs("},
		{"a store in which evicted allocations run", flaws{rows: func(r Rows) Rows { return edited(r, replace(cluster.DesiredEvict, cluster.DesiredRun)) }}, "DesiredStatus"},
		{"a store in which failed evaluations are open", flaws{rows: func(r Rows) Rows { return edited(r, replace(cluster.EvalFailed, cluster.EvalBlocked)) }}, "OpenEvals("},
		{"a view without the index", flaws{view: func(v rules.View) rules.View { return unnumbered{v} }}, "Index is 0"},
		{"a view that is always the newest", flaws{mutable: true}, "the view taken after commit 0, at the end"},
		{"a feed that does not name nodes", flaws{name: func(c *drainer.Changes) { c.Nodes = nil }}, "a feed has not reported node"},
		{"a feed that does not name hosts", flaws{name: func(c *drainer.Changes) { c.Hosts = nil }}, "a feed has not reported host"},
		{"a feed that does not name groups", flaws{name: func(c *drainer.Changes) { c.Groups = nil }}, "a feed has not reported group"},
		{"a feed that does not name jobs", flaws{name: func(c *drainer.Changes) { c.Jobs = nil }}, "a feed has not reported job"},
		{"a feed that names only the last change", flaws{forgets: true}, "a feed has not reported"},
		{"a feed that does not wake", flaws{silent: true}, "has not woken its subscriber"},
		{"a feed that Close does not end", flaws{unclosed: true}, "a closed feed has woken its subscriber"},
		{"a feed whose follows are not counted", flaws{uncounted: true}, "a feed"},
		{"a store that does not report that it was replaced", flaws{replaced: true}, "Subscribe has not woken a later subscriber"},
		{"a store that reports only once that it was replaced", flaws{once: true}, "does not report this at each Take"},
		{"a wake-up before the commit is visible", flaws{early: time.Millisecond}, "woken before the commit was visible"},
		{"a wake-up before the commit is visible, and a feed that reports All", flaws{early: time.Millisecond, name: func(c *drainer.Changes) { *c = drainer.Changes{All: true} }}, "woken before the commit was visible"},
		{"a wake-up that blocks", flaws{blocks: true}, "the send to wake must not block; it has not returned within"},
		{"a store that does not show the pause of all", flaws{unpaused: true}, "DrainPause of the view of index 2 is nil, want at 2030-01-01T00:00:00.000001Z by \"ann\""},
		{"a store that keeps the pause of all", flaws{unresumed: true}, "DrainPause of the view of index 3 is at 2030-01-01T00:00:00.000001Z by \"ann\", want nil"},
		{"a pause of all that wakes no feed", flaws{pauseNames: []cluster.NodeID{}}, "began or ended, but a feed has not woken its subscriber"},
		{"a pause of all that names one node", flaws{pauseNames: []cluster.NodeID{"n1"}}, "began or ended: a feed has not reported node n2"},
		{"a pause of all without views", flaws{view: func(v rules.View) rules.View { return struct{ rules.View }{v} }}, "views that do not implement rules.PauseView"},
		{"rows that are lost", flaws{rows: func(r Rows) Rows { r.Allocs = nil; return r }}, "allocation"},
		{"rows that are not deleted", flaws{rows: func(r Rows) Rows { r.DeletedNodes = nil; return r }}, "was deleted or never written"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			must.ErrorContains(t, testStore(func() Store { return newPlainStore(c.flaws) }, time.Second), c.want)
		})
	}
}

// TestStore finds a store that loses one field that decisions read, and the error names the field.
//
//race:skip the same goroutines as TestTestStore_stores
func TestTestStore_lostFields(t *testing.T) {
	t.Parallel()
	// Without these fields the row is not found, or is not in its list.
	elsewise := map[string]string{
		"Node.ID": "node", "Job.ID": "job", "Job.Namespace": "job", "Allocation.ID": "allocation",
		"Evaluation.ID": "evaluation", "Evaluation.JobID": "evaluation", "Evaluation.Namespace": "evaluation", "Evaluation.Status": "evaluation",
		"DrainStrategy.DrainSpec": "DrainSpec", "Job.TaskGroups": "TaskGroups",
	}
	for _, field := range DecisionFields() {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			lose := func(v reflect.Value) {
				if v.Kind() != reflect.Struct {
					return
				}
				for i := range v.NumField() {
					if v.Type().Name()+"."+v.Type().Field(i).Name == field {
						v.Field(i).SetZero()
					}
				}
			}
			_, want, _ := strings.Cut(field, ".")
			if other := elsewise[field]; other != "" {
				want = other
			}
			err := TestStore(func() Store { return newPlainStore(flaws{rows: func(r Rows) Rows { return edited(r, lose) }}) })
			must.ErrorContains(t, err, want)
			must.StrNotContains(t, err.Error(), "0x", must.Sprint("no addresses"))
		})
	}
}

func ExampleTestStore_error() {
	err := TestStore(func() Store {
		return newPlainStore(flaws{rows: func(r Rows) Rows {
			return edited(r, func(v reflect.Value) {
				if a, is := v.Addr().Interface().(*cluster.Allocation); is {
					a.StoppedAt = time.Time{}
				}
			})
		}})
	})
	fmt.Println(err)
	// Output:
	// world 0: after commit 30: Alloc(b): allocation b: StoppedAt is 0001-01-01T00:00:00Z, want 2030-01-01T00:12:05.720183Z
}

// edited returns copies of the rows after edit has changed them and the structs and times in them.
func edited(r Rows, edit func(reflect.Value)) Rows {
	r.Nodes, r.Jobs, r.Allocs, r.Evals = slices.Clone(r.Nodes), slices.Clone(r.Jobs), slices.Clone(r.Allocs), slices.Clone(r.Evals)
	for i, n := range r.Nodes {
		r.Nodes[i] = n.Copy()
		if n.Drain != nil {
			r.Nodes[i].Drain = n.Drain.Copy()
			r.Nodes[i].Drain.Paused = copied(n.Drain.Paused)
		}
		walk(reflect.ValueOf(r.Nodes[i]).Elem(), edit)
	}
	for i, j := range r.Jobs {
		r.Jobs[i] = j.Copy()
		walk(reflect.ValueOf(r.Jobs[i]).Elem(), edit)
	}
	for i, a := range r.Allocs {
		r.Allocs[i] = a.Copy()
		r.Allocs[i].Job, r.Allocs[i].VolumeHolds = a.Job.Copy(), a.VolumeHolds.Copy()
		r.Allocs[i].DataIn, r.Allocs[i].DataOut = copied(a.DataIn), copied(a.DataOut)
		walk(reflect.ValueOf(r.Allocs[i]).Elem(), edit)
	}
	for i, e := range r.Evals {
		r.Evals[i] = e.Copy()
		walk(reflect.ValueOf(r.Evals[i]).Elem(), edit)
	}
	return r
}

func copied[T any](m *T) *T {
	if m == nil {
		return nil
	}
	c := *m
	return &c
}

// walk edits the values in a value, then the value itself.
func walk(v reflect.Value, edit func(reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem(), edit)
		}
		return
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), edit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				walk(v.Field(i), edit)
			}
		}
	}
	edit(v)
}

// elsewhere moves times to another location.
func elsewhere(v reflect.Value) {
	if at, is := v.Addr().Interface().(*time.Time); is && !at.IsZero() {
		*at = at.In(time.FixedZone("elsewhere", 3600))
	}
}

// unread zeroes the fields of rows that no decision reads.
func unread(v reflect.Value) {
	read := decisionFieldsOf(v.Type())
	if read == nil {
		return
	}
	for i := range v.NumField() {
		if !slices.Contains(read, v.Type().Field(i).Name) {
			v.Field(i).SetZero()
		}
	}
}

// flaws are the mistakes of a store.
type flaws struct {
	view func(rules.View) rules.View
	name func(*drainer.Changes)
	rows func(Rows) Rows
	// early is how long before a commit is visible its subscribers are woken.
	early time.Duration

	// pauseNames are the nodes that a pause of all names, or nil for all that drain.
	pauseNames []cluster.NodeID

	mutable, forgets, silent, unclosed, uncounted, replaced, once, blocks, unpaused, unresumed bool
}

// plainStore is a store without any index.
type plainStore struct {
	flaws flaws

	mu        sync.Mutex
	model     *model              // guarded by mu
	pause     *cluster.DrainPause // guarded by mu
	feeds     []*plainFeed        // guarded by mu
	abandoned bool                // guarded by mu
}

func newPlainStore(f flaws) *plainStore { return &plainStore{flaws: f, model: (&model{}).next(0)} }

func (s *plainStore) Snapshot() rules.View {
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := pausing{s.model, s.pause}
	if s.flaws.view != nil {
		return s.flaws.view(shown)
	}
	return shown
}

// pausing is a view with a pause of all drains.
type pausing struct {
	*model
	all *cluster.DrainPause
}

func (v pausing) DrainPause() *cluster.DrainPause { return v.all }

func (s *plainStore) CommitPause(index uint64, all *cluster.DrainPause) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model = s.model.next(index)
	if !s.flaws.unpaused && !(s.flaws.unresumed && all == nil) {
		s.pause = all
	}
	names := s.flaws.pauseNames
	if names == nil {
		for n := range s.model.DrainingNodes() {
			names = append(names, n.ID)
		}
	}
	for _, f := range s.feeds {
		f.reported(drainer.Changes{Nodes: names})
	}
	return nil
}

func (s *plainStore) Commit(index uint64, rows Rows) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, after := s.model, s.model.next(index)
	reported := rows
	if s.flaws.rows != nil {
		rows = s.flaws.rows(rows)
	}
	after.write(rows)
	due := make([]drainer.Changes, len(s.feeds))
	for i, f := range s.feeds {
		due[i] = mustName(before, after, reported, f.follows)
	}
	name := func() {
		for i, f := range s.feeds {
			f.reported(due[i])
		}
	}
	if s.flaws.early > 0 {
		name()
		s.mu.Unlock()
		delay(s.flaws.early)
		s.mu.Lock()
		s.model = after
		return nil
	}
	s.model = after
	if s.flaws.mutable {
		*before = *after
		s.model = before
	}
	name()
	return nil
}

func (s *plainStore) Abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned = !s.flaws.replaced
	for _, f := range s.feeds {
		f.ring()
	}
}

func (s *plainStore) Subscribe(wake chan<- struct{}) drainer.Feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &plainFeed{store: s, wake: wake, follows: map[cluster.JobKey]int{}}
	s.feeds = append(s.feeds, f)
	if s.abandoned {
		f.ring()
	}
	return f
}

// plainFeed is guarded by its store's mu.
type plainFeed struct {
	store   *plainStore
	wake    chan<- struct{}
	follows map[cluster.JobKey]int
	changes drainer.Changes
	// replaced means that the last Take reported that the store was replaced.
	replaced bool
}

func (f *plainFeed) reported(c drainer.Changes) {
	due := !c.Empty()
	if f.store.flaws.name != nil && due {
		f.store.flaws.name(&c)
	}
	if f.store.flaws.forgets {
		f.changes = drainer.Changes{}
	}
	f.changes.All = f.changes.All || c.All
	f.changes.Nodes = append(f.changes.Nodes, c.Nodes...)
	f.changes.Hosts = append(f.changes.Hosts, c.Hosts...)
	f.changes.Groups = append(f.changes.Groups, c.Groups...)
	f.changes.Jobs = append(f.changes.Jobs, c.Jobs...)
	if due && !f.store.flaws.silent {
		f.ring()
	}
}

func (f *plainFeed) ring() {
	if f.store.flaws.blocks {
		f.wake <- struct{}{}
		return
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *plainFeed) Take() drainer.Changes {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	c := f.changes
	c.Abandoned = f.store.abandoned && !(f.store.flaws.once && f.replaced)
	f.replaced = c.Abandoned
	f.changes = drainer.Changes{}
	return c
}

func (f *plainFeed) Follow(key cluster.JobKey) {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	f.follows[key]++
}

func (f *plainFeed) Unfollow(key cluster.JobKey) {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	if f.follows[key]--; f.store.flaws.uncounted {
		f.follows[key] = 0
	}
}

func (f *plainFeed) Close() {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	if !f.store.flaws.unclosed {
		f.store.feeds = slices.DeleteFunc(f.store.feeds, func(o *plainFeed) bool { return o == f })
	}
}

// reversed yields a node's allocations in the wrong order.
type reversed struct{ rules.View }

func (v reversed) NodeAllocs(n cluster.NodeID, s cluster.Stage, leaving bool) iter.Seq[*cluster.Allocation] {
	rows := slices.Collect(v.View.NodeAllocs(n, s, leaving))
	slices.Reverse(rows)
	return slices.Values(rows)
}

// onlyLive leaves out the canaries that have ended.
type onlyLive struct{ rules.View }

func (v onlyLive) GroupAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	rows := slices.Collect(v.View.GroupAllocs(g))
	return slices.Values(slices.DeleteFunc(rows, (*cluster.Allocation).ClientTerminal))
}

// reaching also counts healthy allocations on unreachable nodes.
type reaching struct{ rules.View }

func (v reaching) Healthy(g cluster.GroupKey) int {
	count := 0
	for a := range v.GroupAllocs(g) {
		if a.HealthyIfReachable() {
			count++
		}
	}
	return count
}

// besides also counts standbys as healthy.
type besides struct{ rules.View }

func (v besides) Healthy(g cluster.GroupKey) int {
	count := 0
	for a := range v.GroupAllocs(g) {
		if n := v.Node(a.NodeID); a.Healthy(n) || a.Standby && cluster.TakesOver(a, n) {
			count++
		}
	}
	return count
}

// evicted counts evicted allocations as healthy, or leaves them out of those that change.
type evicted struct {
	rules.View
	counts bool
}

func (v evicted) Healthy(g cluster.GroupKey) int {
	count := v.View.Healthy(g)
	for a := range v.GroupAllocs(g) {
		if c := a.Copy(); v.counts && a.DesiredStatus == cluster.DesiredEvict {
			if c.DesiredStatus = cluster.DesiredRun; c.Healthy(v.Node(a.NodeID)) {
				count++
			}
		}
	}
	return count
}

func (v evicted) ChangingAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	if v.counts {
		return v.View.ChangingAllocs(g)
	}
	rows := slices.Collect(v.View.ChangingAllocs(g))
	return slices.Values(slices.DeleteFunc(rows, func(a *cluster.Allocation) bool { return a.DesiredStatus == cluster.DesiredEvict }))
}

// replace replaces one value of a field by another.
func replace[T comparable](old, by T) func(reflect.Value) {
	return func(v reflect.Value) {
		if at, is := v.Addr().Interface().(*T); is && *at == old {
			*at = by
		}
	}
}

// stableLeftOut leaves out stable allocations on draining nodes.
type stableLeftOut struct{ rules.View }

func (v stableLeftOut) ChangingAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	rows := slices.Collect(v.View.ChangingAllocs(g))
	return slices.Values(slices.DeleteFunc(rows, (*cluster.Allocation).Stable))
}

// doubting yields no unconfirmed allocation.
type doubting struct{ rules.View }

func (v doubting) Unconfirmed(cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return func(func(*cluster.Allocation) bool) {}
}

// counting also counts allocations of other stages.
type counting struct{ rules.View }

func (v counting) Consumers(n cluster.NodeID) int {
	count := 0
	for _, s := range cluster.Stages() {
		count += len(slices.Collect(v.NodeAllocs(n, s, true))) + len(slices.Collect(v.NodeAllocs(n, s, false)))
	}
	return count
}

// unnumbered is a view whose index is zero.
type unnumbered struct{ rules.View }

func (unnumbered) Index() uint64 { return 0 }

// delay is how long a mistake of a test double lasts.
func delay(d time.Duration) { <-time.After(d) }
