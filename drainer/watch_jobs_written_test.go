package drainer

import (
	"iter"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// looks counts how often a view was asked what of a group is restless: once whenever a
// group is judged that has nothing else to count.
type looks struct {
	View
	count *int
}

func (l looks) RestlessAllocs(key cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	*l.count++
	return l.View.RestlessAllocs(key)
}

// judges steps the watcher, with marks in flight or none, and reports whether it judged
// a group.
func (w *watch) judges(inFlight ...cluster.AllocID) bool {
	count := 0
	look := Look{Now: w.now, View: looks{w.state.Snapshot(), &count}, Changes: w.state.feed().Take()}
	if len(inFlight) > 0 {
		look.InFlight = func(id cluster.AllocID) bool { return id == inFlight[0] }
	}
	w.Step(look)
	return count > 0
}

// A group of which nothing has changed but that all it wished was written is not judged
// anew: the plan has counted that. Whatever else happens has it judged.
func TestJobWatcher_WhatItWroteIsNoNews(t *testing.T) {
	t.Parallel()
	type story struct {
		*watch
		asked *DrainRequest
	}
	write := func(s story) DrainReply {
		index := s.state.commit(func(t *town) { t.mark(s.asked.Marks, nil, s.now); t.index-- })
		return DrainReply{Answer: Answer{Outcome: Applied, Index: index}, At: s.now, Marks: s.asked.Marks}
	}
	report := func(s story) { s.state.commit(func(t *town) { t.alloc("a2").ModifyTime = s.now }) }
	for name, test := range map[string]struct {
		tell   func(must.T, story) // until just before the last step
		judges bool
	}{
		"told and answered at once": {func(t must.T, s story) { s.asked.Reply(write(s)) }, false},
		"told before the answer": {func(t must.T, s story) {
			answer := write(s)
			must.False(t, s.judges("a1"))
			s.asked.Reply(answer)
		}, false},
		"told of another entry before": {func(t must.T, s story) { report(s); s.asked.Reply(write(s)) }, true},
		"told of another entry since":  {func(t must.T, s story) { answer := write(s); report(s); s.asked.Reply(answer) }, true},
		"told of another entry while it is in flight": {func(t must.T, s story) {
			report(s)
			must.False(t, s.judges("a1"))
			s.asked.Reply(write(s))
		}, true},
		"told of its job, too": {func(t must.T, s story) {
			s.asked.Reply(write(s))
			s.state.commit(func(t *town) { t.group().Count++ })
		}, true},
		"not told": {func(t must.T, s story) {
			answer := write(s)
			s.state.feed().Take()
			s.asked.Reply(answer)
		}, true},
		"told, and the answer is lost": {func(t must.T, s story) {
			answer := write(s)
			must.False(t, s.judges("a1"))
			answer.Outcome = Unknown
			s.asked.Reply(answer)
		}, true},
		"answered without an index": {func(t must.T, s story) { answer := write(s); answer.Index = 0; s.asked.Reply(answer) }, true},
		"refused": {func(t must.T, s story) {
			answer := write(s)
			answer.Refused = []Refusal{{Alloc: "a1"}}
			s.asked.Reply(answer)
		}, true},
		"told without an entry": {func(t must.T, s story) {
			s.asked.Reply(write(s))
			must.False(t, s.judges())
			s.state.feed().add(Changes{Groups: []Told[cluster.GroupKey]{{Key: web}}})
		}, true},
		"written in part": {func(t must.T, s story) {
			g := s.groups.get(web)
			g.asked = append(g.asked, ask{alloc: "a3", node: "n1"})
			s.asked.Reply(write(s))
		}, true},
		"it wants an evaluation": {func(t must.T, s story) {
			s.groups.get(web).reevaluate = true
			s.asked.Reply(write(s))
		}, true},
		"something may have changed": {func(t must.T, s story) { s.asked.Reply(write(s)); s.state.feed().add(Changes{All: true}) }, true},
		"its time has come": {func(t must.T, s story) {
			s.asked.Reply(write(s))
			s.alarms.Set(s.groups.get(web), s.now)
		}, true},
		"its time will come": {func(t must.T, s story) {
			s.asked.Reply(write(s))
			s.alarms.Set(s.groups.get(web), s.now.Add(time.Minute))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := newTown(1, 3)
			begin.drain("n1", 0)
			s := story{watch: newWatch(begin, Policy{})}
			s.register(web)
			s.asked = s.request()
			must.Eq(t, []cluster.AllocID{"a1"}, wished(s.asked))

			test.tell(t, s)
			must.Eq(t, test.judges, s.judges())
			must.SliceEmpty(t, s.heard)
			must.SliceEmpty(t, s.waiting)
			if !test.judges {
				must.SliceEmpty(t, s.wanting)
				must.SliceEmpty(t, wished(s.request()))
				report(s)
				must.True(t, s.judges(), must.Sprint("what it hears of next"))
			}
		})
	}
}

// What a group waited for may be over when it changed: while writes are in flight it does
// not ring.
func TestJobWatcher_ToldWhileItWaits(t *testing.T) {
	t.Parallel()
	begin := newTown(1, 3)
	begin.drain("n1", 0)
	w := newWatch(begin, Policy{})
	w.register(web)
	w.alarms.Set(w.groups.get(web), w.now.Add(time.Minute))
	w.state.commit(func(t *town) { t.alloc("a2").ModifyTime = w.now })
	must.False(t, w.judges("a1"))
	must.Eq(t, 0, w.alarms.Len())
	must.True(t, w.judges())
}

// A group that waits for an answer is not looked at again until there is one, however
// often the watcher is stepped meanwhile: thousands may.
func TestJobWatcher_WaitingCostsNothing(t *testing.T) {
	t.Parallel()
	begin := newTown(1, 3)
	begin.drain("n1", 0)
	w := newWatch(begin, Policy{})
	w.register(web)
	w.state.commit(func(t *town) { t.alloc("a2").ModifyTime = w.now })
	must.False(t, w.judges("a1"))
	must.Len(t, 1, w.waiting)
	asked := 0
	w.Step(Look{Now: w.now, View: w.state.Snapshot(), InFlight: func(cluster.AllocID) bool { asked++; return true }})
	must.Zero(t, asked)
	must.Len(t, 1, w.waiting)
	must.True(t, w.judges())
	must.SliceEmpty(t, w.waiting)
}
