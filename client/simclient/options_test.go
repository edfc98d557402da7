package simclient_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

func TestNew_options(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		edit  func(*simclient.Options)
		wrong string // empty if it works
	}{
		{func(*simclient.Options) {}, ""},
		{func(o *simclient.Options) { o.Snapshot = nil }, "Options.Snapshot is required"},
		{func(o *simclient.Options) { o.Applier = nil }, "Options.Applier is required"},
		{func(o *simclient.Options) { o.MinStart = -1 }, "MinStart is -1ns and MaxStart is 3s"},
		{func(o *simclient.Options) { o.MaxStart = -1 }, "MaxStart is -1ns"},
		{func(o *simclient.Options) { o.MinStart, o.MaxStart = 2, 1 }, "MinStart is 2ns and MaxStart is 1ns"},
		{func(o *simclient.Options) { o.MinStart = time.Hour }, ""},
		{func(o *simclient.Options) { o.MaxStart = 1 }, ""},
		{func(o *simclient.Options) { o.CopyTime = -1 }, "CopyTime is -1ns"},
		{func(o *simclient.Options) { o.RunTime = -1 }, "RunTime is -1ns"},
		{func(o *simclient.Options) { o.MinHealthyTime = -1 }, "MinHealthyTime is -1ns"},
	} {
		o := simclient.Options{
			Snapshot: func() simclient.State { return nil },
			Applier:  applierFunc(func([]cluster.AllocReport, func(bool)) bool { return false }),
		}
		test.edit(&o)
		f, err := simclient.New(o)
		if test.wrong == "" {
			must.NoError(t, err)
			must.NotNil(t, f)
			continue
		}
		must.ErrorContains(t, err, test.wrong)
	}
}

// Draws keep to their bounds and reach all of them.
func TestOptions_Draw(t *testing.T) {
	t.Parallel()
	o := simclient.Options{MinStart: 3, MaxStart: 5, CopyTime: 7, RunTime: 11}
	j := service()
	j.TaskGroups[0].Tasks[0].KillTimeout = 2
	a := &cluster.Allocation{Job: j, TaskGroup: "g"}
	rng := rand.New(rand.NewPCG(1, 2))
	starts, stops := map[time.Duration]bool{}, map[time.Duration]bool{}
	for range 200 {
		b := o.Draw(a, rng)
		starts[b.Start], stops[b.Stop] = true, true
		must.Eq(t, simclient.Behaviour{Start: b.Start, Stop: b.Stop, Copy: 7, Run: 11}, b)
	}
	must.Eq(t, map[time.Duration]bool{3: true, 4: true, 5: true}, starts)
	must.Eq(t, map[time.Duration]bool{1: true, 2: true}, stops)

	b := simclient.Options{}.Draw(a, rng)
	must.Between(t, simclient.DefaultMinStart, b.Start, simclient.DefaultMaxStart)
	must.Eq(t, simclient.DefaultCopyTime, b.Copy)
	must.Eq(t, simclient.DefaultRunTime, b.Run)

	// A client waits for a shutdown delay in full.
	j.TaskGroups[0].ShutdownDelay = 9
	for range 20 {
		must.Between(t, 9, o.Draw(a, rng).Stop, 11)
	}

	// A group may take as long to stop as can be counted.
	j.TaskGroups[0].Tasks[0].KillTimeout = simclient.Never
	must.Between(t, 0, o.Draw(a, rng).Stop, simclient.Never)
}
