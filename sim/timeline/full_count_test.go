package timeline_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// randomHistory applies random entries.
type randomHistory struct {
	*history
	rng    *rand.Rand
	nodes  []cluster.NodeID
	groups []cluster.GroupKey
	placed int
}

func newRandomHistory(t testing.TB, seed uint64) *randomHistory {
	return &randomHistory{
		history: newHistory(t), rng: rand.New(rand.NewPCG(seed, 0)),
		nodes: []cluster.NodeID{"n1", "n2", "n3", "n4", "n5"},
	}
}

// setup registers nodes and jobs and places allocations.
func (c *randomHistory) setup() {
	c.node(c.nodes...)
	for i, t := range []cluster.JobType{cluster.JobService, cluster.JobService, cluster.JobBatch, cluster.JobSystem} {
		c.groups = append(c.groups, c.job(cluster.JobID(fmt.Sprintf("j%d", i)), t, 6, 1+i))
	}
	for range 40 {
		c.placeOne()
	}
}

func (c *randomHistory) group() cluster.GroupKey  { return c.groups[c.rng.IntN(len(c.groups))] }
func (c *randomHistory) someNode() cluster.NodeID { return c.nodes[c.rng.IntN(len(c.nodes))] }
func (c *randomHistory) chance(percent int) bool  { return c.rng.IntN(100) < percent }
func (c *randomHistory) allocs() []cluster.AllocID {
	return c.matching(func(*cluster.Allocation) bool { return true })
}

