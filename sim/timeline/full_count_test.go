package timeline_test

import (
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// swarmed plays a small seed of the swarm with a recorder. applied is called for each entry, before the
// recorder gets it.
func swarmed(t testing.TB, seed uint64, o timeline.Options, applied func(*timeline.Recorder, *world.World, shims.Applied)) *timeline.Recorder {
	t.Helper()
	o.Epoch = world.Epoch
	r := timeline.New(o)
	s := swarm.Generate(seed, swarm.Small)
	s.Events = slices.DeleteFunc(s.Events, func(e scenario.Event) bool {
		_, is := e.Op.(*scenario.Place) // it writes past the log: no entry names its allocations
		return is
	})
	result, err := sim.Play(s, sim.Options{Watch: func(w *world.World) {
		w.Observe(world.Observer{Applied: func(a world.Applied) { applied(r, w, a) }})
		r.Watch(w)
	}})
	must.NoError(t, err)
	r.Result(result)
	return r
}

// After every step of a swarm, the incremental counts of the recorder equal the counts of the whole
// state.
//
//race:skip one goroutine
func TestRecorder_agreesWithFullCounts(t *testing.T) {
	t.Parallel()
	followed, drained, rows := 0, 0, 0
	outcomes := make(map[cluster.Outcome]int)
	var phases [timeline.PhaseCount]int
	for seed := range uint64(40) {
		full := &fullCount{groups: map[cluster.GroupKey]bool{}, nodes: map[cluster.NodeID]bool{}, rows: map[cluster.AllocID]bool{}}
		step := 0
		r := swarmed(t, seed, timeline.Options{}, func(r *timeline.Recorder, w *world.World, a shims.Applied) {
			if step != w.Steps() { // during a step, states may contain changes whose entries follow
				step = w.Steps()
				note := must.Sprintf("seed %d: before index %d", seed, a.Index)
				must.Eq(t, full.standings(a.Before), r.Standings(), note)
				must.Eq(t, full.left(a.Before), r.Left(), note)
				must.Eq(t, full.phases(a.Before), r.Phases(), note)
				must.Eq(t, full.outcomes(a.Before), r.Outcomes(), note)
				for _, p := range r.Phases() {
					phases[p]++
				}
			}
			full.follow(a.After)
		})
		followed, drained, rows = followed+len(r.Standings()), drained+len(r.Left()), rows+len(r.Phases())
		for _, o := range r.Outcomes() {
			outcomes[o]++
		}
	}
	must.Greater(t, 40, followed)
	must.Greater(t, 40, drained)
	must.Greater(t, 200, rows)
	must.MapLen(t, 7, outcomes, must.Sprint("all outcomes, and running drains: ", outcomes))
	for p, n := range phases {
		must.Positive(t, n, must.Sprint(timeline.Phase(p)))
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
