package telemetry

import (
	"slices"

	"github.com/hashicorp/go-metrics"
	metricsprometheus "github.com/hashicorp/go-metrics/prometheus"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
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
	requestsTotal:   "HTTP requests answered, by route and status code.",
	heartbeatsTotal: "Nodes that became down or disconnected because of a missed heartbeat. Every server counts all of them.",

	firstMarkSeconds: "From the start of a drain to its first mark.",
	durationSeconds:  "From the start of a drain to its end, by outcome.",
	latenessSeconds:  "From the deadline of a drain to its end, for drains that ended after their deadline.",
	stepSeconds:      "Duration of one step of the drainer.",
	requestSeconds:   "Duration of an HTTP request, including the wait of blocking queries, by route.",
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
		classes = append(classes, c.String())
	}
	return []values{
		{violationsTotal, "guarantee", slices.Compact(guarantees)},
		{marksTotal, "class", classes},
		{endedTotal, "outcome", outcomes()},
		{refusedTotal, "kind", []string{markKind, completionKind}},
		{heartbeatsTotal, "status", []string{string(cluster.NodeDown), string(cluster.NodeDisconnected)}},
	}
}

// The kinds of [refusedTotal].
const (
	markKind       = "mark"
	completionKind = "completion"
)

// definitions returns the declarations of all series for the sink. For a series without a fixed set
// of label values, it declares one value, because the sink takes the help of a series from there.
func definitions() (counters []metricsprometheus.CounterDefinition, summaries []metricsprometheus.SummaryDefinition) {
	counter := func(series string, labels ...metrics.Label) {
		counters = append(counters, metricsprometheus.CounterDefinition{Name: []string{namespace, series}, ConstLabels: labels, Help: help[series]})
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
	counter(requestsTotal, label("route", otherRoute), label("code", "404"))
	summary := func(series string, labels ...metrics.Label) {
		summaries = append(summaries, metricsprometheus.SummaryDefinition{Name: []string{namespace, series}, ConstLabels: labels, Help: help[series]})
	}
	for _, series := range []string{firstMarkSeconds, latenessSeconds, stepSeconds} {
		summary(series)
	}
	for _, outcome := range outcomes() {
		summary(durationSeconds, label("outcome", outcome))
	}
	summary(requestSeconds, label("route", otherRoute))
	return counters, summaries
}

// outcomes are the outcomes of drains.
func outcomes() []string {
	return []string{
		string(cluster.OutcomeComplete), string(cluster.OutcomeDeadlineReached), string(cluster.OutcomeForced),
		string(cluster.OutcomeCancelled), string(cluster.OutcomeNodeGone),
	}
}

func label(name, value string) metrics.Label { return metrics.Label{Name: name, Value: value} }
