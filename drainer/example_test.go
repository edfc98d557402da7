package drainer_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rowview"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// small is a small scheduler on one server: plain rows, and no log. It applies each entry and
// answers before the method returns. A scheduler with a log proposes the entry instead, and every
// server applies it.
type small struct {
	mu     sync.Mutex
	index  uint64
	nodes  map[cluster.NodeID]*cluster.Node
	jobs   map[cluster.JobKey]*cluster.Job
	allocs map[cluster.AllocID]*cluster.Allocation
	evals  map[cluster.EvalID]*cluster.Evaluation
	drains map[cluster.DrainID]*cluster.Drain // the records
	reader rowview.Reader
}

func (s *small) view() *rowview.View {
	return rowview.New(s.index, slices.Collect(maps.Values(s.nodes)), slices.Collect(maps.Values(s.jobs)),
		slices.Collect(maps.Values(s.allocs)), slices.Collect(maps.Values(s.evals)))
}

// apply applies one entry: all of its rows become visible at once.
func (s *small) apply(entry func(v rules.View, index uint64) []rules.Refusal) drainer.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.view()
	s.index++
	refused := entry(v, s.index)
	s.reader.Publish(s.view())
	return drainer.Answer{Outcome: raftwrite.Applied, Index: s.index, Response: refused}
}

// AllocUpdateDesiredTransition is for drainer.RaftApplier.
func (s *small) AllocUpdateDesiredTransition(m *rules.Marks, reply drainer.Reply) (queued bool) {
	reply(s.apply(func(v rules.View, index uint64) []rules.Refusal {
		accepted, evals, refused := rules.Recheck(v, m)
		for _, mark := range accepted {
			n, a := s.nodes[mark.Node].Copy(), s.allocs[mark.Alloc].Copy()
			lifecycle.ApplyMark(n, a, mark, m.At, index)
			s.nodes[n.ID], s.allocs[a.ID] = n, a
		}
		for _, e := range evals {
			e = e.Copy()
			e.CreateIndex = index
			s.evals[e.ID] = e
		}
		return refused
	}))
	return true
}

// NodesDrainComplete is for drainer.RaftApplier.
func (s *small) NodesDrainComplete(c *rules.Completions, reply drainer.Reply) (queued bool) {
	reply(s.apply(func(v rules.View, index uint64) []rules.Refusal {
		ended, refused := rules.RecheckCompletions(v, c)
		for _, e := range ended {
			after, record := lifecycle.EndDrain(s.nodes[e.Node], e, c.At, index)
			s.nodes[after.ID], s.drains[record.ID] = after, record
		}
		return refused
	}))
	return true
}

// Barrier is for drainer.RaftApplier.
func (s *small) Barrier(reply drainer.Reply) (queued bool) {
	reply(s.apply(func(rules.View, uint64) []rules.Refusal { return nil }))
	return true
}

// await waits until the condition holds.
func (s *small) await(holds func(rules.View) bool) {
	wake := make(chan struct{}, 1)
	defer s.reader.Subscribe(wake).Close()
	for !holds(s.reader.Snapshot()) {
		<-wake
	}
}

// A scheduler with plain rows takes the view and the reader of package rowview, and the transitions of
// package lifecycle. examples/scheduler is one with a log and several servers.
func ExampleNodeDrainer() {
	s := &small{
		nodes: map[cluster.NodeID]*cluster.Node{}, jobs: map[cluster.JobKey]*cluster.Job{}, allocs: map[cluster.AllocID]*cluster.Allocation{},
		evals: map[cluster.EvalID]*cluster.Evaluation{}, drains: map[cluster.DrainID]*cluster.Drain{},
	}
	d, err := drainer.NewNodeDrainer(drainer.NodeDrainerConfig{Raft: s})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := d.SetEnabled(true, &s.reader); err != nil {
		fmt.Println(err)
		return
	}
	defer d.SetEnabled(false, nil) //nolint:errcheck // disabling cannot fail

	// A node with one healthy allocation of a service.
	healthy := true
	job := &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{{Name: "web", Count: 1, Tasks: []*cluster.Task{{Name: "web"}}}}}
	job.Canonicalize()
	web := &cluster.Allocation{
		ID: "web-1", Namespace: job.Namespace, JobID: job.ID, Job: job, TaskGroup: "web", NodeID: "n1", CreateTime: time.Now(),
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning, DeploymentStatus: &cluster.DeploymentStatus{Healthy: &healthy},
	}
	s.apply(func(rules.View, uint64) []rules.Refusal {
		s.nodes["n1"] = &cluster.Node{ID: "n1", Status: cluster.NodeReady}
		s.jobs[job.Key()], s.allocs[web.ID] = job, web
		return nil
	})

	// An operator drains the node.
	s.apply(func(_ rules.View, index uint64) []rules.Refusal {
		u := cluster.DrainUpdate{Drain: "drain-1", Spec: &cluster.DrainSpec{Deadline: time.Hour}, At: time.Now()}
		started, err := lifecycle.StartDrain(s.nodes["n1"], u, index)
		if err != nil {
			fmt.Println(err)
			return nil
		}
		s.nodes["n1"] = started
		return nil
	})
	s.await(func(v rules.View) bool { return v.Alloc("web-1").Marked() })
	fmt.Println("marked", s.reader.Snapshot().Alloc("web-1").DesiredTransition.Class)

	// The scheduler would now stop it and place another. Its client reports the end.
	s.apply(func(rules.View, uint64) []rules.Refusal {
		a := s.allocs["web-1"].Copy()
		a.ClientStatus = cluster.ClientComplete
		s.allocs[a.ID] = a
		return nil
	})
	s.await(func(v rules.View) bool { return !v.Node("n1").Draining() })
	fmt.Println("ended", s.reader.Snapshot().Node("n1").LastDrain.Status)

	// Output:
	// marked paced
	// ended complete
}
