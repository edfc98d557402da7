package agent

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/telemetry"
)

// countServer adds the metrics, if there are any, to the server's observers.
func (a *Agent) countServer(s *server.Config) {
	m := a.config.Metrics
	if m == nil {
		return
	}
	onApply, onStep := s.OnApply, s.Drainer.OnStep
	s.OnApply = func(entry shims.Applied) {
		m.OnApply(entry)
		if onApply != nil {
			onApply(entry)
		}
	}
	s.Drainer.OnStep = func(took time.Duration) {
		m.Stepped(took)
		if onStep != nil {
			onStep(took)
		}
	}
	s.OnAnswer = m.Answered
}

// countRequests has them count requests, and answer those for metrics.
func (a *Agent) countRequests(o *httpapi.Options) {
	m := a.config.Metrics
	if m == nil {
		return
	}
	observe := o.Observe
	o.Metrics = m
	o.Observe = func(route string, code int, took time.Duration) {
		m.Request(route, code, took)
		if observe != nil {
			observe(route, code, took)
		}
	}
}

// watch gives the metrics the sources that they read when they are scraped.
func (a *Agent) watch(api *httpapi.Handler) {
	if m := a.config.Metrics; m != nil {
		m.Watch(telemetry.Sources{Drains: a.server.Drainer().Status, Raft: a.server.Raft(), BlockingQueries: api.Waiting})
	}
}
