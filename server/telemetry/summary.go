package telemetry

import (
	"fmt"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// Summary holds all numbers of one moment, in the shape of the compatible API. Counts and sums
// count since the start of the server.
type Summary struct {
	// Timestamp is the moment, in UTC.
	Timestamp string
	Gauges    []Gauge
	// Points is always empty. Clients of the compatible API expect it.
	Points   []Gauge
	Counters []Counter
	Samples  []Sample
}

// Gauge is a number that may rise and fall.
type Gauge struct {
	Name   string
	Value  float64
	Labels map[string]string
}

// Counter is a number that only grows.
type Counter struct {
	Name   string
	Count  float64
	Labels map[string]string
}

// Sample is how often something was measured, and the measured values.
type Sample struct {
	Name      string
	Count     uint64
	Sum, Mean float64
	Labels    map[string]string
}

// Summary collects all numbers, by name and then by labels. With an error it holds the numbers
// that were available.
func (t *Telemetry) Summary() (Summary, error) {
	s := Summary{
		Timestamp: time.Now().UTC().Format("2006-01-02 15:04:05 -0700 MST"),
		Gauges:    []Gauge{}, Points: []Gauge{}, Counters: []Counter{}, Samples: []Sample{},
	}
	families, err := t.registry.Gather()
	for _, family := range families {
		for _, m := range family.GetMetric() {
			s.add(family.GetName(), family.GetType(), m)
		}
	}
	if err != nil {
		return s, fmt.Errorf("gathering metrics: %w", err)
	}
	return s, nil
}

func (s *Summary) add(name string, kind dto.MetricType, m *dto.Metric) {
	labels := make(map[string]string, len(m.GetLabel()))
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	switch kind {
	case dto.MetricType_COUNTER:
		s.Counters = append(s.Counters, Counter{name, m.GetCounter().GetValue(), labels})
	case dto.MetricType_GAUGE:
		s.Gauges = append(s.Gauges, Gauge{name, m.GetGauge().GetValue(), labels})
	case dto.MetricType_SUMMARY:
		s.sample(name, m.GetSummary().GetSampleCount(), m.GetSummary().GetSampleSum(), labels)
	case dto.MetricType_HISTOGRAM:
		s.sample(name, m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum(), labels)
	}
}

func (s *Summary) sample(name string, count uint64, sum float64, labels map[string]string) {
	sample := Sample{Name: name, Count: count, Sum: sum, Labels: labels}
	if count > 0 {
		sample.Mean = sum / float64(count)
	}
	s.Samples = append(s.Samples, sample)
}
