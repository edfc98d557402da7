package node

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/session"
)

// Waits before the next session. A wait doubles after each failure.
const (
	firstSessionWait = 500 * time.Millisecond
	maxSessionWait   = 10 * time.Second
	// oldServerWait is the wait after a server without sessions, which may be upgraded later.
	oldServerWait = time.Minute
	// steadySession is how long a session must last to count as a success.
	steadySession = maxSessionWait
	// loggedFailure is the number of the consecutive failure that is logged. The first failures are
	// normal, because a follower may not know a new node yet.
	loggedFailure = 3
)

// reach keeps a session with a server open, so that the servers can reach the node.
type reach struct {
	servers Servers
	handler http.Handler
	logger  *slog.Logger
}

func newReach(n *Node) *reach {
	return &reach{servers: n.shell.contact.servers, handler: nodeapi.New(n.nodeapiOptions()), logger: n.logger}
}

// keep keeps a session open after the node is registered, until the context ends. It answers
// requests in goroutines that have ended when it returns.
func (r *reach) keep(ctx context.Context, registered <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-registered:
	}
	failures := 0
	wait := firstSessionWait
	for ctx.Err() == nil {
		began := time.Now()
		end, err := r.servers.OpenSession(ctx)
		refused, is := errors.AsType[*session.Refused](err)
		old := is && refused.Unsupported()
		if err == nil {
			failures = 0
			r.logger.Info("the node has a session with a server")
			end.Serve(ctx, r.handler)
			if ctx.Err() != nil {
				return
			}
			r.logger.Info("the session with a server has ended; the node opens another one")
			if time.Since(began) >= steadySession {
				wait = firstSessionWait
			}
		} else if failures++; failures == loggedFailure || old && failures < loggedFailure {
			failures = loggedFailure
			r.logger.Warn("the node has no session with a server; operators cannot reach the files, logs and commands of its tasks", "error", err)
		}
		pause := wait
		if old {
			pause = oldServerWait
		} else {
			wait = min(2*wait, maxSessionWait)
		}
		sleep(ctx, pause/2+rand.N(pause/2+1)) // spread the nodes of a server that stops
	}
}
