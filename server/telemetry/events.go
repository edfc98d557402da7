package telemetry

import (
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// Answered counts the outcome of a raft write of this server. The message is nil for a barrier.
// It is an OnAnswer of [shims.Options].
func (t *Telemetry) Answered(m shims.Message, a shims.Answer) {
	kind := "Barrier"
	if m != nil {
		kind = m.Type().String()
	}
	t.series.writes.WithLabelValues(kind, outcomeOf(a)).Inc()
	switch response := a.Response.(type) {
	case shims.MarksApplied:
		t.series.refused.WithLabelValues(markKind).Add(float64(len(response.Refused)))
	case shims.CompletionsApplied:
		t.series.refused.WithLabelValues(completionKind).Add(float64(len(response.Refused)))
	}
}

// refused is the outcome of a write that was applied and changed nothing.
const refused = "refused"

func writeOutcomes() []string {
	return []string{raftwrite.Applied.String(), refused, raftwrite.Rejected.String(), raftwrite.Unknown.String()}
}

func outcomeOf(a shims.Answer) string {
	if _, is := a.Response.(shims.Refused); is {
		return refused
	}
	return a.Outcome.String()
}

// otherRoute is the label of requests without a route, and of routes beyond [MaxRoutes].
const otherRoute = "other"

// MaxRoutes is how many routes of HTTP requests have a label of their own.
const MaxRoutes = 100

// Request counts an answered HTTP request. The route is the pattern that matched, such as
// "GET /v1/node/{id}", not the path: each route is a series.
func (t *Telemetry) Request(route string, code int, took time.Duration) {
	method, path := "", t.route(route)
	if m, p, both := strings.Cut(path, " "); both {
		method, path = m, p
	}
	t.series.requests.WithLabelValues(method, path, strconv.Itoa(code)).Inc()
	t.series.request.WithLabelValues(method, path).Observe(took.Seconds())
}

// RefusedProcess counts a request of a second client process of a node.
func (t *Telemetry) RefusedProcess() { t.series.processes.WithLabelValues().Inc() }

// route returns the route, or otherRoute if there are too many.
func (t *Telemetry) route(route string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.routes[route] {
		if len(t.routes) >= MaxRoutes {
			return otherRoute
		}
		t.routes[route] = true
	}
	return route
}

// Stepped records how long a step of the drainer took. It is an OnStep of
// [drainer.NodeDrainerConfig].
func (t *Telemetry) Stepped(took time.Duration) {
	t.series.step.WithLabelValues().Observe(took.Seconds())
}
