package statestore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// BenchmarkKnee measures the cost of a row in transactions of different sizes, to find where
// go-memdb's tracking of changes for watchers overflows: beyond 8,192 changed tree nodes of one
// index it compares the whole tree before and after. The bound on the ids of a raft entry must be
// below this size. Read the column min-ns/row, which is of the fastest round: other load slows the
// rest.
//
//	go test ./statestore -run '^$' -bench Knee -benchtime 20x
func BenchmarkKnee(b *testing.B) {
	sizes := []int{250, 500, 1000, 1500, 2000, 2250, 2500, 2750, 3000, 4000, 8000}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, rows := range sizes {
		b.Run(fmt.Sprintf("write=marks/rows=%d", rows), func(b *testing.B) { benchmarkMarks(b, rows) })
	}
	for _, rows := range sizes {
		b.Run(fmt.Sprintf("write=reports/rows=%d", rows), func(b *testing.B) { benchmarkReports(b, rows) })
	}
}

func benchmarkMarks(b *testing.B, rows int) {
	c := newCluster(largeNodes, largeAllocs, rows)
	at := time.Unix(1_000_000, 0)
	rounds(b, rows, func(round int) (timed func()) {
		c.cancelAll(at)
		marks := c.drainAll(fmt.Sprint("drain", round), at)[:rows]
		return func() {
			c.write(func(t *statestore.Txn) { check(t.ApplyMarks(at, marks, nil)) })
		}
	})
}

func benchmarkReports(b *testing.B, rows int) {
	c := newCluster(largeNodes, largeAllocs, rows)
	rounds(b, rows, func(round int) (timed func()) {
		reports := make([]cluster.AllocReport, rows)
		for i, a := range c.allocs[:rows] {
			reports[i] = cluster.AllocReport{Alloc: a.ID, Node: a.NodeID, ClientStatus: cluster.ClientRunning, ClientDescription: fmt.Sprint(round)}
		}
		return func() { c.write(func(t *statestore.Txn) { t.UpdateAllocsFromClient(reports, time.Time{}) }) }
	})
}

// rounds measures each prepared round.
func rounds(b *testing.B, rows int, prepare func(round int) (timed func())) {
	b.ResetTimer()
	fastest := time.Duration(1<<63 - 1)
	for round := range b.N {
		b.StopTimer()
		timed := prepare(round)
		b.StartTimer()
		begun := time.Now()
		timed()
		fastest = min(fastest, time.Since(begun))
	}
	b.ReportMetric(float64(fastest.Nanoseconds())/float64(rows), "min-ns/row")
}
