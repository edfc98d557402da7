package main

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// figureMonth: the memory of a server does not grow in a month of drains, with the default ages of the
// collection. In virtual time a node drains each hour and comes back, thousands of batch jobs run, and
// services come and go. The figure compares the maximum of the last week with that of the second week.
// In the first week the records of drains are still few.
func figureMonth(b *testing.B) {
	before := heapInUse()
	m := newMonth(b)
	var days []dayEnd
	for day := range 30 {
		for minute := range 24 * 60 {
			m.operate(day*24*60 + minute)
			m.runUntil(epoch.Add(time.Duration(day*24*60+minute+1) * time.Minute))
		}
		days = append(days, dayEnd{heapInUse() - before, m.rows()})
	}
	second, last := maxima(days[7:14]), maxima(days[23:30])
	share := float64(last.held) / float64(second.held)
	measure.Ratio{Median: share, Low: share, High: share}.ReportAs(b, "held-"+measure.UnitRatio)
	measure.Count(b, last.held, "bytes")
	for table, n := range last.rows {
		measure.Count(b, n, tablesOfMonth()[table])
	}
	measure.Count(b, m.index, "entries")
	measure.Count(b, m.drains, "drains")
	measure.Count(b, m.jobs, "registered-jobs")
	measure.Count(b, m.allocs, "placed-allocations")
	must.Eq(b, 30*24, m.drains)
	must.Less(b, m.allocs/20, last.rows[2])
	runtime.KeepAlive(m)
}

// dayEnd is what a server holds at the end of a day: its memory in bytes, and its rows.
type dayEnd struct {
	held int64
	rows [5]int // of tablesOfMonth
}

func tablesOfMonth() [5]string {
	return [5]string{"nodes", "jobs", "allocations", "evaluations", "records"}
}

// maxima returns the maxima of some days.
func maxima(days []dayEnd) (most dayEnd) {
	for _, d := range days {
		most.held = max(most.held, d.held)
		for table, n := range d.rows {
			most.rows[table] = max(most.rows[table], n)
		}
	}
	return most
}

// The cluster of the month. Three quarters of its room are used.
const (
	monthNodes, roomOfNode      = 24, 10
	monthServices, sizeOfGroups = 15, 8
	// drainDeadline is shorter than the longest batch work.
	drainDeadline = 30 * time.Minute
	longestBatch  = 50 * time.Minute
)

// month is a server in virtual time with the operations of a month.
type month struct {
	*virtualServer
	nodes    []cluster.NodeID
	services []cluster.JobKey
	// daily is the sysbatch job of the day.
	daily cluster.JobKey
	// jobs and drains count what was made, registered the nodes.
	jobs, drains, registered int
}

func newMonth(b *testing.B) *month {
	m := &month{virtualServer: newVirtualServer(b, func(_ *cluster.Allocation, rng *rand.Rand) time.Duration {
		return time.Minute + time.Duration(rng.Int64N(int64(longestBatch)))
	})}
	for range monthNodes {
		m.nodes = append(m.nodes, m.registerNode())
	}
	m.register(cluster.JobSystem, 1)
	for range monthServices {
		m.services = append(m.services, m.register(cluster.JobService, sizeOfGroups))
	}
	m.daily = m.register(cluster.JobSysBatch, 1)
	return m
}

func (m *month) operate(minute int) {
	hour := minute / 60
	node := &m.nodes[hour%len(m.nodes)]
	if minute%2 == 0 {
		m.register(cluster.JobBatch, 4)
	}
	switch minute % 60 {
	case 0:
		m.drain(*node)
	case 45:
		for n := range m.state().DrainView().DrainingNodes() {
			m.tb.Fatalf("minute %d: node %s still drains", minute, n.ID)
		}
		if hour%24 == 23 { // another machine replaces the node
			m.propose(&shims.NodeDeregister{At: m.now, Nodes: []cluster.NodeID{*node}})
			*node = m.registerNode()
			break
		}
		m.propose(&shims.NodeUpdateEligibility{At: m.now, Node: *node, Eligibility: cluster.NodeEligible})
	case 50: // a service changes its count, and another job takes the place of a second service
		m.scale(m.services[hour%monthServices], sizeOfGroups+hour/monthServices%2)
		if old := &m.services[(hour+1)%monthServices]; hour%6 == 0 {
			m.stop(*old)
			*old = m.register(cluster.JobService, sizeOfGroups)
		}
	case 55:
		if hour%24 == 12 {
			m.stop(m.daily)
			m.daily = m.register(cluster.JobSysBatch, 1)
		}
	}
}

func (m *month) registerNode() cluster.NodeID {
	id := nodeID(m.registered)
	m.registered++
	m.propose(&shims.NodeRegister{At: m.now, Node: &cluster.Node{
		ID: id, Name: fmt.Sprintf("node-%d", m.registered), Status: cluster.NodeReady, SchedulingEligibility: cluster.NodeEligible,
		Resources: cluster.Resources{CPU: roomOfNode, MemoryMB: roomOfNode, DiskMB: 1 << 40},
	}})
	return id
}

func (m *month) drain(node cluster.NodeID) {
	m.drains++
	m.propose(&shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{
		Node: node, Spec: &cluster.DrainSpec{Deadline: drainDeadline}, Drain: cluster.DrainID(fmt.Sprintf("drain-%d", m.drains)), At: m.now,
	}})
}

func (m *month) register(kind cluster.JobType, count int) cluster.JobKey {
	job := clusterPlan{job: kind, jobSize: count, maxParallel: 2}.newJob(m.jobs)
	m.jobs++
	m.submit(job)
	return job.Key()
}

func (m *month) submit(job *cluster.Job) {
	m.propose(&shims.JobRegister{Job: job, Evals: []*cluster.Evaluation{
		scheduler.JobEval(job, cluster.TriggerJobRegister, m.now, m.newEvalID()),
	}})
}

func (m *month) scale(key cluster.JobKey, count int) {
	job := m.state().Job(key).Copy()
	job.TaskGroups[0].Count = count
	m.submit(job)
}

func (m *month) stop(key cluster.JobKey) {
	m.propose(&shims.JobDeregister{Job: key, Evals: []*cluster.Evaluation{
		scheduler.JobEval(m.state().Job(key), cluster.TriggerJobDeregister, m.now, m.newEvalID()),
	}})
}

// rows counts the rows of tablesOfMonth.
func (m *month) rows() [5]int {
	s := m.state()
	return [5]int{length(s.Nodes()), length(s.Jobs()), length(s.Allocs()), length(s.Evals()), length(s.Drains())}
}

func length[T any](rows iter.Seq[T]) (n int) {
	for range rows {
		n++
	}
	return n
}
