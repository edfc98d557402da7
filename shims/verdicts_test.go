package shims_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// An outage makes both allocations of a group unhealthy, and their node drains. Below version 8 every
// server accepts a free mark, as an older one does. From version 8 on no server accepts one before the
// healthy deadline, by the times of the entries.
func TestFSM_FreeMarksAfterAnOutage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		version cluster.Version
		after   time.Duration
		accepts bool
	}{
		{cluster.VersionOfConfirmation - 1, 0, true},
		{cluster.VersionOfConfirmation, 0, false},
		{cluster.VersionOfConfirmation, cluster.DefaultHealthyDeadline - 1, false},
		{cluster.VersionOfConfirmation, cluster.DefaultHealthyDeadline, true},
	} {
		h := twoOnOneNode(t)
		outage := healthy("n1", "a0", "a1")
		for i := range outage.Reports {
			outage.Reports[i].Healthy, outage.Reports[i].HealthyAt = new(false), noon.Add(-time.Hour)
		}
		if test.version >= cluster.VersionOfConfirmation {
			outage.At = noon
		}
		h.apply(&shims.RaiseClusterVersion{Version: test.version}, outage, startDrain("n1", "d1", 0))
		marks := &shims.AllocUpdateDesiredTransition{Marks: rules.Marks{
			At: noon.Add(test.after), Evals: []*cluster.Evaluation{jobEval("e2")},
			Marks: []rules.Mark{{Alloc: "a0", Group: h.state().Alloc("a0").GroupKey(), Node: "n1", Drain: "d1", Class: cluster.MarkFree}},
		}}
		applied := h.apply(marks).(shims.MarksApplied)
		must.Eq(t, test.accepts, len(applied.Accepted) == 1, must.Sprintf("%+v: %v", test, applied.Refused))
	}
}

// A server of an older cluster version would stop at an entry of reports with a time.
func TestAllocClientUpdate_needsItsVersion(t *testing.T) {
	t.Parallel()
	reports := []cluster.AllocReport{{Alloc: "a"}}
	for version, m := range map[cluster.Version]*shims.AllocClientUpdate{
		cluster.MinVersion:            {Reports: reports},
		cluster.VersionOfConfirmation: {At: noon, Reports: reports},
	} {
		must.Eq(t, []byte{byte(m.Type()), byte(version)}, encode(t, m)[:2])
	}
}
