package drainer

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Components that a test controls.
type (
	idle       struct{ readings []Reading }
	scriptJobs struct {
		idle
		registered []cluster.GroupKey
		drain      chan *DrainRequest
		migrated   chan []cluster.NodeID
	}
	scriptDeadlines struct {
		idle
		watched []string
		batch   chan []cluster.NodeID
	}
)

func (c *idle) Step(r Reading) time.Time { c.readings = append(c.readings, r); return time.Time{} }

func (c *scriptJobs) RegisterJobs(g []cluster.GroupKey) { c.registered = append(c.registered, g...) }

func (c *scriptJobs) Drain() <-chan *DrainRequest { return c.drain }

func (c *scriptJobs) Migrated() <-chan []cluster.NodeID { return c.migrated }

func (c *scriptDeadlines) NextBatch() <-chan []cluster.NodeID { return c.batch }

func (c *scriptDeadlines) Remove(n cluster.NodeID) {
	c.watched = append(c.watched, "remove "+string(n))
}

func (c *scriptDeadlines) Watch(n cluster.NodeID, at time.Time) {
	c.watched = append(c.watched, fmt.Sprintf("watch %s in %s", n, at.Sub(fixture.Epoch)))
}

// Injected components replace the built-in ones. All of them get the same reading in each step.
func TestTerm_InjectedComponents(t *testing.T) {
	t.Parallel()
	jobs := &scriptJobs{drain: make(chan *DrainRequest, 1), migrated: make(chan []cluster.NodeID, 1)}
	deadlines := &scriptDeadlines{batch: make(chan []cluster.NodeID, 1)}
	nodes := &idle{}
	var env Env
	var tracker NodeTracker
	w := fixture.NewCluster(2, 1)
	w.StartDrain("n1", time.Hour)
	policy := rules.Policy{StopMargin: time.Second, HealthGrace: time.Minute}
	r := newHarness(t, w, func(c *NodeDrainerConfig) {
		c.Policy, c.DeadlineCoalesce, c.Retry.Base, c.Retry.Max = policy, 1, 2, 3
		c.NodeWatcher = func(e Env, t NodeTracker) DrainingNodeWatcher { env, tracker = e, t; return nodes }
		c.JobWatcher = func(Env) DrainingJobWatcher { return jobs }
		c.DeadlineNotifier = func(Env) DrainDeadlineNotifier { return deadlines }
	})
	must.Eq(t, policy, env.Policy)
	must.Eq(t, []time.Duration{1, 2, 3}, []time.Duration{env.DeadlineCoalesce, env.Retry.Base, env.Retry.Max})
	must.NotNil(t, env.Logger)
	must.Eq[StateReader](t, r.state, env.State, must.Cmp())
	r.settle()
	must.SliceEmpty(t, r.raft.written(), must.Sprint("the tracker does not have the node"))
	must.True(t, nodes.readings[0].Changes.All)

	// The node watcher reports the node. The groups on it are registered and its deadline is
	// watched.
	tracker.Update(w.Node("n1"))
	env.Wake()
	r.settle()
	must.Eq(t, []cluster.GroupKey{fixture.Group}, jobs.registered)
	must.Eq(t, []string{"watch n1 in 1h0m0s"}, deadlines.watched)

	// The job watcher requests a mark. It is written and answered.
	var replies []DrainReply
	mark := rules.Mark{Alloc: "a1", Group: fixture.Group, Node: "n1", Drain: "d-n1", Revision: 7, Class: cluster.MarkPaced}
	jobs.drain <- &DrainRequest{Marks: []rules.Mark{mark}, Reply: func(d DrainReply) { replies = append(replies, d) }}
	env.Wake()
	r.settle()
	must.Eq(t, []DrainReply{{Answer: Answer{Outcome: raftwrite.Applied, Index: 11}, At: r.now, Marks: []rules.Mark{mark}}}, replies)
	must.Len(t, 1, r.raft.written())

	// A request is written once.
	env.Wake()
	r.settle()
	must.Len(t, 1, r.raft.written())

	// An evaluation is written once.
	jobs.drain <- &DrainRequest{Reevaluate: []cluster.GroupKey{fixture.Group}, Reply: func(d DrainReply) { replies = append(replies, d) }}
	env.Wake()
	r.settle()
	env.Wake()
	r.settle()
	must.Len(t, 2, r.raft.written())
	must.Eq(t, []cluster.GroupKey{fixture.Group}, replies[1].Reevaluated)

	// A batch is a hint: the deadline has not passed, so it is watched again.
	deadlines.batch <- []cluster.NodeID{"n1", "unknown"}
	env.Wake()
	r.settle()
	must.Eq(t, []string{"watch n1 in 1h0m0s", "watch n1 in 1h0m0s"}, deadlines.watched)
	must.Len(t, 2, r.raft.written())

	// A node that allocations have left is planned in the next step, without delay.
	jobs.migrated <- []cluster.NodeID{"n1", "another"}
	env.Wake()
	r.step()
	must.Eq(t, r.now, r.wakeAt)
	r.settle()
	must.True(t, r.wakeAt.IsZero())
	report, _ := r.term.Explain("n1", r.now)
	must.Len(t, 1, report.Allocs, must.Sprint("the job watcher remembers no holds"))

	// The node stops draining.
	r.commit(func(w *fixture.Cluster) { w.Node("n1").Drain = nil })
	tracker.Remove("n1")
	r.settle()
	must.Eq(t, "remove n1", deadlines.watched[2])
	for i := range nodes.readings {
		must.Eq(t, nodes.readings[i].View.Index(), jobs.readings[i].View.Index())
		must.Eq(t, nodes.readings[i].Now, deadlines.readings[i].Now)
	}

	select {
	case <-env.Done:
		t.Fatal("the term has not ended")
	default:
	}
	r.term.Close()
	<-env.Done
}

