package agent

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/server/telemetry"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// observeServer adds [Config].Metrics to the server's observers.
func (a *Agent) observeServer(s *server.Config) {
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

// observeRequests makes [Config].Metrics count requests and answer GET /v1/metrics.
func (a *Agent) observeRequests(o *httpapi.Options) {
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

// setMetricsSources sets the sources that [Config].Metrics reads at each scrape.
func (a *Agent) setMetricsSources(api *httpapi.Handler) {
	if m := a.config.Metrics; m != nil {
		m.Watch(telemetry.Sources{
			Drains: a.Backend().Drains.Status, Raft: a.server.Raft(), BlockingQueries: api.Waiting, Connections: a.conns.counts,
			DataCopies:  api.DataCopies,
			State:       a.digests.status,
			Held:        a.server.HeldRows,
			Unconfirmed: func() ([]*cluster.Drain, bool) { return unconfirmed(a.server) },
			PauseOfAll: func() (*cluster.DrainPause, bool) {
				return a.server.Store().Snapshot().DrainView().DrainPause(), a.server.Leads()
			},
		})
	}
}

// unconfirmed returns the records of drains that count unconfirmed allocations, oldest first, on a server that
// leads.
func unconfirmed(s *server.Server) (records []*cluster.Drain, leads bool) {
	if !s.Leads() {
		return nil, false
	}
	for d := range s.Store().Snapshot().Drains() {
		if d.CountUnconfirmed() > 0 {
			records = append(records, d)
		}
	}
	return records, true
}
