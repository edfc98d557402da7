package drain

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/clitest"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// lostAlloc returns a lost allocation that the servers gave up at an index. It is confirmed unless confirmed is
// the zero time.
func lostAlloc(id, jobType string, index uint64, confirmed time.Time) *wire.Allocation {
	a := observed(id + " " + jobType + " stop lost")[0]
	a.AllocModifyIndex, a.ConfirmedAt = index, wire.NewTime(confirmed)
	return a
}

// A regression test: the monitor printed that all allocations had stopped, although some were lost and their
// tasks could run. Only the end of the drain shows whether they are confirmed.
func TestFollower_unconfirmed(t *testing.T) {
	t.Parallel()
	const stopped = `All allocations on node "n1" have stopped`
	names := func(n int, ids ...string) *wire.Drain {
		return &wire.Drain{ID: "d1", Outcome: "unconfirmed", EndIndex: 20, Unconfirmed: n, UnconfirmedAllocs: ids}
	}
	purged := names(1)
	purged.PurgedRunning = 1
	for name, test := range map[string]struct {
		allocs []*wire.Allocation
		record *wire.Drain
		skip   bool
		want   string
		lines  []string
	}{
		"nothing was lost": {observed("a1 service stop complete"), &wire.Drain{Outcome: "complete", EndIndex: 20}, false, stopped, nil},
		"lost": {
			[]*wire.Allocation{lostAlloc("a1", "service", 10, time.Time{})},
			names(1, "a1"),
			false,
			`No allocations are left on node "n1", but nothing confirms the end of 1 allocation`,
			[]string{"Unconfirmed: allocation a1 of job.web"},
		},
		"lost, and time has confirmed it": {
			[]*wire.Allocation{lostAlloc("a1", "service", 10, began)}, &wire.Drain{Outcome: "complete", EndIndex: 20}, false, stopped, nil,
		},
		"lost, and the read is older than the confirmation": {
			[]*wire.Allocation{lostAlloc("a1", "service", 10, time.Time{})}, &wire.Drain{Outcome: "complete", EndIndex: 20}, false, stopped, nil,
		},
		"purged": {
			nil, purged, false, `No allocations are left on node "n1", but nothing confirms the end of 1 allocation`,
			[]string{"Unconfirmed: 1 allocation of purged jobs"},
		},
		"lost after the end": {
			[]*wire.Allocation{lostAlloc("a1", "service", 10, time.Time{}), lostAlloc("a2", "service", 30, time.Time{})},
			names(2, "a1", "a2"),
			false,
			`No allocations are left on node "n1", but nothing confirms the end of 2 allocations`,
			[]string{"Unconfirmed: allocation a1 of job.web", "Unconfirmed: allocation a2 of job.web"},
		},
		"unknown at the deadline": {
			observed("a1 service stop unknown"), names(1, "a1"), false,
			`No allocations are left on node "n1", but nothing confirms the end of 1 allocation`,
			[]string{"Unconfirmed: allocation a1 of job.web"},
		},
		"unknown at the deadline, below cluster version 8": {
			observed("a1 service stop unknown"), &wire.Drain{Outcome: "deadline reached", EndIndex: 20, StillStopping: 1}, false,
			`No allocations are left on node "n1", but nothing confirms the end of 1 allocation`,
			[]string{"Unconfirmed: allocation a1 of job.web"},
		},
		"no record": {
			[]*wire.Allocation{lostAlloc("a1", "service", 10, time.Time{})}, nil, false,
			`No allocations are left on node "n1", but nothing confirms the end of 1 allocation`,
			[]string{"Unconfirmed: allocation a1 of job.web"},
		},
		"it need not leave": {
			[]*wire.Allocation{lostAlloc("a1", "system", 30, time.Time{})}, &wire.Drain{Outcome: "complete", EndIndex: 20}, true, `No allocation had to leave node "n1"`, nil,
		},
	} {
		f := Follower{Node: "n1", SkipSystem: test.skip}
		f.updateNode(drainingNode(time.Hour), nil)
		must.SliceEmpty(t, f.updateAllocs(test.allocs), must.Sprint(name))
		events := texts(f.updateNode(&wire.Node{ID: "n1"}, test.record))
		must.Eq(t, test.want, events[len(events)-1], must.Sprint(name))
		must.SliceEmpty(t, f.updateAllocs(test.allocs), must.Sprint(name))
		must.True(t, f.over())
		must.Eq(t, test.lines, f.unconfirmed().Lines(), must.Sprint(name))
		must.Eq(t, len(test.lines) > 0, f.unconfirmed().Any(), must.Sprint(name))
	}
}

