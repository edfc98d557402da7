package simclient_test

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// start is when every test begins.
var start = time.Date(2026, 11, 20, 23, 0, 0, 0, time.UTC)

// state is a cluster's state in two maps.
type state struct {
	index  uint64
	nodes  map[cluster.NodeID]*cluster.Node
	allocs map[cluster.AllocID]*cluster.Allocation

	// shuffle, or nil, decides the order in which rows are yielded.
	shuffle *rand.Rand
	// reads counts the reads of nodes and allocations, never nil.
	reads *int
}

func (s *state) Index() uint64 { return s.index }

func (s *state) Node(id cluster.NodeID) *cluster.Node {
	*s.reads++
	return s.nodes[id]
}

func (s *state) Alloc(id cluster.AllocID) *cluster.Allocation {
	*s.reads++
	return s.allocs[id]
}

func (s *state) Nodes() iter.Seq[*cluster.Node] { return rows(s, s.nodes) }

func (s *state) LiveAllocsByNode(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	*s.reads++
	return func(yield func(*cluster.Allocation) bool) {
		for a := range rows(s, s.allocs) {
			if a.NodeID == id && !a.ClientTerminal() && !yield(a) {
				return
			}
		}
	}
}

func (s *state) Unconfirmed(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return func(yield func(*cluster.Allocation) bool) {
		for a := range rows(s, s.allocs) {
			if a.NodeID == id && a.Unconfirmed() && !yield(a) {
				return
			}
		}
	}
}

// rows yields the rows of a table by key, or shuffled.
func rows[K cmp.Ordered, V any](s *state, table map[K]V) iter.Seq[V] {
	*s.reads++
	keys := slices.Sorted(maps.Keys(table))
	if s.shuffle != nil {
		s.shuffle.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	}
	return func(yield func(V) bool) {
		for _, k := range keys {
			if !yield(table[k]) {
				return
			}
		}
	}
}

// apply applies a report as servers do, and reports whether it has changed anything.
func (s *state) apply(r cluster.AllocReport) bool {
	before := s.allocs[r.Alloc]
	if before == nil || before.NodeID != r.Node || before.ClientTerminal() && before.ClientStatus != cluster.ClientLost {
		return false
	}
	if before.ClientStatus == cluster.ClientLost && r.ClientStatus != cluster.ClientComplete && r.ClientStatus != cluster.ClientFailed {
		return false // of a lost allocation the servers accept only the end
	}
	verdict := r.Healthy != nil && (!before.HasVerdict() || before.JudgedHealthy() != *r.Healthy)
	if before.ClientStatus == r.ClientStatus && !verdict {
		return false
	}
	a := before.Copy()
	a.ClientStatus, a.ModifyIndex = r.ClientStatus, s.index
	if verdict {
		a.DeploymentStatus = &cluster.DeploymentStatus{Healthy: r.Healthy, Timestamp: r.HealthyAt}
	}
	s.allocs[a.ID] = a
	return true
}

// fate is the outcome of a batch.
type fate uint8

const (
	taken            fate = iota // applied and answered
	failed                       // not applied
	appliedButFailed             // applied, and answered as failed
	full                         // not queued
)

// world is a state, its fleet, and a clock. It is its own applier. It applies all reports at once,
// unless fate or held changes that.
type world struct {
	t     must.T
	now   time.Time
	state *state
	// shown is the state that the fleet reads instead of the newest one, or nil.
	shown   *state
	options simclient.Options
	fleet   *simclient.Fleet
	// wakeAt is the result of the last step.
	wakeAt time.Time

	behaviours map[cluster.AllocID]simclient.Behaviour
	// drawn counts how often the fleet has drawn the behaviour of each allocation.
	drawn map[cluster.AllocID]int

	// fate decides the outcome of each batch; nil applies it.
	fate func([]cluster.AllocReport) fate
	// held keeps batches in flight.
	held bool
	// flight is the batch in flight, or nil.
	flight *flight
	// batches are all batches so far, those that were not taken too.
	batches [][]cluster.AllocReport
	// lines are the changes of the state, one line for each.
	lines []string
}

// flight is a batch without an answer.
type flight struct {
	reports []cluster.AllocReport
	reply   func(bool)
	fate    fate
}

func newWorld(t must.T, edit ...func(*simclient.Options)) *world {
	w := &world{
		t: t, now: start,
		state:      &state{index: 1, nodes: map[cluster.NodeID]*cluster.Node{}, allocs: map[cluster.AllocID]*cluster.Allocation{}, reads: new(int)},
		behaviours: map[cluster.AllocID]simclient.Behaviour{},
		drawn:      map[cluster.AllocID]int{},
	}
	w.options = simclient.Options{
		Snapshot: func() simclient.State {
			if w.shown != nil {
				return w.shown
			}
			return w.state
		},
		Applier: w,
		Behave: func(a *cluster.Allocation, _ *rand.Rand) simclient.Behaviour {
			w.drawn[a.ID]++
			return w.behaviours[a.ID]
		},
	}
	for _, f := range edit {
		f(&w.options)
	}
	w.restart()
	return w
}

// restart replaces the fleet by a new one. A batch of the old one stays in flight
// for the test that holds it.
func (w *world) restart() {
	f, err := simclient.New(w.options)
	must.NoError(w.t, err)
	w.fleet, w.flight = f, nil
}

// write changes the state with an entry, and names the nodes to the fleet.
func (w *world) write(change func(*state), nodes ...cluster.NodeID) {
	c := *w.state
	c.nodes, c.allocs = maps.Clone(c.nodes), maps.Clone(c.allocs)
	c.index++
	change(&c)
	w.state = &c
	w.fleet.Changed(nodes...)
}

