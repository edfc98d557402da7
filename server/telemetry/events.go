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
	t.count(writesTotal, 1, label("type", kind), label("outcome", outcomeOf(a)))
	switch response := a.Response.(type) {
	case shims.MarksApplied:
		t.countRefused(markKind, len(response.Refused))
	case shims.CompletionsApplied:
		t.countRefused(completionKind, len(response.Refused))
	}
}

func (t *Telemetry) countRefused(kind string, n int) {
	if n > 0 {
		t.count(refusedTotal, n, label("kind", kind))
	}
}

// refused is the outcome of a write that was applied and changed nothing.
const refused = "refused"

// writeOutcomes are the outcomes of a write.
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
	t.count(requestsTotal, 1, label("method", method), label("route", path), label("code", strconv.Itoa(code)))
	t.durations.request.WithLabelValues(method, path).Observe(took.Seconds())
}

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
	t.durations.step.WithLabelValues().Observe(took.Seconds())
}
