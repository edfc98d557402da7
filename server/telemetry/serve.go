package telemetry

import (
	"encoding/json"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// ServeHTTP answers with all numbers: in Prometheus' text format if the path is /metrics or the
// query has format=prometheus, otherwise as a [Summary] in JSON. The caller checks access rights.
func (t *Telemetry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case t.scrapes <- struct{}{}:
		defer func() { <-t.scrapes }()
	default:
		http.Error(w, "too many concurrent requests for metrics", http.StatusServiceUnavailable)
		return
	}
	if r.URL.Path == "/metrics" || r.URL.Query().Get("format") == "prometheus" {
		promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).ServeHTTP(w, r)
		return
	}
	summary, err := t.Summary()
	if err != nil {
		t.logger.Warn("some metrics could not be gathered", "error", err)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(summary) // the client has gone away
}
