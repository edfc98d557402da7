package lifecycle_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
)

// draining is a node whose drain began at noon, with index 7.
func draining(t *testing.T, deadline time.Duration) *cluster.Node {
	t.Helper()
	return started(t, cluster.DrainUpdate{Drain: "d1", Spec: &cluster.DrainSpec{Deadline: deadline}, At: noon}, 7)
}

// A pause changes the pause, the revision and what every change of a node changes.
func TestPauseDrain(t *testing.T) {
	t.Parallel()
	before := draining(t, time.Hour)
	at := noon.Add(time.Minute)
	after := lifecycle.PauseDrain(before, nil, cluster.DrainPauseUpdate{Node: "n1", Pause: true, At: at, By: "ann"}, 9)
	must.Eq(t, draining(t, time.Hour), before)

	want := draining(t, time.Hour)
	want.Drain.Paused, want.Drain.Revision = &cluster.DrainPause{At: at.UTC(), By: "ann"}, 9
	want.ModifyIndex, want.StatusUpdatedAt = 9, at.Unix()
	want.Events = append(want.Events, cluster.NodeEvent{Message: cluster.EventDrainPaused, Subsystem: cluster.SubsystemDrain, Timestamp: at.UTC(), CreateIndex: 9})
	must.Eq(t, want, after)
}

// The time of a pause that follows a pause of all without a break is that of the pause of all, or of the drain if that
// began later.
func TestPauseDrain_underAPauseOfAll(t *testing.T) {
	t.Parallel()
	pause := cluster.DrainPauseUpdate{Pause: true, At: noon.Add(20 * time.Minute)}
	for all, want := range map[time.Duration]time.Duration{10 * time.Minute: 10 * time.Minute, -time.Hour: 0} {
		after := lifecycle.PauseDrain(draining(t, 0), &cluster.DrainPause{At: noon.Add(all)}, pause, 9)
		must.Eq(t, noon.Add(want).UTC(), after.Drain.Paused.At.UTC())
	}
	// The pause of all holds the drain although its deadline has passed since.
	all := &cluster.DrainPause{At: noon}
	must.Eq(t, noon.UTC(), lifecycle.PauseDrain(draining(t, time.Minute), all, pause, 9).Drain.Paused.At.UTC())
}

func TestPauseDrain_changesNothing(t *testing.T) {
	t.Parallel()
	pause := cluster.DrainPauseUpdate{Pause: true, At: noon.Add(time.Minute)}
	paused := lifecycle.PauseDrain(draining(t, 0), nil, pause, 9)
	late := &cluster.DrainPause{At: noon.Add(30 * time.Second)}
	for name, c := range map[string]struct {
		node *cluster.Node
		all  *cluster.DrainPause
	}{
		"no node":                           {nil, nil},
		"no drain":                          {node(), nil},
		"paused already":                    {paused, nil},
		"forced":                            {draining(t, -1), nil},
		"forced under a pause of all":       {draining(t, -1), late},
		"the deadline has passed":           {draining(t, time.Minute), nil},
		"it passed before the pause of all": {draining(t, time.Second), late},
	} {
		must.Nil(t, lifecycle.PauseDrain(c.node, c.all, pause, 10), must.Sprint(name))
	}
}

// A resume ends the pause and moves the revision and the deadline.
func TestResumeDrain(t *testing.T) {
	t.Parallel()
	at, since := noon.Add(10*time.Minute), noon.Add(4*time.Minute)
	before := lifecycle.PauseDrain(draining(t, time.Hour), nil, cluster.DrainPauseUpdate{Pause: true, At: since}, 9)
	unchanged := before.Copy()
	after := lifecycle.ResumeDrain(before, before.Drain.PausedSince(nil), at, 11)
	must.Eq(t, unchanged, before)

	want := before.Copy()
	want.Drain = before.Drain.Copy()
	want.Drain.Paused, want.Drain.Revision, want.Drain.Strategy.ForceDeadline = nil, 11, noon.Add(66*time.Minute).UTC()
	want.ModifyIndex, want.StatusUpdatedAt = 11, at.Unix()
	want.Events = append(want.Events, cluster.NodeEvent{Message: cluster.EventDrainResumed, Subsystem: cluster.SubsystemDrain, Timestamp: at.UTC(), CreateIndex: 11})
	must.Eq(t, want, after)
}

// A deadline moves by the paused time since the strategy was set, and never back.
func TestResumeDrain_deadline(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deadline           time.Duration
		since, at, expects time.Duration // from noon on
	}{
		"paused after the request": {time.Hour, time.Minute, 3 * time.Minute, 62 * time.Minute},
		"requested in the pause":   {time.Hour, -time.Hour, 3 * time.Minute, 63 * time.Minute},
		"an older clock":           {time.Hour, 3 * time.Minute, time.Minute, time.Hour},
	} {
		after := lifecycle.ResumeDrain(draining(t, c.deadline), noon.Add(c.since), noon.Add(c.at), 9)
		must.Eq(t, noon.Add(c.expects).UTC(), after.Drain.Strategy.ForceDeadline, must.Sprint(name))
	}
	for _, without := range []time.Duration{0, -1} {
		must.True(t, lifecycle.ResumeDrain(draining(t, without), noon, noon.Add(time.Hour), 9).Drain.Strategy.ForceDeadline.IsZero())
	}
}

// A drain that is forced in its pause goes on. Another strategy leaves it paused.
func TestUpdateDrain_inAPause(t *testing.T) {
	t.Parallel()
	before := lifecycle.PauseDrain(draining(t, time.Hour), nil, cluster.DrainPauseUpdate{Pause: true, At: noon}, 9)
	for deadline, paused := range map[time.Duration]bool{-1: false, 0: true, time.Minute: true} {
		after := lifecycle.UpdateDrain(before, cluster.DrainUpdate{Spec: &cluster.DrainSpec{Deadline: deadline}, At: noon}, 10)
		must.Eq(t, paused, after.Drain.Paused != nil, must.Sprint(deadline))
	}
	must.NotNil(t, before.Drain.Paused)
}
