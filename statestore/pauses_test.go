package statestore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// pausing is a world in which drains are paused and resumed. Its times are seconds since its begin.
type pausing struct {
	*world
	begin time.Time
}

func newPausing(t *testing.T) *pausing {
	w := newWorld(t)
	w.write(func(txn *statestore.Txn) { txn.RaiseClusterVersion(cluster.VersionOfPauses) })
	w.nodes("n1", "n2")
	return &pausing{w, w.now}
}

// at lets the next entry be at a time.
func (p *pausing) at(second int) *pausing {
	p.now = p.begin.Add(time.Duration(second-1) * time.Second)
	return p
}

// update applies a request for a node, or for all if the node is empty.
func (p *pausing) update(n cluster.NodeID, pause bool) (result cluster.DrainPauseResult, err error) {
	p.write(func(txn *statestore.Txn) {
		result, err = statestore.PauseDrains(txn, cluster.DrainPauseUpdate{Node: n, Pause: pause, At: p.now, By: "ann"})
	})
	return result, err
}

func (p *pausing) pause(n cluster.NodeID) cluster.DrainPauseResult {
	r, err := p.update(n, true)
	must.NoError(p.t, err)
	return r
}

func (p *pausing) resume(n cluster.NodeID) cluster.DrainPauseResult {
	r, err := p.update(n, false)
	must.NoError(p.t, err)
	return r
}

// show is the drain of n1: since when it is paused, and its deadline.
func (p *pausing) show() string {
	d := p.snap().Node("n1").Drain
	second := func(at time.Time) string {
		if at.IsZero() {
			return "-"
		}
		return fmt.Sprint(int(at.Sub(p.begin) / time.Second))
	}
	return "paused " + second(d.PausedSince(p.snap().DrainView().DrainPause())) + ", deadline " + second(d.Strategy.ForceDeadline)
}

// A resume moves the deadline by the time for which the drain was paused, in whatever way it was. A strategy that was
// set in the pause counts from the resume.
func TestPauseDrains_deadline(t *testing.T) {
	t.Parallel()
	minute, forced := cluster.DrainSpec{Deadline: time.Minute}, cluster.DrainSpec{Deadline: -1}
	for name, c := range map[string]struct {
		do    func(p *pausing)
		shows string
	}{
		"paused":                    {func(p *pausing) { p.at(20).pause("n1") }, "paused 20, deadline 70"},
		"paused twice":              {func(p *pausing) { p.at(20).pause("n1"); p.at(30).pause("n1") }, "paused 20, deadline 70"},
		"resumed":                   {func(p *pausing) { p.at(20).pause("n1"); p.at(100).resume("n1") }, "paused -, deadline 150"},
		"resumed twice":             {func(p *pausing) { p.at(20).pause("n1"); p.at(100).resume("n1"); p.at(110).resume("n1") }, "paused -, deadline 150"},
		"resumed by an older clock": {func(p *pausing) { p.at(20).pause("n1"); p.at(15).resume("n1") }, "paused -, deadline 70"},
		"paused again": {func(p *pausing) {
			p.at(20).pause("n1")
			p.at(30).resume("n1")
			p.at(75).pause("n1")
			p.at(80).resume("n1")
		}, "paused -, deadline 85"},
		"changed in the pause": {func(p *pausing) { p.at(20).pause("n1"); p.at(30).drain("n1", "", minute); p.at(100).resume("n1") }, "paused -, deadline 160"},
		"forced in the pause":  {func(p *pausing) { p.at(20).pause("n1"); p.at(30).drain("n1", "", forced) }, "paused -, deadline -"},
		"no deadline": {func(p *pausing) {
			p.at(15).drain("n1", "", cluster.DrainSpec{})
			p.at(20).pause("n1")
			p.at(30).resume("n1")
		}, "paused -, deadline -"},
		"all paused":                       {func(p *pausing) { p.at(20).pause("") }, "paused 20, deadline 70"},
		"all paused twice":                 {func(p *pausing) { p.at(20).pause(""); p.at(30).pause("") }, "paused 20, deadline 70"},
		"all resumed":                      {func(p *pausing) { p.at(20).pause(""); p.at(100).resume("") }, "paused -, deadline 150"},
		"one resumed under a pause of all": {func(p *pausing) { p.at(20).pause(""); p.at(30).resume("n1") }, "paused 20, deadline 70"},
		"all paused, then one, then all resumed": {
			func(p *pausing) { p.at(20).pause(""); p.at(30).pause("n1"); p.at(40).resume("") }, "paused 20, deadline 70"},
		"all paused, then one, both resumed": {
			func(p *pausing) { p.at(20).pause(""); p.at(30).pause("n1"); p.at(40).resume(""); p.at(50).resume("n1") }, "paused -, deadline 100"},
		"one paused, then all, both resumed": {
			func(p *pausing) { p.at(20).pause("n1"); p.at(30).pause(""); p.at(40).resume(""); p.at(50).resume("n1") }, "paused -, deadline 100"},
		"one paused, then all, one resumed before all": {
			func(p *pausing) { p.at(20).pause("n1"); p.at(30).pause(""); p.at(40).resume("n1"); p.at(50).resume("") }, "paused 20, deadline 70"},
		// Bug: the pause of all did not hold the drain, and its time counted twice.
		"one paused, then all after its deadline, one resumed before all": {
			func(p *pausing) {
				p.at(20).pause("n1")
				p.at(100).pause("")
				p.at(110).resume("n1")
				p.at(120).resume("")
				p.at(140).resume("n1")
			}, "paused -, deadline 190"},
		"begun under a pause of all": {
			func(p *pausing) {
				p.at(11).request(cluster.DrainUpdate{Node: "n1"})
				p.at(20).pause("")
				p.at(30).drain("n1", "d2", minute)
				p.at(40).resume("")
			},
			"paused -, deadline 100"},
		"forced under a pause of all":   {func(p *pausing) { p.at(20).pause(""); p.at(30).drain("n1", "", forced); p.at(40).resume("") }, "paused -, deadline -"},
		"all paused after the deadline": {func(p *pausing) { p.at(70).pause("") }, "paused -, deadline 70"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPausing(t)
			p.at(10).drain("n1", "d1", minute)
			c.do(p)
			must.Eq(t, c.shows, p.show())
			must.Eq(t, dump(t, p.snap()), dump(t, restored(t, p.snap()).Snapshot()))
		})
	}
}

