package telemetry

import (
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

// namespace is the prefix of every name.
const namespace = "nodedrain"

// violationsTotal is in log lines, too.
const violationsTotal = "invariant_violations_total"

// The kinds of refused items.
const (
	markKind       = "mark"
	completionKind = "completion"
)

// series are the counters of events and the histograms of durations.
type series struct {
	violations, writes, refused, marks, surges, ended, requests, heartbeats, collected, processes, moves *prometheus.CounterVec
	firstMark, duration, lateness, step, request                                                         *prometheus.HistogramVec
}

// newSeries registers the series. Buckets are in seconds.
func newSeries(registry *prometheus.Registry) (s series, err error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
		err = errors.Join(err, registry.Register(c))
		return c
	}
	s.violations = counter(violationsTotal, "Guarantees of the drainer that an independent witness of the log found broken. Must stay 0.", "guarantee")
	s.writes = counter("raft_writes_total", "Raft writes that this server proposed, by type and outcome.", "type", "outcome")
	s.refused = counter("drain_items_refused_total", "Marks and completions that the FSM refused because the state had changed since the plan.", "kind")
	s.marks = counter("drain_marks_total", "Allocations that drains marked to leave, by class of mark. Every server counts all of them.", "class")
	s.surges = counter("drain_surge_requests_total", "Replacements that drains requested before they marked the allocation. Every server counts all of them.")
	s.ended = counter("drains_ended_total", "Drains that ended, by outcome. Every server counts all of them.", "outcome")
	s.requests = counter("http_requests_total", "HTTP requests answered, by method, route and status code.", "method", "route", "code")
	s.heartbeats = counter("heartbeats_missed_total", "Nodes that became down or disconnected because of a missed heartbeat. Every server counts all of them.", "status")
	s.collected = counter("collected_rows_total", "Ended rows that were deleted, by table. Every server counts all of them.", "table")

	s.moves = counter("data_moves_ended_total", "Moves of the data of ephemeral disks that ended, by outcome. Every server counts all of them.", "outcome")
	s.processes = counter("client_processes_refused_total", "Requests of a second client process of a node that this server, as the leader, refused.")

	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
		err = errors.Join(err, registry.Register(h))
		return h
	}
	ofDrains := []float64{1, 5, 15, 60, 300, 900, 1800, 3600, 2 * 3600, 4 * 3600, 8 * 3600, 24 * 3600}
	s.firstMark = histogram("drain_first_mark_seconds", "From the start of a drain to its first mark.", []float64{0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600})
	s.duration = histogram("drain_duration_seconds", "From the start of a drain to its end, by outcome.", ofDrains, "outcome")
	s.lateness = histogram("drain_deadline_lateness_seconds", "From the deadline of a drain to its end, for drains that ended after their deadline.",
		[]float64{1, 5, 15, 30, 60, 120, 300, 900, 3600})
	s.step = histogram("drainer_step_seconds", "Duration of one step of the drainer.", []float64{0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5})
	s.request = histogram("http_request_seconds", "Duration of an HTTP request, including the wait of blocking queries, by method and route.",
		[]float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30, 300}, "method", "route")
	s.start()
	return s, err
}

// start creates the series with a fixed set of label values, with zero. Otherwise a rate over a series
// would miss its first event.
func (s *series) start() {
	for k := witness.BelowLimit; k <= witness.Unseen; k++ {
		s.violations.WithLabelValues(k.Guarantee())
	}
	for c := cluster.MarkNone + 1; c < cluster.MarkClassCount; c++ {
		s.marks.WithLabelValues(identifier(c.String()))
	}
	for _, o := range []cluster.Outcome{
		cluster.OutcomeComplete, cluster.OutcomeUnconfirmed, cluster.OutcomeDeadlineReached, cluster.OutcomeForced, cluster.OutcomeCancelled, cluster.OutcomeNodeGone,
	} {
		s.ended.WithLabelValues(identifier(string(o)))
		s.duration.WithLabelValues(identifier(string(o)))
	}
	for _, kind := range []string{markKind, completionKind} {
		s.refused.WithLabelValues(kind)
	}
	for _, status := range []cluster.NodeStatus{cluster.NodeDown, cluster.NodeDisconnected} {
		s.heartbeats.WithLabelValues(string(status))
	}
	for _, table := range []string{statestore.TableAllocs, statestore.TableEvals, statestore.TableJobs} {
		s.collected.WithLabelValues(table)
	}
	for _, t := range []shims.MessageType{shims.AllocUpdateDesiredTransitionType, shims.NodesDrainCompleteType} {
		for _, outcome := range writeOutcomes() {
			s.writes.WithLabelValues(t.String(), outcome)
		}
	}
	for _, state := range []cluster.DataState{cluster.DataCopied, cluster.DataGivenUp} {
		s.moves.WithLabelValues(identifier(string(state)))
	}
	s.processes.WithLabelValues()
	s.surges.WithLabelValues()
	s.requests.WithLabelValues("", otherRoute, "404")
	s.request.WithLabelValues("", otherRoute)
	for _, v := range []*prometheus.HistogramVec{s.firstMark, s.lateness, s.step} {
		v.WithLabelValues()
	}
}

// identifier is a label value made of words, without spaces: "waiting_for_room".
func identifier(words string) string { return strings.ReplaceAll(words, " ", "_") }
