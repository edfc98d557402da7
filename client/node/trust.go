package node

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// rawExec is the driver that runs commands without isolation.
const rawExec = "raw_exec"

// trustInterval is the time between two checks while the client starts no tasks. Without these
// checks the driver would stay unhealthy after the servers start to require tokens.
const trustInterval = 30 * time.Second

var (
	errAnonymous = errors.New("raw_exec is refused: this client runs as root, and the servers accept jobs without a token, " +
		"so that every user who reaches a server could run commands as root here; start the servers with -tokens, or the client as another user")
	errUnknownServers = errors.New("raw_exec waits: this client runs as root, and the servers have not reported yet whether they accept jobs without a token")
)

// trust decides whether raw_exec may start tasks. A client that runs as root permits it only if the
// servers require a token for jobs. Running tasks continue in any case.
type trust struct {
	servers Servers
	home    *home
	logger  *slog.Logger
	// failures logs failed checks.
	failures *failures
	// checks is false if the client need not check: it does not run as root, or has no raw_exec.
	checks bool

	// checking holds a value while a goroutine sends a request to the servers.
	checking chan struct{}

	mu   sync.Mutex
	sent time.Time // when the last request was sent; guarded by mu
	why  error     // nil if raw_exec may start tasks; guarded by mu
	// last is the last fingerprint of raw_exec, with the function that posts it, or nil; guarded by
	// mu
	held *heldFingerprint
}

type heldFingerprint struct {
	fingerprint driver.Fingerprint
	post        func(driver.Fingerprint)
}

// newTrust starts with the last answer that an earlier client got.
func newTrust(s Servers, h *home, root bool, logger *slog.Logger) *trust {
	t := &trust{servers: s, home: h, checks: root, logger: logger, failures: newFailures(logger), checking: make(chan struct{}, 1)}
	if root && !h.guarded() {
		t.why = errUnknownServers
	}
	return t
}

// check returns an error if a driver may not start tasks. It always sends a request, because an
// earlier answer may be from before a restart of the servers, and the task from after it.
// Concurrent callers share the next answer. If no server answers, the last answer stays valid.
func (t *trust) check(ctx context.Context, name string) error {
	if name != rawExec || !t.checks {
		return nil
	}
	came := time.Now()
	select {
	case t.checking <- struct{}{}:
		defer func() { <-t.checking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	t.mu.Lock()
	holds, why := t.sent.After(came), t.why
	if !holds {
		t.sent = time.Now()
	}
	t.mu.Unlock()
	if holds {
		return why
	}
	anonymous, err := t.servers.AcceptAnonymous(ctx)
	if err != nil {
		t.failures.failed(ctx, tokensRequest, err)
		return why
	}
	t.failures.succeeded(tokensRequest)
	why = nil
	if anonymous {
		why = errAnonymous
	}
	if err := t.home.noteContact(func(c *lastContact) { c.Guarded = !anonymous }); err != nil {
		t.logger.Warn("the file of the last contact was not written", "error", err)
	}
	t.store(why)
	return why
}

// last returns an error if a driver must not run anything by the last answer.
func (t *trust) last(name string) error {
	if name != rawExec || !t.checks {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why
}

// store stores an answer, and posts raw_exec's health again if the answer has changed.
func (t *trust) store(why error) {
	t.mu.Lock()
	changed := why != t.why
	t.why = why
	last := t.held
	t.mu.Unlock()
	if !changed {
		return
	}
	if why != nil {
		t.logger.Error("a driver is not used", "driver", rawExec, "why", why.Error())
	}
	if last != nil {
		last.post(t.filtered(last.fingerprint))
	}
}

// filter posts a fingerprint, changed if the driver may not start tasks.
func (t *trust) filter(name string, f driver.Fingerprint, post func(driver.Fingerprint)) {
	if name != rawExec || !t.checks {
		post(f)
		return
	}
	t.mu.Lock()
	t.held = &heldFingerprint{f, post}
	t.mu.Unlock()
	post(t.filtered(f))
}

func (t *trust) filtered(f driver.Fingerprint) driver.Fingerprint {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why != nil {
		f.Health, f.Description = driver.Unhealthy, t.why.Error()
	}
	return f
}

// forget drops the fingerprint of a process that has ended.
func (t *trust) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if name == rawExec {
		t.held = nil
	}
}
