package node

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/presence"
)

// The names of requests in logs. [presence.Request] has two more.
const (
	changesRequest = "changes of allocations"
	reportRequest  = "report of allocations"
	sessionRequest = "session"
	tokensRequest  = "check whether the servers accept jobs without a token"
)

// failures logs failed requests to the servers: each kind of request at most once a minute while it
// fails, and once when it succeeds again. It is safe for concurrent use.
type failures struct {
	logger *slog.Logger

	mu  sync.Mutex
	all map[string]*presence.Outage // by the name of the request; guarded by mu
}

func newFailures(logger *slog.Logger) *failures {
	return &failures{logger: logger, all: make(map[string]*presence.Outage)}
}

// failed notes a failed request. The end of the client is no failure.
func (f *failures) failed(ctx context.Context, request string, err error) {
	if ctx.Err() != nil {
		return
	}
	f.mu.Lock()
	o := f.all[request]
	if o == nil {
		o = new(presence.Outage)
		f.all[request] = o
	}
	lasting, log := o.Failed(time.Now())
	f.mu.Unlock()
	if log {
		f.logger.Warn("a request to the servers failed", "request", request, "failing_for", lasting.Round(time.Second), "error", err)
	}
}

// succeeded notes a request that succeeded. It returns whether it has logged that.
func (f *failures) succeeded(request string) (logged bool) {
	f.mu.Lock()
	o := f.all[request]
	if o == nil {
		f.mu.Unlock()
		return false
	}
	lasted, log := o.Succeeded(time.Now())
	f.mu.Unlock()
	if log {
		f.logger.Info("a request to the servers succeeds again", "request", request, "failed_for", lasted.Round(time.Second))
	}
	return log
}

// failureLog logs each failure of a series once. A success ends the series.
type failureLog struct{ logged map[string]bool }

// maxLogged bounds the failures of a series: a plugin may invent new ones for ever.
const maxLogged = 16

// isNew reports whether the series had no such failure.
func (f *failureLog) isNew(err error) bool {
	text := err.Error()
	if f.logged[text] {
		return false
	}
	if f.logged == nil || len(f.logged) == maxLogged {
		f.logged = make(map[string]bool)
	}
	f.logged[text] = true
	return true
}

// over ends a series of failures.
func (f *failureLog) over() { f.logged = nil }