// The record is as old as the end of the drain. The text about an empty node does not count what has stopped
// since, and the command reads the record again.
func TestFollower_unconfirmedAtTheEndOnly(t *testing.T) {
	t.Parallel()
	f := Follower{Node: "n1"}
	f.updateNode(drainingNode(time.Hour), nil)
	f.updateAllocs(append(observed("a1 service stop running"), observed("a2 service stop running")...))
	record := &wire.Drain{ID: "d1", Outcome: "deadline reached", EndIndex: 20, StillStopping: 2, Unconfirmed: 2, UnconfirmedAllocs: []string{"a1", "a2"}}
	f.updateNode(&wire.Node{ID: "n1"}, record)
	must.False(t, f.over())
	events := texts(f.updateAllocs(append(observed("a1 service stop complete"), observed("a2 service stop complete")...)))
	must.Eq(t, `All allocations on node "n1" have stopped`, events[len(events)-1])

	events = texts(f.updateAllocs(append(observed("a1 service stop complete"), lostAlloc("a2", "service", 30, time.Time{}))))
	must.SliceEmpty(t, events[1:], must.Sprint("the node was empty before"))
	f.emptied = false
	must.Eq(t, []string{`No allocations are left on node "n1", but nothing confirms the end of 1 allocation`}, texts(f.empty()))
}

// A cancelled drain waits for nothing: only its record counts.
func TestFollower_unconfirmedOfACancelledDrain(t *testing.T) {
	t.Parallel()
	f := Follower{Node: "n1"}
	f.updateAllocs([]*wire.Allocation{lostAlloc("a1", "service", 10, time.Time{}), lostAlloc("a2", "service", 30, time.Time{})})
	f.updateNode(&wire.Node{ID: "n1", LastDrain: &wire.DrainMetadata{Status: "canceled"}},
		&wire.Drain{ID: "d1", Outcome: "cancelled", EndIndex: 20, Unconfirmed: 1, UnconfirmedAllocs: []string{"a1"}})
	must.Eq(t, []string{"Unconfirmed: allocation a1 of job.web"}, f.unconfirmed().Lines())
}

// A record names some of its allocations. The others have a count, and those of purged jobs their own.
func TestUnconfirmed(t *testing.T) {
	t.Parallel()
	u := UnconfirmedIn(&wire.Drain{ID: "d1", Unconfirmed: 6, UnconfirmedAllocs: []string{"a1", "a2"}, PurgedRunning: 1})
	must.Eq(t, []string{
		"Unconfirmed: allocation a1", "Unconfirmed: allocation a2", "Unconfirmed: 3 more allocations", "Unconfirmed: 1 allocation of purged jobs",
	}, u.Lines())
	must.Eq(t, 5, u.Reported())
	must.Eq(t, "d1", u.Drain())
	for range 30 {
		u.later = append(u.later, lostAlloc("b", "service", 30, time.Time{}))
	}
	must.Eq(t, "Unconfirmed: 13 more allocations", u.Lines()[22])

	u = UnconfirmedIn(&wire.Drain{ID: "d1", Unconfirmed: 4, UnconfirmedAllocs: []string{"a1"}, Unlisted: &wire.UnlistedAllocs{Count: 3, Allocs: []string{"b1", "b2"}}})
	must.Eq(t, []string{
		"Unconfirmed: allocation b1, which the client may run and the servers do not list",
		"Unconfirmed: allocation b2, which the client may run and the servers do not list",
		"Unconfirmed: 1 more allocation that the servers do not list", "Unconfirmed: allocation a1",
	}, u.Lines())

	none := UnconfirmedIn(&wire.Drain{ID: "d1", Outcome: "unconfirmed", PurgedRunning: 1, ConfirmedAt: wire.NewTime(began)})
	must.False(t, none.Any())
	must.SliceEmpty(t, none.Lines())
	must.Eq(t, "", none.Drain())
	must.False(t, UnconfirmedIn(nil).Any())
}

