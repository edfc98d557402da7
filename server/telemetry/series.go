package telemetry

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/go-metrics"
	metricsprometheus "github.com/hashicorp/go-metrics/prometheus"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

// namespace is the prefix of every name.
const namespace = "nodedrain"

// The series of events.
const (
	violationsTotal = "invariant_violations_total"
	writesTotal     = "raft_writes_total"
	refusedTotal    = "drain_items_refused_total"
	marksTotal      = "drain_marks_total"
	endedTotal      = "drains_ended_total"
	requestsTotal   = "http_requests_total"
	heartbeatsTotal = "heartbeats_missed_total"
	collectedTotal  = "collected_rows_total"

	firstMarkSeconds = "drain_first_mark_seconds"
	durationSeconds  = "drain_duration_seconds"
	latenessSeconds  = "drain_deadline_lateness_seconds"
	stepSeconds      = "drainer_step_seconds"
	requestSeconds   = "http_request_seconds"
)

// help describes each series.
var help = map[string]string{
	violationsTotal: "Guarantees of the drainer that an independent witness of the log found broken. Must stay 0.",
	writesTotal:     "Raft writes that this server proposed, by type and outcome.",
	refusedTotal:    "Marks and completions that the FSM refused because the state had changed since the plan.",
	marksTotal:      "Allocations that drains marked to leave, by class of mark. Every server counts all of them.",
	endedTotal:      "Drains that ended, by outcome. Every server counts all of them.",
	requestsTotal:   "HTTP requests answered, by method, route and status code.",
	heartbeatsTotal: "Nodes that became down or disconnected because of a missed heartbeat. Every server counts all of them.",
	collectedTotal:  "Ended rows that were deleted, by table. Every server counts all of them.",

	firstMarkSeconds: "From the start of a drain to its first mark.",
	durationSeconds:  "From the start of a drain to its end, by outcome.",
	latenessSeconds:  "From the deadline of a drain to its end, for drains that ended after their deadline.",
	stepSeconds:      "Duration of one step of the drainer.",
	requestSeconds:   "Duration of an HTTP request, including the wait of blocking queries, by method and route.",
}

// values are the label values of a series with a fixed set of values. Such a series exists with
// zero from the start. Otherwise a rate over the series would miss its first event.
type values struct {
	series, label string
	of            []string
}

func known() []values {
	var guarantees, classes []string
	for k := witness.BelowLimit; k <= witness.Unseen; k++ {
		guarantees = append(guarantees, k.Guarantee())
	}
	for c := cluster.MarkNone + 1; c < cluster.MarkClassCount; c++ {
		classes = append(classes, identifier(c.String()))
	}
	return []values{
		{violationsTotal, "guarantee", slices.Compact(guarantees)},
		{marksTotal, "class", classes},
		{endedTotal, "outcome", outcomes()},
		{refusedTotal, "kind", []string{markKind, completionKind}},
		{heartbeatsTotal, "status", []string{string(cluster.NodeDown), string(cluster.NodeDisconnected)}},
		{collectedTotal, "table", []string{statestore.TableAllocs, statestore.TableEvals, statestore.TableJobs}},
	}
}

// The kinds of [refusedTotal].
const (
	markKind       = "mark"
	completionKind = "completion"
)

// counterDefinitions returns the declarations of all counters for the sink. For a counter without a
// fixed set of label values, it declares one value, because the sink takes the help of a series
// from there.
func counterDefinitions() (all []metricsprometheus.CounterDefinition) {
	counter := func(series string, labels ...metrics.Label) {
		all = append(all, metricsprometheus.CounterDefinition{Name: []string{namespace, series}, ConstLabels: labels, Help: help[series]})
	}
	for _, v := range known() {
		for _, value := range v.of {
			counter(v.series, label(v.label, value))
		}
	}
	for _, t := range []shims.MessageType{shims.AllocUpdateDesiredTransitionType, shims.NodesDrainCompleteType} {
		for _, outcome := range writeOutcomes() {
			counter(writesTotal, label("type", t.String()), label("outcome", outcome))
		}
	}
	counter(requestsTotal, label("method", ""), label("route", otherRoute), label("code", "404"))
	return all
}

// histograms are the series of durations. The sink of go-metrics has no histograms, so they are
// Prometheus' own.
type histograms struct {
	firstMark, duration, lateness, step, request *prometheus.HistogramVec
}

// newHistograms registers the histograms. Their buckets are in seconds. A histogram with a fixed
// set of label values exists with zero from the start.
func newHistograms(registry *prometheus.Registry) (h histograms, err error) {
	ofDrains := []float64{1, 5, 15, 60, 300, 900, 1800, 3600, 2 * 3600, 4 * 3600, 8 * 3600, 24 * 3600}
	for _, d := range []struct {
		to      **prometheus.HistogramVec
		series  string
		buckets []float64
		labels  []string
	}{
		{&h.firstMark, firstMarkSeconds, []float64{0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600}, nil},
		{&h.duration, durationSeconds, ofDrains, []string{"outcome"}},
		{&h.lateness, latenessSeconds, []float64{1, 5, 15, 30, 60, 120, 300, 900, 3600}, nil},
		{&h.step, stepSeconds, []float64{0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5}, nil},
		{&h.request, requestSeconds, []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30, 300}, []string{"method", "route"}},
	} {
		*d.to = prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: d.series, Help: help[d.series], Buckets: d.buckets,
		}, d.labels)
		if err := registry.Register(*d.to); err != nil {
			return h, fmt.Errorf("telemetry: registering %s: %w", d.series, err)
		}
	}
	for _, v := range []*prometheus.HistogramVec{h.firstMark, h.lateness, h.step} {
		v.WithLabelValues()
	}
	for _, outcome := range outcomes() {
		h.duration.WithLabelValues(outcome)
	}
	h.request.WithLabelValues("", otherRoute)
	return h, nil
}

// outcomes are the outcomes of drains, as label values.
func outcomes() (all []string) {
	for _, o := range []cluster.Outcome{
		cluster.OutcomeComplete, cluster.OutcomeDeadlineReached, cluster.OutcomeForced, cluster.OutcomeCancelled, cluster.OutcomeNodeGone,
	} {
		all = append(all, identifier(string(o)))
	}
	return all
}

// identifier is a label value made of words, without spaces: "waiting_for_room".
func identifier(words string) string { return strings.ReplaceAll(words, " ", "_") }

func label(name, value string) metrics.Label { return metrics.Label{Name: name, Value: value} }
