package httpapi

import "net/http"

// readMetrics answers GET /v1/metrics: the numbers of the server that is asked, whoever
// leads.
func (q *request) readMetrics() error {
	if q.options.Metrics == nil {
		return fail(http.StatusNotFound, "this server keeps no metrics")
	}
	beginAnswer(q.w) // it may begin with its body
	q.options.Metrics.ServeHTTP(q.w, q.Request)
	return nil
}
