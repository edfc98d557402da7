// Command scheduler is the smallest scheduler that embeds the drainer without the rest of this
// repository: it has its own rows, its own log and its own clock. docs/embedding.md explains it.
// It drains a node while a server dies:
//
//	go run ./examples/scheduler
//
// Read its files in this order:
//
//	main.go       three servers over one log; an operator drains a node, and the leader dies
//	server.go     one server: it follows the log or leads, and steps the drainer
//	writer.go     the drainer's applier: it begins writes and answers them
//	log.go        the log: entries in a file, and its lock
//	state.go      the state machine: it applies entries, and checks those of the drainer again
//	scheduler.go  places allocations, and stops marked ones; plays the clients
//	pause.go      pauses drains; a scheduler whose operators pause none needs no such file
//
// The tests run the suites of drainertest, kill servers at every second of a drain, and give the
// log to the witness.
package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// pace is the real time of one second of the cluster.
const pace = 200 * time.Millisecond

func main() {
	log, err := os.CreateTemp("", "scheduler-*.log")
	if err == nil {
		c := newServers(log.Name(), 3)
		last := newState()
		c.after = func() {
			time.Sleep(pace)
			narrate(os.Stdout, c.now, last, c.state())
			last = c.state()
		}
		err = play(os.Stdout, c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("The log is in", log.Name())
}

// play drains a node, and kills the leader after the first mark.
func play(out io.Writer, c *servers) error {
	c.build()
	fmt.Fprintln(out, "An operator drains node-1.")
	c.drain("node-1", cluster.DrainSpec{Deadline: time.Hour}, "key-1")
	c.until(func(s *state) bool { return s.nodes["node-1"].Drain.Marked[cluster.MarkPaced] > 0 }, nil)
	if c.err != nil {
		return c.err
	}
	report, err := c.leader().term.Explain("node-1", c.now)
	if err != nil {
		return err
	}
	for _, a := range report.Allocs {
		why := a.Reason.String()
		if a.Culprit != nil {
			why += ": " + a.Culprit.String()
		}
		fmt.Fprintf(out, "          %-9s is still there: %s\n", a.Alloc, why)
	}
	fmt.Fprintf(out, "The leader, %s, dies.\n", c.leader().name)
	c.kill(c.leader())
	c.until(func(s *state) bool { return !s.nodes["node-1"].Draining() }, nil)
	if c.err == nil {
		record := c.state().drainWithKey(c.state().nodes["node-1"], "key-1")
		fmt.Fprintf(out, "The drain of %s took %s: %s.\n", record.NodeID, record.EndedAt.Sub(record.Strategy.StartedAt), record.Outcome)
	}
	return c.err
}

// narrate prints the allocations that have changed.
func narrate(out io.Writer, now time.Time, before, after *state) {
	for _, id := range slices.Sorted(maps.Keys(after.allocs)) {
		if a, b := after.allocs[id], before.allocs[id]; b == nil || a.ModifyIndex != b.ModifyIndex {
			fmt.Fprintf(out, "%s  %-9s on %s %s\n", now.Format(time.TimeOnly), id, a.NodeID, describe(a))
		}
	}
}

// describe returns what has happened to an allocation last.
func describe(a *cluster.Allocation) string {
	switch {
	case a.ClientTerminal():
		return "has stopped"
	case a.ServerTerminal():
		return "stops"
	case a.Marked():
		return fmt.Sprintf("must leave (%s)", a.DesiredTransition.Class)
	case a.JudgedHealthy():
		return "is healthy"
	}
	return "is placed"
}

// servers are the servers of one cluster, and the clock that all of them have.
type servers struct {
	path  string
	now   time.Time
	live  []*server
	after func() // is called after every second
	err   error  // the first error, after which nothing happens; or nil
}

func newServers(path string, count int) *servers {
	c := &servers{path: path, now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	for i := range count {
		c.start(fmt.Sprintf("server-%d", i+1))
	}
	return c
}

func (c *servers) start(name string) {
	s, err := newServer(name, c.path)
	if c.err = cmp.Or(c.err, err); err == nil {
		c.live = append(c.live, s)
	}
}

func (c *servers) kill(s *server) {
	c.live = slices.DeleteFunc(c.live, func(o *server) bool { return o == s })
	s.close()
}

// leader returns the leader, or another server if there is none.
func (c *servers) leader() *server {
	return c.live[max(0, slices.IndexFunc(c.live, func(s *server) bool { return s.term != nil }))]
}

func (c *servers) state() *state { return c.leader().state.Load() }

// second advances the cluster's clock by a second.
func (c *servers) second() {
	c.now = c.now.Add(time.Second)
	for _, s := range c.live {
		c.err = cmp.Or(c.err, s.tick(c.now))
	}
	c.after()
}

// until advances the clock until the state is as required. An entry is proposed every second until then,
// because its answer may be lost with a leader.
func (c *servers) until(is func(*state) bool, e *entry) {
	for end := c.now.Add(2 * time.Hour); c.err == nil && !is(c.state()); c.second() {
		if e != nil {
			c.leader().propose(e)
		}
		if c.now.After(end) {
			c.err = fmt.Errorf("two hours have passed in vain, with the entry %+v", e)
		}
	}
}

// build registers three nodes and two jobs, and waits until everything runs.
func (c *servers) build() {
	for _, id := range []cluster.NodeID{"node-1", "node-2", "node-3"} {
		c.until(func(s *state) bool { return s.nodes[id] != nil }, &entry{At: c.now, Node: &cluster.Node{ID: id, Status: cluster.NodeReady}})
	}
	c.run(newJob("web", cluster.JobService, 6), 6)
	c.run(newJob("logs", cluster.JobSystem, 0), 3)
}

// run registers a job, and waits until so many of its allocations are healthy.
func (c *servers) run(job *cluster.Job, healthy int) {
	group := cluster.GroupKey{Job: job.Key(), Name: job.TaskGroups[0].Name}
	c.until(func(s *state) bool { return s.jobs[job.Key()] != nil }, &entry{At: c.now, Job: job})
	c.until(func(s *state) bool { return s.view.Healthy(group) == healthy }, nil)
}

func newJob(id cluster.JobID, kind cluster.JobType, count int) *cluster.Job {
	job := &cluster.Job{ID: id, Type: kind, TaskGroups: []*cluster.TaskGroup{{Name: "main", Count: count, Tasks: []*cluster.Task{{Name: "main"}}}}}
	job.Canonicalize()
	return job
}

// drain requests the drain of a node. A repeated request has the same key and changes nothing.
func (c *servers) drain(node cluster.NodeID, spec cluster.DrainSpec, key string) {
	u := &cluster.DrainUpdate{Node: node, Drain: cluster.DrainID("drain-" + key), Spec: &spec, At: c.now, Key: key}
	c.until(func(s *state) bool { return s.drainWithKey(s.nodes[node], key) != nil }, &entry{At: c.now, Drain: u})
}