// The list shows what is unconfirmed with each outcome, and with -verbose who confirmed it and when.
func TestRecentTable(t *testing.T) {
	t.Parallel()
	drains := []*wire.Drain{
		{ID: "d1", Outcome: "complete"},
		{ID: "d2", Outcome: "unconfirmed", Unconfirmed: 3},
		{ID: "d3", Outcome: "unconfirmed", ConfirmedAt: wire.NewTime(began), ConfirmedBy: "ops"},
		{ID: "d4", Outcome: "unconfirmed", ConfirmedAt: wire.NewTime(began)},
		{ID: "d5", Outcome: "deadline reached", StillStopping: 2, Unconfirmed: 1, VolumesLeft: &wire.VolumeHolds{More: 1}},
		{ID: "d6", Outcome: "node gone", Unconfirmed: 1},
		{ID: "d8", Outcome: "unconfirmed", Unconfirmed: 1, ConfirmedByOther: &wire.OtherConfirmation{Drain: "0f1e2d3c-aaaa", By: "ops", At: wire.NewTime(began), Allocs: 2}},
		{ID: "d9", Outcome: "unconfirmed", ConfirmedAt: wire.NewTime(began), ConfirmedByOther: &wire.OtherConfirmation{Drain: "0f1e2d3c-aaaa", At: wire.NewTime(began), Allocs: 3}},
		{ID: "d7", Outcome: "complete", DataNotCopied: &wire.DataNotCopied{Count: 1, Allocs: []string{"a1"}}},
	}
	at := wire.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)) // the output is the same in every zone
	for _, d := range drains {
		d.NodeID, d.NodeName, d.EndedAt, d.Strategy = "n1", "first", at, &wire.DrainStrategy{StartedAt: at}
		if !d.ConfirmedAt.IsZero() {
			d.ConfirmedAt = at
		}
		if d.ConfirmedByOther != nil {
			d.ConfirmedByOther.At = at
		}
	}
	clitest.Golden(t, "recent.golden", recentTable(drains, false).String()+"\n"+recentTable(drains, true).String())
}

// The event of a drain's end has the outcome and the counts of the record, in the words of the commands. Bug: the
// message was "Node drain complete" for each of them.
func TestOutcomeOfTheEvent(t *testing.T) {
	t.Parallel()
	two := &cluster.UnconfirmedAllocs{Count: 2, Allocs: []cluster.AllocID{"a1", "a2"}}
	one := &cluster.DataNotCopied{Count: 1, Allocs: []cluster.AllocID{"a1"}}
	for _, test := range []struct {
		record cluster.Drain
		want   string
	}{
		{cluster.Drain{Outcome: cluster.OutcomeComplete}, ""},
		{cluster.Drain{Outcome: cluster.OutcomeComplete, DataNotCopied: one}, "complete; data of 1 allocation not copied"},
		{cluster.Drain{Outcome: cluster.OutcomeComplete, VolumesLeft: &cluster.VolumeHolds{More: 1}}, "complete; 1 volume left on the node"},
		{cluster.Drain{Outcome: cluster.OutcomeComplete, StillStopping: 2, Unconfirmed: two}, // -drain-completion marked
			"complete (all were marked, not all had stopped); 2 still stopping; 2 unconfirmed allocations"},
		{cluster.Drain{Outcome: cluster.OutcomeComplete, Unconfirmed: two}, "complete (all were marked, not all had stopped); 2 unconfirmed allocations"},
		{cluster.Drain{Outcome: cluster.OutcomeUnconfirmed, Unconfirmed: two}, "unconfirmed; 2 unconfirmed allocations"},
		{cluster.Drain{Outcome: cluster.OutcomeUnconfirmed, Unconfirmed: &cluster.UnconfirmedAllocs{Count: 1}, DataNotCopied: one},
			"unconfirmed; 1 unconfirmed allocation; data of 1 allocation not copied"},
		{cluster.Drain{Outcome: cluster.OutcomeDeadlineReached}, "deadline reached"},
		{cluster.Drain{Outcome: cluster.OutcomeDeadlineReached, StillStopping: 2, Unconfirmed: two}, "deadline reached; 2 still stopping; 2 unconfirmed allocations"},
		{cluster.Drain{Outcome: cluster.OutcomeForced}, "forced"},
		{cluster.Drain{Outcome: cluster.OutcomeForced, Unconfirmed: two, VolumesLeft: &cluster.VolumeHolds{Volumes: []cluster.VolumeHold{{}}, More: 2}},
			"forced; 2 unconfirmed allocations; 3 volumes left on the node"},
		{cluster.Drain{Outcome: cluster.OutcomeCancelled}, ""},
		{cluster.Drain{Outcome: cluster.OutcomeCancelled, StillStopping: 1, Unconfirmed: &cluster.UnconfirmedAllocs{Count: 1}}, "cancelled; 1 still stopping; 1 unconfirmed allocation"},
	} {
		want := "Node drain complete"
		if test.want != "" {
			want += ", outcome: " + test.want
			must.Eq(t, test.want, OutcomeCell(wire.NewDrain(&test.record, nil)))
		}
		n := &cluster.Node{Events: []cluster.NodeEvent{{Message: "Node registered"}, {Message: "Node drain complete"}}}
		lifecycle.NameOutcome(n, &test.record)
		must.Eq(t, want, n.Events[1].Message)
		must.Eq(t, "Node registered", n.Events[0].Message)
	}
	must.Eq(t, "complete (all were marked, not all had stopped); confirmed later", OutcomeCell(&wire.Drain{Outcome: "complete", ConfirmedAt: wire.NewTime(began)}))
}
