package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// clusterOf returns three servers on which everything runs. It is called in a bubble: a second ends
// when the writer has written everything.
func clusterOf(t *testing.T) *servers {
	t.Helper()
	c := newServers(filepath.Join(t.TempDir(), "log"), 3)
	t.Cleanup(func() {
		for len(c.live) > 0 {
			c.kill(c.live[0])
		}
	})
	c.after = synctest.Wait
	return c
}

// stories are drains, with the outcomes that they have whatever happens to the servers.
var stories = []struct {
	name  string
	play  func(c *servers)
	drain cluster.DrainID
	want  cluster.Outcome
}{
	{"paced", func(c *servers) {
		c.drain("node-1", cluster.DrainSpec{}, "1")
	}, "drain-1", cluster.OutcomeComplete},
	{"deadline", func(c *servers) {
		stay := newJob("stay", cluster.JobService, 3)
		stay.TaskGroups[0].Migrate.MaxParallel = 0 // only a deadline moves it
		c.run(stay, 3)
		c.drain("node-1", cluster.DrainSpec{Deadline: 20 * time.Second}, "1")
	}, "drain-1", cluster.OutcomeDeadlineReached},
	{"forced", func(c *servers) {
		c.drain("node-1", cluster.DrainSpec{}, "1")
		c.drain("node-1", cluster.DrainSpec{Deadline: -1}, "2")
	}, "drain-1", cluster.OutcomeForced},
	{"cancelled", func(c *servers) {
		c.drain("node-1", cluster.DrainSpec{}, "1")
		u := &cluster.DrainUpdate{Node: "node-1", At: c.now, MarkEligible: true}
		c.until(func(s *state) bool { return !s.nodes["node-1"].Draining() }, &entry{At: c.now, Drain: u})
	}, "drain-1", cluster.OutcomeCancelled},
	{"two nodes", func(c *servers) {
		c.drain("node-1", cluster.DrainSpec{}, "1")
		c.drain("node-2", cluster.DrainSpec{Deadline: time.Hour}, "2")
	}, "drain-2", cluster.OutcomeComplete},
	{"no node is left", func(c *servers) {
		for _, n := range []string{"1", "2", "3"} {
			c.drain(cluster.NodeID("node-"+n), cluster.DrainSpec{Deadline: time.Minute}, n)
		}
		blocked := func(s *state) bool {
			for _, e := range s.evals {
				if e.Status == cluster.EvalBlocked && e.Queued["main"] > 0 {
					return true
				}
			}
			return false
		}
		c.until(blocked, nil)
		n := &cluster.Node{ID: "node-4", Status: cluster.NodeReady}
		c.until(func(s *state) bool { return s.nodes[n.ID] != nil }, &entry{At: c.now, Node: n})
	}, "drain-3", cluster.OutcomeComplete},
	{"paused", func(c *servers) {
		// The pauses last longer than the deadlines, and the pause of all holds the drain that begins in it.
		c.drain("node-1", cluster.DrainSpec{Deadline: time.Minute}, "1")
		c.pause("node-1", true)
		c.pause("", true)
		c.drain("node-2", cluster.DrainSpec{Deadline: time.Minute}, "2")
		c.leader().propose(&entry{At: c.now, Pause: &cluster.DrainPauseUpdate{Node: "node-1", At: c.now}}) // changes nothing
		began := c.state()
		for range 90 {
			c.second()
		}
		for _, id := range []cluster.NodeID{"node-1", "node-2"} {
			before, after := began.nodes[id].Drain, c.state().nodes[id].Drain
			if after == nil || after.Marked != before.Marked {
				c.err = cmp.Or(c.err, fmt.Errorf("the pauses have not held the drain of %s", id))
			}
		}
		c.pause("", false)
		if d := c.state().nodes["node-1"].Drain; d == nil || d.Paused == nil {
			c.err = cmp.Or(c.err, errors.New("the resume of all has ended the pause of the first drain"))
		}
		c.pause("node-1", false)
		c.until(settled, nil)
		if second := c.state().drains["drain-2"]; c.err == nil && second.Outcome != cluster.OutcomeComplete {
			c.err = fmt.Errorf("the second drain has ended: %s", second.Outcome)
		}
	}, "drain-1", cluster.OutcomeComplete},
}