func (c *randomHistory) matching(matches func(*cluster.Allocation) bool) (ids []cluster.AllocID) {
	for a := range c.State().Allocs() {
		if matches(a) {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// some returns up to four random ids.
func (c *randomHistory) some(ids []cluster.AllocID) []cluster.AllocID {
	c.rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids[:c.rng.IntN(min(len(ids), 4)+1)]
}

func (c *randomHistory) placeOne() {
	g := c.group()
	if c.State().Job(g.Job) == nil {
		return
	}
	c.placed++
	c.plan(g, nil, c.alloc(g, cluster.AllocID(fmt.Sprintf("a%d", c.placed)), c.someNode(), c.rng.IntN(6), ""))
}

// migrate stops and replaces some marked allocations.
func (c *randomHistory) migrate() {
	for _, id := range c.some(c.matching(func(a *cluster.Allocation) bool { return a.Marked() && !a.ServerTerminal() })) {
		a := c.State().Alloc(id)
		c.placed++
		c.plan(a.GroupKey(), []cluster.AllocID{id}, c.alloc(a.GroupKey(), cluster.AllocID(fmt.Sprintf("a%d", c.placed)), c.someNode(), 0, id))
	}
}

// step applies a random entry.
func (c *randomHistory) step() {
	c.at += time.Duration(c.rng.IntN(30_000)) * time.Millisecond
	switch c.rng.IntN(16) {
	case 0, 1:
		c.placeOne()
	case 2, 3, 4:
		c.healthy(c.some(c.allocs())...)
	case 5:
		no := false
		c.report(cluster.ClientRunning, &no, c.some(c.allocs())...)
	case 6:
		c.gone(c.some(c.matching((*cluster.Allocation).ServerTerminal))...)
	case 7:
		c.drain(c.spec(), c.someNode())
	case 8:
		if c.chance(30) {
			c.drain(nil, c.someNode())
		}
	case 9, 10, 11:
		class := cluster.MarkClass(c.rng.IntN(int(cluster.MarkClassCount)))
		for _, g := range c.groups {
			c.mark(g, class, c.some(c.matching(func(a *cluster.Allocation) bool { return a.GroupKey() == g }))...)
		}
	case 12, 13:
		c.migrate()
	case 14:
		c.finish(c.nodes...)
	case 15:
		c.rare()
	}
}

func (c *randomHistory) spec() *cluster.DrainSpec {
	return &cluster.DrainSpec{
		Deadline:         []time.Duration{-1, 0, time.Minute, time.Hour}[c.rng.IntN(4)],
		IgnoreSystemJobs: c.chance(30),
	}
}

func (c *randomHistory) rare() {
	switch g := c.group(); c.rng.IntN(6) {
	case 0, 1, 2:
		c.status(c.someNode(), []cluster.NodeStatus{cluster.NodeDown, cluster.NodeDisconnected, cluster.NodeReady, cluster.NodeReady}[c.rng.IntN(4)])
	case 3:
		c.Apply(&shims.NodeDeregister{At: c.Now(), Nodes: []cluster.NodeID{c.someNode()}})
		c.node(c.someNode())
	case 4:
		c.Apply(&shims.JobDeregister{Job: g.Job, Purge: c.chance(50)})
	case 5:
		if c.State().Job(g.Job) != nil {
			c.job(g.Job.ID, c.State().Job(g.Job).Type, c.rng.IntN(7), c.rng.IntN(4))
		}
	}
}

// After every entry of random histories, the incremental counts of the recorder equal the counts
// of the whole state.
func TestRecorder_agreesWithFullCounts(t *testing.T) {
	t.Parallel()
	followed, drained, rows := 0, 0, 0
	outcomes := make(map[cluster.Outcome]int)
	var phases [timeline.PhaseCount]int
	for seed := range uint64(40) {
		c, r := newRandomHistory(t, seed), timeline.New(timeline.Options{})
		full := &fullCount{groups: map[cluster.GroupKey]bool{}, nodes: map[cluster.NodeID]bool{}, rows: map[cluster.AllocID]bool{}}
		c.observers = append(c.observers, r.Applied, func(_ time.Duration, a shims.Applied) {
			full.follow(a.After)
			must.Eq(t, full.standings(a.After), r.Standings(), must.Sprintf("seed %d: groups at index %d, %s", seed, a.Index, a.Type))
			must.Eq(t, full.left(a.After), r.Left(), must.Sprintf("seed %d: nodes at index %d, %s", seed, a.Index, a.Type))
			must.Eq(t, full.phases(a.After), r.Phases(), must.Sprintf("seed %d: rows at index %d, %s", seed, a.Index, a.Type))
			must.Eq(t, full.outcomes(a.After), r.Outcomes(), must.Sprintf("seed %d: outcomes at index %d, %s", seed, a.Index, a.Type))
			for _, p := range r.Phases() {
				phases[p]++
			}
		})
		c.setup()
		for range 150 {
			c.step()
		}
		followed, drained, rows = followed+len(r.Standings()), drained+len(r.Left()), rows+len(r.Phases())
		for _, o := range r.Outcomes() {
			outcomes[o]++
		}
	}
	must.Greater(t, 40, followed)
	must.Greater(t, 40, drained)
	must.Greater(t, 200, rows)
	must.MapLen(t, 6, outcomes, must.Sprint("all outcomes, and running drains: ", outcomes))
	for p, n := range phases {
		if timeline.Phase(p) != timeline.Unknown { // only a scheduler sets it
			must.Positive(t, n, must.Sprint(timeline.Phase(p)))
		}
	}
}

// fullCount counts whole states. It remembers only the lanes.
type fullCount struct {
	groups map[cluster.GroupKey]bool
	nodes  map[cluster.NodeID]bool
	rows   map[cluster.AllocID]bool
}

func (w *fullCount) follow(s *statestore.Snapshot) {
	for n := range s.Nodes() {
		if n.Draining() {
			w.nodes[n.ID] = true
		}
	}
	for a := range s.Allocs() {
		if a.ClientTerminal() || !w.nodes[a.NodeID] {
			continue
		}
		w.rows[a.ID] = true
		if s.Node(a.NodeID).Draining() && a.JobType() == cluster.JobService {
			w.groups[a.GroupKey()] = true
		}
	}
}

func (w *fullCount) standings(s *statestore.Snapshot) map[cluster.GroupKey]timeline.Standing {
	all := make(map[cluster.GroupKey]timeline.Standing)
	for g := range w.groups {
		var now timeline.Standing
		for a := range s.Allocs() {
			if a.GroupKey() == g && a.Healthy(s.Node(a.NodeID)) {
				now.Healthy++
			}
		}
		if pace, ok := cluster.PaceOf(s.Job(g.Job), g.Name); ok {
			now.Count, now.Limit = pace.Count, pace.Count-pace.MaxParallel
		}
		all[g] = now
	}
	return all
}

func (w *fullCount) left(s *statestore.Snapshot) map[cluster.NodeID]int {
	all := make(map[cluster.NodeID]int)
	for id := range w.nodes {
		all[id] = 0
		n := s.Node(id)
		for a := range s.Allocs() {
			if n.Draining() && a.NodeID == id && !a.ClientTerminal() && n.Drain.Leaves(a.Stage()) {
				all[id]++
			}
		}
	}
	return all
}

func (w *fullCount) phases(s *statestore.Snapshot) map[cluster.AllocID]timeline.Phase {
	all := make(map[cluster.AllocID]timeline.Phase)
	for id := range w.rows {
		a := s.Alloc(id)
		phase := timeline.Running
		switch {
		case a == nil || a.ClientTerminal():
			phase = timeline.Gone
		case a.ClientStatus == cluster.ClientUnknown:
			phase = timeline.Unknown
		case a.ServerTerminal():
			phase = timeline.Stopping
		case a.Marked():
			phase = timeline.Marked
		case a.ClientStatus == cluster.ClientPending:
			phase = timeline.Starting
		case a.HasVerdict() && !a.JudgedHealthy():
			phase = timeline.Unhealthy
		}
		all[id] = phase
	}
	return all
}

func (w *fullCount) outcomes(s *statestore.Snapshot) map[cluster.NodeID]cluster.Outcome {
	all := make(map[cluster.NodeID]cluster.Outcome)
	for id := range w.nodes {
		if s.Node(id).Draining() {
			all[id] = cluster.OutcomeNone
			continue
		}
		records := slices.Collect(s.DrainsByNode(id))
		all[id] = records[len(records)-1].Outcome
	}
	return all
}
