package timeline_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline"
)

// shown is an applied entry and its time.
type shown struct {
	at    time.Duration
	entry shims.Applied
}

// medium is a run with 50 nodes and 20 allocations on each. 5 nodes are drained, one allocation
// after the other.
func medium(t testing.TB) []shown {
	h := newHistory(t)
	var entries []shown
	h.observers = append(h.observers, func(at time.Duration, a shims.Applied) { entries = append(entries, shown{at, a}) })
	var nodes []cluster.NodeID
	for i := range 50 {
		nodes = append(nodes, cluster.NodeID(fmt.Sprintf("n%d", i)))
	}
	h.node(nodes...)
	var groups []cluster.GroupKey
	for j := range 50 {
		groups = append(groups, h.job(cluster.JobID(fmt.Sprintf("web%d", j)), cluster.JobService, 20, 1+j%3))
		var on []cluster.NodeID
		for i := range 20 {
			on = append(on, nodes[(j+i)%50])
		}
		h.place(groups[j], on...)
	}
	h.at = time.Second
	h.drain(&cluster.DrainSpec{Deadline: time.Hour}, nodes[20:25]...)
	for _, n := range nodes[20:25] {
		for i := range 20 { // the job whose i-th allocation is on the node
			h.at += 200 * time.Millisecond
			var j int
			fmt.Sscanf(string(n), "n%d", &j)
			g := groups[(j-i+50)%50]
			id := cluster.AllocID(fmt.Sprintf("%s/%d", g.Name, i))
			h.mark(g, cluster.MarkPaced, id)
			h.plan(g, []cluster.AllocID{id}, h.alloc(g, id+"b", nodes[(j+30)%50], i, id))
			h.at += time.Second
			h.gone(id)
			h.at += 10 * time.Second
			h.healthy(id + "b")
		}
		h.finish(n)
	}
	return entries
}

func recorded(entries []shown) *timeline.Recorder {
	r := timeline.New(timeline.Options{Name: "medium", Seed: 1, Epoch: epoch})
	r.Leader(0, 0)
	for _, e := range entries {
		r.Applied(e.at, e.entry)
	}
	return r
}

// The run of the benchmarks ends as expected, and its pictures are valid.
func TestMedium(t *testing.T) {
	t.Parallel()
	r := recorded(medium(t))
	must.Eq(t, map[cluster.NodeID]cluster.Outcome{
		"n20": "complete", "n21": "complete", "n22": "complete", "n23": "complete", "n24": "complete",
	}, r.Outcomes())
	must.MapLen(t, 100, r.Phases())
	must.MapLen(t, 24, r.Standings())
	checkSVG(t, r)
	checkText(t, r, timeline.TextOptions{Columns: 120})
}

func BenchmarkSVG(b *testing.B) {
	r := recorded(medium(b))
	for b.Loop() {
		must.NoError(b, r.SVG(io.Discard))
	}
}

func BenchmarkText(b *testing.B) {
	r := recorded(medium(b))
	for b.Loop() {
		must.NoError(b, r.Text(io.Discard, timeline.TextOptions{}))
	}
}

// BenchmarkApplied measures the cost of recording an entry.
func BenchmarkApplied(b *testing.B) {
	entries := medium(b)
	for b.Loop() {
		recorded(entries)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(entries)), "ns/entry")
}

func BenchmarkTrace(b *testing.B) {
	entries := medium(b)
	for b.Loop() {
		trace := timeline.NewTrace(io.Discard)
		for i, e := range entries {
			trace.Applied(timeline.Position{Step: uint64(i), At: e.at}, e.entry)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(entries)), "ns/entry")
}
