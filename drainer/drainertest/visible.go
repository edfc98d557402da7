package drainertest

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// visibleCommits is how many commits testVisible makes. On a machine with several processors they
// are enough to find a store that wakes subscribers slightly too early.
const visibleCommits = 400

// testVisible tests that a wake-up implies visibility: a subscriber that is woken, takes from the
// feed, and then takes a snapshot finds all of these changes there. The subscriber runs
// concurrently and does nothing else. Every commit writes rows with different names, so that the
// subscriber records which commits the feed named.
func testVisible(s Store) error {
	sub := &subscriber{store: s, wake: make(chan struct{}, 1), requests: make(chan chan found)}
	sub.feed = s.Subscribe(sub.wake)
	defer sub.feed.Close()
	for i := range visibleCommits {
		sub.feed.Follow(visibleJob(i))
	}
	host := &cluster.Node{ID: "host", Status: cluster.NodeReady, Drain: &cluster.Drain{ID: "dhost", NodeID: "host"}}
	if err := s.Commit(1, Rows{Nodes: []*cluster.Node{host}}); err != nil {
		return fmt.Errorf("writing a node: %w", err)
	}
	go sub.run()
	defer close(sub.requests)
	for i := range visibleCommits {
		index := uint64(i) + 2
		if err := s.Commit(index, visibleRows(i)); err != nil {
			return fmt.Errorf("writing rows at index %d: %w", index, err)
		}
		answer := make(chan found)
		sub.requests <- answer
		switch f := <-answer; {
		case f.wrong != nil:
			return f.wrong
		case f.index < index:
			return fmt.Errorf("a subscriber was woken before the commit was visible: it found index %d, but no wake-up followed for index %d", f.index, index)
		}
	}
	return nil
}

// visibleRows are the rows of one commit: a draining node, or an allocation on one, or a
// followed job, or its evaluation.
func visibleRows(i int) Rows {
	job := visibleJob(i)
	switch i % 4 {
	case 0:
		return Rows{Nodes: []*cluster.Node{{ID: visibleNode(i), Status: cluster.NodeReady, Drain: &cluster.Drain{ID: cluster.DrainID(job.ID), NodeID: visibleNode(i)}}}}
	case 1:
		return Rows{Allocs: []*cluster.Allocation{{
			ID: cluster.AllocID(job.ID), Namespace: job.Namespace, JobID: job.ID, TaskGroup: "g", NodeID: "host",
			Job:           &cluster.Job{Namespace: job.Namespace, ID: job.ID, Type: cluster.JobService},
			DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning,
		}}}
	case 2:
		return Rows{Jobs: []*cluster.Job{{Namespace: job.Namespace, ID: job.ID, Type: cluster.JobService}}}
	}
	return Rows{Evals: []*cluster.Evaluation{{ID: cluster.EvalID(job.ID), Namespace: job.Namespace, JobID: job.ID, Status: cluster.EvalPending, CreateIndex: uint64(i) + 2}}}
}

func visibleNode(i int) cluster.NodeID { return cluster.NodeID(fmt.Sprintf("n%04d", i)) }

func visibleJob(i int) cluster.JobKey {
	return cluster.JobKey{Namespace: "default", ID: cluster.JobID(fmt.Sprintf("j%04d", i))}
}

// subscriber acts as a drainer does when it is woken.
type subscriber struct {
	store Store
	feed  drainer.Feed
	wake  chan struct{}
	// requests carries requests for the subscriber's findings. testVisible closes it at the end.
	requests chan chan found
	found    found
}

// found are the findings of a subscriber.
type found struct {
	// index is that of the last snapshot.
	index uint64
	// wrong is the first mistake, or nil.
	wrong error
}

func (s *subscriber) run() {
	for {
		select {
		case <-s.wake:
			s.read()
		case answer, open := <-s.requests:
			if !open {
				return
			}
			select {
			case <-s.wake:
				s.read()
			default:
			}
			answer <- s.found
		default:
			runtime.Gosched() // only a running subscriber notices a wake-up that is slightly too early
		}
	}
}

func (s *subscriber) read() {
	reported := s.feed.Take()
	view := s.store.Snapshot()
	s.found.index = view.Index()
	for i := 0; i < visibleCommits && s.found.wrong == nil && !reported.All; i++ {
		if reportedAt(reported, i) && !shows(view, i) {
			s.found.wrong = fmt.Errorf("a subscriber was woken before the commit was visible: the feed reported the commit of index %d, but the snapshot after it has index %d", i+2, view.Index())
		}
	}
}

// reportedAt reports whether the feed has named a commit.
func reportedAt(c drainer.Changes, i int) bool {
	job := visibleJob(i)
	switch i % 4 {
	case 0:
		return slices.Contains(c.Nodes, visibleNode(i))
	case 1:
		return slices.Contains(c.Groups, cluster.GroupKey{Job: job, Name: "g"})
	}
	return slices.Contains(c.Jobs, job)
}

// shows reports whether a view shows a commit.
func shows(v rules.View, i int) bool {
	job := visibleJob(i)
	switch i % 4 {
	case 0:
		return v.Node(visibleNode(i)) != nil
	case 1:
		return v.Alloc(cluster.AllocID(job.ID)) != nil
	case 2:
		return v.Job(job) != nil
	}
	for range v.OpenEvals(job) {
		return true
	}
	return false
}
