package world_test

import (
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// town is a small world of which everything is written down: four nodes, and a job of
// three allocations, of which one may be down for drains, on the first three.
type town struct {
	*world.World
	entries []entry
	writes  []write
	steps   []step
	began   []time.Duration // terms, the first not among them
	ended   map[int]time.Duration
	strikes []world.Strike
}

// entry is one that was applied, write one that a drainer proposed and what it was told
// of it, step one of a drainer.
type (
	entry struct {
		world.Applied
		at time.Duration
	}
	write struct {
		world.Proposal
		at       time.Duration
		deposed  bool // its leader was, when it proposed it
		answered bool
		answer   shims.Answer
		told     time.Duration
	}
	step struct {
		world.DrainerStep
		at time.Duration
	}
)

const (
	// commits is how long a write takes in a town, and stops how long an allocation
	// takes to stop that may take kill.
	commits = 10 * time.Millisecond
	stops   = 2 * time.Second
	kill    = 20 * time.Second
	// drains is when n1 is drained in most stories.
	drains = 10 * time.Second
)

var web = cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "web"}

func newTown(t *testing.T, o world.Options) *town {
	t.Helper()
	if o.Commit == (scenario.Range{}) {
		o.Commit = scenario.Range{Min: commits, Max: commits}
	}
	w, err := world.New(o)
	must.NoError(t, err)
	town := &town{World: w, ended: map[int]time.Duration{}}
	for _, id := range []cluster.NodeID{"n1", "n2", "n3", "n4"} {
		must.NoError(t, w.Commit(&shims.NodeRegister{At: w.Now(), Node: world.NewNode(id)}))
	}
	town.place(t, "web", "n1", "n2", "n3")
	town.observe()
	return town
}

// place begins with a service job and an allocation of it on each of the nodes.
func (w *town) place(t *testing.T, id cluster.JobID, on ...cluster.NodeID) {
	t.Helper()
	j := world.NewJob(cluster.JobService, id, len(on))
	j.TaskGroups[0].Tasks[0].KillTimeout = kill
	allocs := make([]*cluster.Allocation, len(on))
	for i, node := range on {
		allocs[i] = w.NewAlloc(j, string(id), i, node)
	}
	must.NoError(t, w.Place(j, allocs...))
}

func (w *town) observe() {
	w.OnApply(func(a world.Applied) { w.entries = append(w.entries, entry{a, w.time()}) })
	w.OnPropose(func(p world.Proposal) {
		w.writes = append(w.writes, write{Proposal: p, at: w.time(), deposed: p.Term != w.Term()})
	})
	w.OnAnswer(func(term, n int, a shims.Answer) {
		i := slices.IndexFunc(w.writes, func(o write) bool { return o.Term == term && o.N == n })
		w.writes[i].answered, w.writes[i].answer, w.writes[i].told = true, a, w.time()
	})
	w.OnDrainer(func(s world.DrainerStep) { w.steps = append(w.steps, step{s, w.time()}) })
	w.OnElect(func(int) { w.began = append(w.began, w.time()) })
	w.OnEnd(func(term int) { w.ended[term] = w.time() })
	w.OnStrike(func(s world.Strike) { w.strikes = append(w.strikes, s) })
}

// time is the time since the beginning.
func (w *town) time() time.Duration { return w.Now().Sub(world.Epoch) }

// at has something done at a time.
func (w *town) at(at time.Duration, do func()) {
	w.At(world.Epoch.Add(at), func() error {
		do()
		return nil
	})
}

// drain drains n1 at its time.
func (w *town) drain() {
	w.at(drains, func() { w.Drain("n1", cluster.DrainSpec{}, "") })
}

// run runs for a while.
func (w *town) run(t *testing.T, limit time.Duration) (idle bool) {
	t.Helper()
	idle, err := w.Run(world.Epoch.Add(limit))
	must.NoError(t, err)
	return idle
}

// when is when the first entry was applied whose message is of type M, or below zero.
func when[M shims.Message](w *town) time.Duration { return whenThat(w, func(M) bool { return true }) }

// whenThat is when the first entry was applied whose message is of type M and so.
func whenThat[M shims.Message](w *town, so func(M) bool) time.Duration {
	for _, e := range w.entries {
		if m, is := e.Message.(M); is && so(m) {
			return e.at
		}
	}
	return -1
}

// The messages that most is about.
type (
	marks       = *shims.AllocUpdateDesiredTransition
	completions = *shims.NodesDrainComplete
	plan        = *shims.ApplyPlan
	report      = *shims.AllocClientUpdate
	status      = *shims.NodeUpdateStatus
)

// first is the drainer's first write whose message is of type M; nil if there is none.
func first[M shims.Message](w *town) *write { return nth[M](w, 0) }

func nth[M shims.Message](w *town, n int) *write {
	for i := range w.writes {
		if _, is := w.writes[i].Message.(M); is {
			if n == 0 {
				return &w.writes[i]
			}
			n--
		}
	}
	return nil
}

// logged reports whether a write of the drainer is an entry.
func (w *town) logged(p *write) bool {
	for _, e := range w.Log() {
		if e.Proposed && e.Source == world.FromDrainer && e.N == p.N {
			return true
		}
	}
	return false
}

// outcomes counts what the drainer was told of its writes.
func (w *town) outcomes() map[raftwrite.Outcome]int {
	counts := map[raftwrite.Outcome]int{}
	for _, p := range w.writes {
		if p.answered {
			counts[p.answer.Outcome]++
		}
	}
	return counts
}

// stepped counts the steps of drainers after one time and before another.
func (w *town) stepped(after, before time.Duration) int {
	n := 0
	for _, s := range w.steps {
		if s.at > after && s.at < before {
			n++
		}
	}
	return n
}

// sequence names the entries in their order.
func (w *town) sequence() []string {
	names := make([]string, len(w.entries))
	for i, e := range w.entries {
		names[i] = e.Type.String()
	}
	return names
}

func isMarks(m shims.Message) bool {
	_, is := m.(marks)
	return is
}