// A component is stepped at the time that it returns.
func TestTerm_ComponentsWake(t *testing.T) {
	t.Parallel()
	at := fixture.Epoch.Add(time.Hour)
	r := newHarness(t, fixture.NewCluster(1, 0), func(c *NodeDrainerConfig) {
		c.NodeWatcher = func(Env, NodeTracker) DrainingNodeWatcher { return sleeper{at} }
	})
	r.settle()
	must.Eq(t, at, r.wakeAt)
}

type sleeper struct{ until time.Time }

func (s sleeper) Step(r Reading) time.Time {
	if r.Now.Before(s.until) {
		return s.until
	}
	return time.Time{}
}

// A factory that returns nil, or a nil pointer, is an error. The Done channel of the other
// components is closed.
func TestTerm_FactoryReturnsNil(t *testing.T) {
	t.Parallel()
	var done <-chan struct{}
	for name, edit := range map[string]func(*NodeDrainerConfig){
		"node watcher": func(c *NodeDrainerConfig) {
			c.NodeWatcher = func(e Env, _ NodeTracker) DrainingNodeWatcher { done = e.Done; return nil }
		},
		"job watcher": func(c *NodeDrainerConfig) {
			c.JobWatcher = func(e Env) DrainingJobWatcher { done = e.Done; return (*jobWatcher)(nil) }
		},
		"deadline notifier": func(c *NodeDrainerConfig) {
			c.DeadlineNotifier = func(e Env) DrainDeadlineNotifier { done = e.Done; return (*deadlineHeap)(nil) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := newMemory(fixture.NewCluster(1, 0))
			c := NodeDrainerConfig{Raft: &fakeRaft{}}
			edit(&c)
			term, err := NewTerm(c, state, nil)
			must.EqError(t, err, "NodeDrainerConfig: a factory returned nil")
			must.Nil(t, term)
			must.True(t, state.feed().closed)
			<-done
		})
	}
	for _, state := range []StateReader{nil, (*memory)(nil)} {
		_, err := NewTerm(NodeDrainerConfig{Raft: &fakeRaft{}}, state, nil)
		must.EqError(t, err, "a term needs a state to read: it is nil, or a nil pointer")
	}
}

// The node watcher does not report the end of a drain. The plan for the node is not written again.
func TestTerm_DrainEndsWithoutRemove(t *testing.T) {
	t.Parallel()
	var tracker NodeTracker
	w := jobsOnOneNode(1)
	w.StartDrain("n1", -1)
	r := newHarness(t, w, func(c *NodeDrainerConfig) {
		c.NodeWatcher = func(_ Env, t NodeTracker) DrainingNodeWatcher { tracker = t; return &idle{} }
	})
	tracker.Update(w.Node("n1"))
	r.raft.script = []fate{rejected}
	r.settle()
	must.Len(t, 1, r.raft.written())
	r.commit(func(w *fixture.Cluster) { w.Node("n1").Drain = nil })
	r.advance(time.Hour)
	must.Len(t, 1, r.raft.written())
}
