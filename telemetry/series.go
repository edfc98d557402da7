package telemetry

import (
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

// help describes each of them.
var help = map[string]string{
	violationsTotal: "Guarantees of the drainer that an independent witness of the log found broken. Must stay 0.",
	writesTotal:     "Raft writes that this server proposed, by type and by what became of them.",
	refusedTotal:    "Marks and completions that were refused when their raft entry was applied, because the state had moved.",
	marksTotal:      "Allocations marked to leave, by class of mark. Every server counts every one.",
	endedTotal:      "Drains that ended, by outcome. Every server counts every one.",
	requestsTotal:   "HTTP requests answered, by route and status code.",
	heartbeatsTotal: "Nodes that became down or disconnected because they were not heard in time. Every server counts every one.",

	firstMarkSeconds: "From the start of a drain to its first mark.",
	durationSeconds:  "From the start of a drain to its end, by outcome.",
	latenessSeconds:  "How long after its deadline a drain ended that did not end before it.",
	stepSeconds:      "How long one step of the drainer took.",
	requestSeconds:   "How long an HTTP request took, blocking queries included, by route.",
}

// values are the label values of the series whose values are all known beforehand. These series
// exist from the start, with zero: a rate over a series that begins with its first event would
// miss that event.
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
		{violationsTotal, "guarantee", unique(guarantees)},
		{marksTotal, "class", classes},
		{endedTotal, "outcome", outcomes()},
		{refusedTotal, "kind", []string{markKind, completionKind}},
		{heartbeatsTotal, "status", []string{string(cluster.NodeDown), string(cluster.NodeDisconnected)}},
	}
}

// unique returns the values without adjacent repeats.
func unique(of []string) []string {
	seen := map[string]bool{}
	var once []string
	for _, v := range of {
		if !seen[v] {
			seen[v] = true
			once = append(once, v)
		}
	}
	return once
}

// The kinds of [refusedTotal].
const (
	markKind       = "mark"
	completionKind = "completion"
)

// definitions declare the series to the sink. A series with unknown label values is declared by
// one of them, because the sink has no other place for the help of the whole series.
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

// outcomes are those of drains.
func outcomes() []string {
	return []string{
		string(cluster.OutcomeComplete), string(cluster.OutcomeDeadlineReached), string(cluster.OutcomeForced),
		string(cluster.OutcomeCancelled), string(cluster.OutcomeNodeGone),
	}
}

func label(name, value string) metrics.Label { return metrics.Label{Name: name, Value: value} }
