package shims_test

import (
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// A request with a plan needs the version of the journals. Without one it is what it was, so that a mixed
// cluster drains as before.
func TestNodeUpdateDrain_plan(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	update := cluster.DrainUpdate{Node: "n", Drain: "d", Spec: &cluster.DrainSpec{}, At: at}
	version := func(u cluster.DrainUpdate) cluster.Version {
		data, err := shims.Encode(&shims.NodeUpdateDrain{DrainUpdate: u})
		must.NoError(t, err)
		return cluster.Version(data[1])
	}
	must.Eq(t, cluster.MinVersion, version(update))
	update.Plan = &cluster.DrainPlan{Sentence: strings.Repeat("x", cluster.MaxPlanSentence)}
	must.Eq(t, cluster.VersionOfJournals, version(update))
	update.Plan.Sentence += "x"
	_, err := shims.Encode(&shims.NodeUpdateDrain{DrainUpdate: update})
	must.ErrorContains(t, err, "at most 160 bytes")
}
