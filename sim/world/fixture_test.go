package world_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// fixture is a small world that records what its observers get. It has four nodes and a job with
// three allocations on the first three nodes. max_parallel is one.
type fixture struct {
	*world.World
	entries []entry
	writes  []write
	steps   []step
	elected []time.Duration // the starts of terms, without the first
	ended   map[int]time.Duration
	strikes []world.Strike
}

// entry is an applied entry, write a proposal of a drainer with its answer, and step a step
// of a drainer.
type (
	entry struct {
		world.Applied
		at time.Duration
	}
	write struct {
		world.Proposal
		at         time.Duration
		deposed    bool // the leader was deposed before it proposed the write
		answered   bool
		answer     shims.Answer
		answeredAt time.Duration
	}
	step struct {
		world.DrainerStep
		at time.Duration
	}
)

const (
	// commits is the time from the proposal of a write to its apply. stops is the time that an
	// allocation needs to stop. kill is its kill timeout.
	commits = 10 * time.Millisecond
	stops   = 2 * time.Second
	kill    = 20 * time.Second
	// armed is the time at which most tests arm a fault, drains the time at which they drain n1.
	// lasts is the length of most runs.
	armed  = 5 * time.Second
	drains = 10 * time.Second
	lasts  = 10 * time.Minute
)

var web = cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "web"}

func newFixture(t *testing.T, o world.Options) *fixture {
	t.Helper()
	if o.Commit == (scenario.Range{}) {
		o.Commit = exactly(commits)
	}
	w, err := world.New(o)
	must.NoError(t, err)
	f := &fixture{World: w, ended: map[int]time.Duration{}}
	f.register(t, "n1", "n2", "n3", "n4")
	f.place(t, "web", "n1", "n2", "n3")
	f.observe()
	return f
}

// exactly is a range of one duration.
func exactly(d time.Duration) scenario.Range { return scenario.Range{Min: d, Max: d} }

// arm arms a fault of the language of scenarios at a time.
func (w *fixture) arm(t *testing.T, at time.Duration, fault string) {
	t.Helper()
	s, _, err := scenario.Parse("fault.drain", strings.NewReader("node n1..n4\njob web count=3\nat 0s fault "+fault))
	must.NoError(t, err)
	w.at(at, func() { must.NoError(t, w.Faults.Arm(*s.Events[0].Op.(*scenario.Fault))) })
}

// register registers nodes with capacity for any allocation.
func (w *fixture) register(t *testing.T, ids ...cluster.NodeID) {
	t.Helper()
	for _, n := range setting.Nodes(scenario.Node{IDs: ids}) {
		must.NoError(t, w.Setup.Commit(&shims.NodeRegister{At: w.Now(), Node: n}))
	}
}

// newJob returns a job with one group of one task.
func newJob(kind cluster.JobType, id cluster.JobID, count int) *cluster.Job {
	key := cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: id}
	return setting.Job(nil, scenario.Job{Key: key, Type: kind, Groups: []scenario.Group{{Name: string(id), Count: count}}})
}

// place writes a service job with an allocation on each of the nodes.
func (w *fixture) place(t *testing.T, id cluster.JobID, on ...cluster.NodeID) {
	t.Helper()
	j := newJob(cluster.JobService, id, len(on))
	j.TaskGroups[0].Tasks[0].KillTimeout = kill
	w.placeJob(t, j, on...)
}

// placeJob writes a job with an allocation on each of the nodes.
func (w *fixture) placeJob(t *testing.T, j *cluster.Job, on ...cluster.NodeID) {
	t.Helper()
	group := cluster.GroupKey{Job: j.Key(), Name: j.TaskGroups[0].Name}
	allocs := setting.Allocs(scenario.Alloc{Group: group, On: on}, j, w.Now(), w.Setup.NewAllocID)
	must.NoError(t, w.Setup.Place(world.Placement{Job: j, Allocs: allocs}))
}

