package statestore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/journal"
)

// size returns the bytes of a row in a snapshot.
func size(row any) int {
	h := &codec.MsgpackHandle{WriteExt: true}
	h.Canonical = true
	var b []byte
	check(codec.NewEncoderBytes(&b, h).Encode(row))
	return len(b)
}

var journalBegin = time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.UTC)

// fullJournal is the journal of an ended drain that had that many events and groups, with the longest names.
func fullJournal(event journal.Event, count int) *journal.Journal {
	long := strings.Repeat("é", 2000)
	j := &journal.Journal{Drain: "00000000-0000-0000-0000-000000000000", Plan: &cluster.DrainPlan{
		Sentence: strings.Repeat("x", cluster.MaxPlanSentence), Index: 1 << 60, Took: 1 << 60, Least: 1 << 60, Most: 1 << 60,
	}}
	for i := range count {
		e := event
		e.At, e.Index = journalBegin.Add(time.Duration(i)*time.Second), 1<<60+uint64(i)
		if e.Kind == journal.Refused {
			e.Why = fmt.Sprint(i, long)
		}
		j.Add(e)
	}
	var groups []journal.Group
	for i := range count {
		k := cluster.GroupKey{Job: cluster.JobKey{Namespace: cluster.Namespace(long[:10]), ID: cluster.JobID(fmt.Sprint(i, long[:100]))}, Name: long[:20*(1+i%10)]}
		g := journal.NewGroup(k, 1<<30, 1<<30, journalBegin)
		g.Count(1, 1<<30, journalBegin)
		groups = append(groups, g)
	}
	j.End(groups, journalBegin.Add(time.Hour), 1<<60)
	return j
}

// fullEvents are the events of full journals, by name.
func fullEvents() map[string]journal.Event {
	long := strings.Repeat("é", 2000)
	return map[string]journal.Event{
		"short":    {Kind: journal.Changed, Strategy: &cluster.DrainSpec{}},
		"long":     {Kind: journal.Changed, By: long, Why: long, Strategy: &cluster.DrainSpec{Deadline: time.Hour, IgnoreSystemJobs: true}, Allocs: 1 << 40},
		"refusals": {Kind: journal.Refused, By: long},
	}
}

// A journal with the longest texts, the most events and the most groups is within its bounds. The first events
// and the latest stay.
func TestJournal_bounds(t *testing.T) {
	t.Parallel()
	for name, event := range fullEvents() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const count = 300
			j := fullJournal(event, count)
			must.LessEq(t, journal.MaxBytes, size(j))
			must.LessEq(t, journal.MaxEvents, len(j.Events))
			must.LessEq(t, journal.MaxGroups, len(j.Groups))
			must.Eq(t, count, len(j.Events)+j.EventsOmitted)
			must.Eq(t, count, len(j.Groups)+j.GroupsOmitted)
			must.Eq(t, journalBegin, j.Events[0].At)
			must.Eq(t, journalBegin.Add((count-1)*time.Second), j.Events[len(j.Events)-1].At)
			must.Greater(t, 10, len(j.Events))
		})
	}
}