// pause pauses or resumes the drain of a node, or all drains.
func (c *servers) pause(node cluster.NodeID, pause bool) {
	u := &cluster.DrainPauseUpdate{Node: node, Pause: pause, At: c.now}
	c.until(func(s *state) bool {
		if node == "" {
			return pause == (s.pause != nil)
		}
		d := s.nodes[node].Drain
		return pause == (d != nil && d.Paused != nil)
	}, &entry{At: c.now, Pause: u})
}

// TestDrain plays each story again and again, and kills a leader in another second each time, or two
// leaders after each other. A killed leader leaves a half-written line, and comes back later.
func TestDrain(t *testing.T) {
	t.Parallel()
	const seconds = 20 // most of the stories end by then
	for _, story := range stories {
		for kill := range seconds {
			t.Run(fmt.Sprintf("%s/%d", story.name, kill), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					c := clusterOf(t)
					c.build()
					began, again := c.now, kill+3*(kill%2)
					c.after = func() {
						synctest.Wait()
						switch second := int(c.now.Sub(began) / time.Second); second {
						case kill, again:
							killLeader(t, c)
						case again + 2:
							c.start("late")
						}
					}
					story.play(c)
					c.until(settled, nil)
					check(t, c, story.drain, story.want)
				})
			})
		}
	}
}

// killLeader kills the leader, if there is one, while it writes an entry.
func killLeader(t *testing.T, c *servers) {
	t.Helper()
	leader := c.leader()
	if leader.term == nil {
		return
	}
	c.kill(leader)
	log, err := os.ReadFile(c.path)
	must.NoError(t, err)
	log = append(log, bytes.ReplaceAll(log, []byte("\n"), nil)...)
	must.NoError(t, os.WriteFile(c.path, log, 0o600))
}

// settled reports whether no drain runs, and the scheduler and the clients have nothing to do.
func settled(s *state) bool {
	for range s.view.DrainingNodes() {
		return false
	}
	for _, a := range s.allocs {
		if !a.ClientTerminal() && (a.Leaving() || !a.JudgedHealthy()) {
			return false
		}
	}
	return s.nextPlan() == nil
}

// check compares the end of a story with its log: all servers have the state of the log, in which
// the witness finds nothing, and the drain has its outcome.
func check(t *testing.T, c *servers, drain cluster.DrainID, want cluster.Outcome) {
	t.Helper()
	must.NoError(t, c.err)
	c.after = synctest.Wait
	c.second() // for the servers that follow
	must.NoError(t, c.err)
	s, _ := judge(t, c.path)
	for _, server := range c.live {
		must.Eq(t, rowsOf(t, s), rowsOf(t, server.state.Load()), must.Sprint(server.name))
	}
	record := s.drains[drain]
	must.NotNil(t, record)
	must.Eq(t, want, record.Outcome)
	must.Zero(t, record.StillStopping)
	web := newJob("web", cluster.JobService, 6)
	must.Eq(t, 6, s.view.Healthy(cluster.GroupKey{Job: web.Key(), Name: "main"}))
}

// rowsOf returns the rows of a state as a text.
func rowsOf(t *testing.T, s *state) string {
	t.Helper()
	var rows bytes.Buffer
	encoder := json.NewEncoder(&rows)
	must.NoError(t, encoder.Encode(s.nodes))
	must.NoError(t, encoder.Encode(s.allocs))
	must.NoError(t, encoder.Encode(s.evals))
	must.NoError(t, encoder.Encode(s.drains))
	must.NoError(t, encoder.Encode(s.pause))
	return fmt.Sprintf("index %d\n%s", s.index, rows.String())
}