func TestPauseDrains_refuses(t *testing.T) {
	t.Parallel()
	p := newPausing(t)
	for _, c := range []struct {
		second int
		node   cluster.NodeID
		spec   cluster.DrainSpec
		err    error
		text   string
	}{
		{10, "n9", cluster.DrainSpec{}, statestore.ErrNodeNotFound, "node n9: "},
		{11, "n2", cluster.DrainSpec{}, statestore.ErrNotDraining, "node n2: node does not drain"},
		{20, "n1", cluster.DrainSpec{Deadline: -1}, statestore.ErrNotPausable, "the drain is forced"},
		{30, "n1", cluster.DrainSpec{Deadline: time.Second}, statestore.ErrNotPausable, "its deadline has passed"},
	} {
		p.at(c.second).drain("n1", "d1", c.spec)
		before := p.snap().Node("n1")
		_, err := p.at(c.second+1).update(c.node, true)
		must.ErrorIs(t, err, c.err)
		must.ErrorContains(t, err, c.text)
		must.Eq(t, before, p.snap().Node("n1"))
	}
	_, err := p.update("n2", false)
	must.ErrorIs(t, err, statestore.ErrNotDraining)
}

// The results of requests name the drains, those that a pause does not hold, and what goes on all the same. A pause of
// all is one row, and wakes the feeds for all draining nodes.
func TestPauseDrains_result(t *testing.T) {
	t.Parallel()
	p := newPausing(t)
	p.place(p.job(serviceJob("web", 3)), "n1", nil, "a1", "a2", "a3")
	p.drain("n1", "d1", cluster.DrainSpec{})
	p.drain("n2", "d2", cluster.DrainSpec{Deadline: -1})
	p.mark(cluster.MarkPaced, "a1", "a2")
	p.report(cluster.ClientComplete, "a2")
	sub := subscribe(t, p.store)
	sub.changes()
	before := p.snap()

	held := cluster.PausedDrain{Drain: "d1", Node: "n1", Stopping: 1}
	r := p.pause("")
	all := &cluster.DrainPause{At: p.now.UTC(), By: "ann"}
	skipped := []cluster.PausedDrain{{Drain: "d2", Node: "n2", Why: cluster.PauseForced}}
	must.Eq(t, cluster.DrainPauseResult{Changed: true, All: all, Drains: []cluster.PausedDrain{held}, Skipped: skipped}, r)
	must.Eq(t, "[n1 n2] [] []", sub.changes())
	must.True(t, before.Node("n1") == p.snap().Node("n1"), must.Sprint("its row is not written"))
	must.Eq(t, p.index, p.snap().TableIndex(statestore.TableNodes))

	must.Eq(t, cluster.DrainPauseResult{All: all, Drains: []cluster.PausedDrain{held}, Skipped: skipped}, p.pause(""))
	must.Eq(t, cluster.DrainPauseResult{All: all, Drains: []cluster.PausedDrain{held}}, p.resume("n1"))
	must.Eq(t, cluster.DrainPauseResult{Changed: true, Drains: []cluster.PausedDrain{held}}, p.resume(""))
	must.Eq(t, cluster.Revision(p.index), p.snap().Node("n1").Drain.Revision)
	must.Eq(t, "[n1 n2] [] []", sub.changes())
	must.Eq(t, cluster.DrainPauseResult{}, p.resume(""))
	must.Eq(t, cluster.DrainPauseResult{Drains: []cluster.PausedDrain{held}}, p.resume("n1"))
}

// The journal of a drain has its pauses. A pause of all writes them when it ends.
func TestPauseDrains_journal(t *testing.T) {
	t.Parallel()
	p := newPausing(t)
	p.at(10).drain("n1", "d1", cluster.DrainSpec{Deadline: time.Minute})
	p.at(20).pause("n1")
	p.at(30).resume("n1")
	p.at(40).pause("")
	p.at(50).resume("")
	must.Eq(t, `0 an operator started the drain: deadline 1m0s
10 ann paused the drain
20 ann resumed the drain
30 ann paused the drain
40 ann resumed the drain
`, storyOf(journalOf(p.world, "d1")))
	must.Eq(t, []string{"Node registered", "Node drain strategy set", "Node drain paused", "Node drain resumed", "Node drain resumed"}, p.messages("n1"))
}