// node writes a node's status.
func (w *world) node(id cluster.NodeID, status cluster.NodeStatus) {
	w.write(func(s *state) { s.nodes[id] = &cluster.Node{ID: id, Status: status, ModifyIndex: s.index} }, id)
}

// place places an allocation of the job's group "g", with its behaviour.
func (w *world) place(id cluster.AllocID, on cluster.NodeID, j *cluster.Job, b simclient.Behaviour, edit ...func(*cluster.Allocation)) {
	w.behaviours[id] = b
	w.write(func(s *state) {
		a := &cluster.Allocation{
			ID: id, NodeID: on, Namespace: j.Namespace, JobID: j.ID, Job: j, TaskGroup: "g",
			DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending,
			CreateTime: w.now, CreateIndex: s.index, ModifyIndex: s.index,
		}
		for _, f := range edit {
			f(a)
		}
		s.allocs[id] = a
	}, on)
}

// edit changes an allocation as servers do.
func (w *world) edit(id cluster.AllocID, change func(*cluster.Allocation)) {
	w.write(func(s *state) {
		a := s.allocs[id].Copy()
		change(a)
		a.ModifyIndex = s.index
		s.allocs[id] = a
	}, w.state.allocs[id].NodeID)
}

func (w *world) stop(id cluster.AllocID) {
	w.edit(id, func(a *cluster.Allocation) { a.DesiredStatus, a.StoppedAt = cluster.DesiredStop, w.now })
}

// purge deletes an allocation's record.
// lose gives an allocation up as lost, because its node is down.
func (w *world) lose(id cluster.AllocID) {
	w.node(w.state.allocs[id].NodeID, cluster.NodeDown)
	w.edit(id, func(a *cluster.Allocation) {
		a.ClientStatus, a.DesiredStatus, a.StoppedAt = cluster.ClientLost, cluster.DesiredStop, w.now
	})
}

func (w *world) purge(id cluster.AllocID) {
	w.write(func(s *state) { delete(s.allocs, id) }, w.state.allocs[id].NodeID)
}

// Report implements [simclient.Applier].
func (w *world) Report(reports []cluster.AllocReport, reply func(bool)) bool {
	must.Nil(w.t, w.flight, must.Sprint("two batches in flight"))
	must.SliceNotEmpty(w.t, reports)
	w.batches = append(w.batches, reports)
	f := &flight{reports: reports, reply: reply}
	if w.fate != nil {
		f.fate = w.fate(reports)
	}
	if f.fate == full {
		return false
	}
	w.flight = f
	return true
}

// land settles a batch in flight.
func (w *world) land(f *flight) {
	if f.fate != failed {
		w.write(func(s *state) {
			for _, r := range f.reports {
				if a := s.allocs[r.Alloc]; w.flight == f && r.ClientStatus == cluster.ClientPending && a != nil {
					must.NotEq(w.t, cluster.ClientRunning, a.ClientStatus, must.Sprint("a running allocation does not become pending again"))
				}
				if s.apply(r) {
					w.lines = append(w.lines, w.line(r))
				}
			}
		})
	}
	if w.flight == f {
		w.flight = nil
	}
	f.reply(f.fate == taken)
}

// line is the text of a report: "10s web running healthy".
func (w *world) line(r cluster.AllocReport) string {
	s := fmt.Sprintf("%s %s %s", r.At.Sub(start), r.Alloc, r.ClientStatus)
	switch {
	case r.Healthy != nil && *r.Healthy:
		s += " healthy"
	case r.Healthy != nil:
		s += " unhealthy"
	}
	return s
}

// settle steps the fleet until it has nothing to do now.
func (w *world) settle() {
	for {
		w.wakeAt = w.fleet.Step(w.now)
		must.True(w.t, w.wakeAt.IsZero() || w.wakeAt.After(w.now), must.Sprint("a step that is due again at once"))
		if w.flight == nil || w.held {
			select {
			case <-w.fleet.Woken():
				continue
			default:
				return
			}
		}
		w.land(w.flight)
	}
}

// pass steps the fleet at each time that it returns, until a time has passed.
func (w *world) pass(d time.Duration) {
	end := w.now.Add(d)
	for w.settle(); !w.wakeAt.IsZero() && !w.wakeAt.After(end); w.settle() {
		w.now = w.wakeAt
	}
	w.now = end
	w.settle()
}

// service is a job whose allocations are healthy after 10 s, or unhealthy after
// 60 s, and stop within 5 s.
func service() *cluster.Job { return jobOf(cluster.JobService) }

func batch() *cluster.Job { return jobOf(cluster.JobBatch) }

func jobOf(t cluster.JobType) *cluster.Job {
	j := &cluster.Job{ID: cluster.JobID(t), Type: t, TaskGroups: []*cluster.TaskGroup{{
		Name: "g", Count: 3, Tasks: []*cluster.Task{{Name: "t", KillTimeout: 5 * time.Second}},
	}}}
	j.Canonicalize()
	if m := j.TaskGroups[0].Migrate; m != nil {
		m.MinHealthyTime, m.HealthyDeadline = 10*time.Second, time.Minute
	}
	return j
}

// withData is the job, with data that its allocations inherit.
func withData(j *cluster.Job) *cluster.Job {
	j.TaskGroups[0].EphemeralDisk.Migrate = true
	return j
}

// replaces makes an allocation the replacement of another.
func replaces(id cluster.AllocID) func(*cluster.Allocation) {
	return func(a *cluster.Allocation) { a.PreviousAllocation = id }
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
