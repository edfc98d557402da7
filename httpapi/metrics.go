package httpapi

import "net/http"

// readMetrics answers GET /v1/metrics, and GET /metrics, the path that Prometheus asks by default:
// the metrics of the server that received the request.
func readMetrics(q *request) error {
	if q.options.Metrics == nil {
		return fail(http.StatusNotFound, "this server has no metrics")
	}
	beginAnswer(q.w, answerTime) // it may begin with its body
	q.options.Metrics.ServeHTTP(q.w, q.Request)
	return nil
}
