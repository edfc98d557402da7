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

// size returns the bytes of a journal in a snapshot.
func size(t *testing.T, j *journal.Journal) int {
	h := &codec.MsgpackHandle{WriteExt: true}
	h.Canonical = true
	var b []byte
	must.NoError(t, codec.NewEncoderBytes(&b, h).Encode(j))
	return len(b)
}

// A journal with the longest texts, the most events and the most groups is within its bounds. The first events
// and the latest stay.
func TestJournal_bounds(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.UTC)
	long := strings.Repeat("é", 2000)
	for name, event := range map[string]journal.Event{
		"short":    {Kind: journal.Changed, Strategy: &cluster.DrainSpec{}},
		"long":     {Kind: journal.Changed, By: long, Why: long, Strategy: &cluster.DrainSpec{Deadline: time.Hour, IgnoreSystemJobs: true}, Allocs: 1 << 40},
		"refusals": {Kind: journal.Refused, By: long},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := &journal.Journal{Drain: "00000000-0000-0000-0000-000000000000", Plan: &cluster.DrainPlan{
				Sentence: long[:cluster.MaxPlanSentence], Index: 1 << 60, Took: 1 << 60, Least: 1 << 60, Most: 1 << 60,
			}}
			const count = 300
			for i := range count {
				e := event
				e.At, e.Index = begin.Add(time.Duration(i)*time.Second), 1<<60+uint64(i)
				if e.Kind == journal.Refused {
					e.Why = fmt.Sprint(i, long)
				}
				j.Add(e)
			}
			var groups []journal.Group
			for i := range count {
				k := cluster.GroupKey{Job: cluster.JobKey{Namespace: cluster.Namespace(long[:10]), ID: cluster.JobID(fmt.Sprint(i, long[:100]))}, Name: long[:20*(1+i%10)]}
				g := journal.NewGroup(k, 1<<30, 1<<30, begin)
				g.Count(1, 1<<30, begin)
				groups = append(groups, g)
			}
			j.End(groups, begin.Add(time.Hour), 1<<60)
			must.LessEq(t, journal.MaxBytes, size(t, j))
			must.LessEq(t, journal.MaxEvents, len(j.Events))
			must.LessEq(t, journal.MaxGroups, len(j.Groups))
			must.Eq(t, count, len(j.Events)+j.EventsOmitted)
			must.Eq(t, count, len(j.Groups)+j.GroupsOmitted)
			must.Eq(t, begin, j.Events[0].At)
			must.Eq(t, begin.Add((count-1)*time.Second), j.Events[len(j.Events)-1].At)
			must.Greater(t, 10, len(j.Events))
		})
	}
}
