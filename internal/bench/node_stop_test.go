package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// figureNodeStop: a task gets its signal soon after the servers' write, and the servers have its end soon
// after its exit. One allocation after the other is stopped.
func figureNodeStop(b *testing.B) {
	tasks := 20
	if measure.SizeOf(b) == measure.Full {
		tasks = 100
	}
	const bound = 50 * time.Millisecond
	n := newTestNode(b)
	var signals, reports, medianSignals, medianReports []time.Duration
	for part := range measure.PairsOf(b) {
		var toSignal, toReport []time.Duration
		for _, s := range n.stopOneByOne(n.startEach(part, tasks, 0)) {
			toSignal = append(toSignal, s.signaled.Sub(s.stopped))
			toReport = append(toReport, s.ended.Sub(s.exited))
		}
		signals, reports = append(signals, percentile(toSignal, 99)), append(reports, percentile(toReport, 99))
		medianSignals, medianReports = append(medianSignals, percentile(toSignal, 50)), append(medianReports, percentile(toReport, 50))
	}
	reportTimes(b, "signal-p99", signals, bound)
	reportTimes(b, "report-p99", reports, bound)
	measure.Count(b, percentile(medianSignals, 50).Seconds()*1000, "signal-p50-ms")
	measure.Count(b, percentile(medianReports, 50).Seconds()*1000, "report-p50-ms")
	measure.Count(b, tasks*len(signals), "samples")
	n.reportLoad()
}

type taskStop struct {
	stopped  time.Time // the stop is applied
	signaled time.Time // the task has its signal
	exited   time.Time // the task is about to exit
	ended    time.Time // the report of the end is applied
}

// startEach starts tasks of raw_exec, each in a job of its own.
func (n *testNode) startEach(part, tasks int, own time.Duration) []*cluster.Allocation {
	for i := range tasks {
		n.register(n.processes(cluster.JobID(fmt.Sprintf("job-%d-%d", part, i)), 1, own))
	}
	return n.running(tasks)
}

// stopOneByOne stops one task after the other.
func (n *testNode) stopOneByOne(all []*cluster.Allocation) (stops []taskStop) {
	for i, a := range all {
		_, err := n.writer.StopJob(context.Background(), a.Job.Key(), cluster.JobStop{})
		must.NoError(n.b, err)
		n.awaitEnds(all[i : i+1])
		var s taskStop
		s.stopped, s.ended = n.timesOf(a.ID)
		s.signaled, s.exited = n.noted(a.ID)
		stops = append(stops, s)
	}
	return stops
}