func (w *fixture) observe() {
	w.Observe(world.Observer{
		Applied: func(a world.Applied) { w.entries = append(w.entries, entry{a, w.time()}) },
		Proposed: func(p world.Proposal) {
			w.writes = append(w.writes, write{Proposal: p, at: w.time(), deposed: p.Term != w.Term()})
		},
		Answered: func(term, n int, a shims.Answer) {
			i := slices.IndexFunc(w.writes, func(o write) bool { return o.Term == term && o.N == n })
			w.writes[i].answered, w.writes[i].answer, w.writes[i].answeredAt = true, a, w.time()
		},
		Stepped:   func(s world.DrainerStep) { w.steps = append(w.steps, step{s, w.time()}) },
		Elected:   func(int) { w.elected = append(w.elected, w.time()) },
		TermEnded: func(term int) { w.ended[term] = w.time() },
		Struck:    func(s world.Strike) { w.strikes = append(w.strikes, s) },
	})
}

// time is the time since the start of the run.
func (w *fixture) time() time.Duration { return w.Now().Sub(world.Epoch) }

// at queues a function.
func (w *fixture) at(at time.Duration, do func()) {
	w.At(world.Epoch.Add(at), func() error {
		do()
		return nil
	})
}

// drain drains n1 at the time drains.
func (w *fixture) drain() {
	w.at(drains, func() { w.drainNode("n1", 0) })
}

// drainNode requests a drain; a deadline of zero is none.
func (w *fixture) drainNode(id cluster.NodeID, deadline time.Duration) {
	w.Operator.Propose(w.Operator.Requests.Drain(id, &cluster.DrainSpec{Deadline: deadline}, ""), nil)
}

// editJob requests a new version of a job.
func (w *fixture) editJob(key cluster.JobKey, edit func(*cluster.Job)) {
	j := w.Truth().Job(key).Copy()
	edit(j)
	w.Operator.Propose(w.Operator.Requests.Register(j), nil)
}

// run runs until the limit.
func (w *fixture) run(t *testing.T, limit time.Duration) (idle bool) {
	t.Helper()
	idle, err := w.Run(world.Epoch.Add(limit))
	must.NoError(t, err)
	return idle
}

// when is the apply time of the first entry whose message is of type M, or negative.
func when[M shims.Message](w *fixture) time.Duration {
	return whenThat(w, func(M) bool { return true })
}

// whenThat is the apply time of the first entry whose message is of type M and matches.
func whenThat[M shims.Message](w *fixture, matches func(M) bool) time.Duration {
	for _, e := range w.entries {
		if m, is := e.Message.(M); is && matches(m) {
			return e.at
		}
	}
	return -1
}

// reported is the apply time of the first report that an allocation on a node has a status.
func (w *fixture) reported(on cluster.NodeID, status cluster.ClientStatus) time.Duration {
	return whenThat(w, func(m report) bool {
		return slices.ContainsFunc(m.Reports, func(r cluster.AllocReport) bool { return r.Node == on && r.ClientStatus == status })
	})
}

// The messages of most tests.
type (
	marks       = *shims.AllocUpdateDesiredTransition
	completions = *shims.NodesDrainComplete
	plan        = *shims.ApplyPlan
	report      = *shims.AllocClientUpdate
)

// first is the drainer's first write whose message is of type M, or nil.
func first[M shims.Message](w *fixture) *write { return nth[M](w, 0) }

func nth[M shims.Message](w *fixture, n int) *write {
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

// logged reports whether a write of the drainer was committed.
func (w *fixture) logged(p *write) bool {
	for _, e := range w.Log.Entries() {
		if e.Proposed && e.Source == world.FromDrainer && e.N == p.N {
			return true
		}
	}
	return false
}

// stepped counts the steps of drainers after one time and before another.
func (w *fixture) stepped(after, before time.Duration) int {
	n := 0
	for _, s := range w.steps {
		if s.at > after && s.at < before {
			n++
		}
	}
	return n
}

func isMarks(m shims.Message) bool {
	_, is := m.(marks)
	return is
}

// sameStates checks that all servers have the same state. It compares the one of views with that of
// a new server.
func (w *fixture) sameStates(t *testing.T) {
	t.Helper()
	states, err := w.Servers.States()
	must.NoError(t, err)
	if len(states) == 1 {
		replayed, err := w.Servers.Replay()
		must.NoError(t, err)
		states = append(states, replayed)
	}
	j := invariant.New(invariant.Options{})
	j.End(w.Now(), states...)
	must.SliceEmpty(t, j.Violations())
}
