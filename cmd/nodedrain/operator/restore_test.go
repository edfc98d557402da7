package operator

import (
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// A file of another cluster is named as such. A restore of it once gave no hint.
func TestOtherCluster(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ file, servers, want string }{
		{"a", "b", "the file is of cluster a, and the servers are of cluster b"},
		{"a", "a", ""},
		{"", "b", ""}, // of a server without a data directory
		{"a", "", ""}, // of an older build
	} {
		must.Eq(t, test.want, otherCluster(test.file, test.servers))
		must.Eq(t, test.want != "", strings.Contains(restoreWarning(test.want != ""), "ignore the restored state"))
	}
}

// The deadline of a paused drain does not come.
func TestSavedLimit(t *testing.T) {
	t.Parallel()
	deadline := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	before, after := deadline.Add(-time.Hour), deadline.Add(time.Hour)
	limited := cluster.DrainStrategy{DrainSpec: cluster.DrainSpec{Deadline: time.Hour}, ForceDeadline: deadline}
	pause := &cluster.DrainPause{At: before}
	const paused = "paused since 2026-01-02T02:04:00Z: a restored drain stays paused"
	for _, test := range []struct {
		drain cluster.Drain
		all   *cluster.DrainPause
		now   time.Time
		want  string
	}{
		{cluster.Drain{}, nil, after, "drains without a deadline"},
		{cluster.Drain{Strategy: limited}, nil, before, "drains until 2026-01-02T03:04:00Z"},
		{cluster.Drain{Strategy: limited}, nil, after, "its deadline has passed: a restored drain stops the rest at once"},
		{cluster.Drain{Strategy: limited, Paused: pause}, nil, after, paused},
		{cluster.Drain{Strategy: limited}, pause, after, paused},
		{cluster.Drain{Paused: pause}, nil, after, paused},
	} {
		must.Eq(t, test.want, savedLimit(&test.drain, test.all, test.now))
	}
}
