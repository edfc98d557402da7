package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
)

// Waits before the next session. A wait doubles after each failure.
const (
	firstSessionWait = 500 * time.Millisecond
	maxSessionWait   = 10 * time.Second
	// oldServerWait is the wait after a server without sessions, which may be upgraded later.
	oldServerWait = time.Minute
	// steadySession is how long a session must last to count as a success.
	steadySession = maxSessionWait
	// normalFailures is the number of consecutive failures that are not logged. They are normal,
	// because a follower may not have a new node yet.
	normalFailures = 2
)

// reach keeps a session with a server open, so that the servers can reach the node.
type reach struct {
	servers Servers
	handler http.Handler
	logger  *slog.Logger
	// accepted is a session that is open already, or nil.
	accepted *session.NodeEnd
	// failures logs failed requests for a session.
	failures *failures
}

func newReach(n *Node) *reach {
	return &reach{servers: n.shell.contact.servers, handler: nodeapi.New(n.nodeapiOptions()), logger: n.logger, accepted: n.accepted, failures: n.shell.contact.failures}
}

// errUnreachable states what follows from a missing session.
var errUnreachable = errors.New("operators cannot reach the files, logs and commands of the node's tasks")

// keep keeps a session open until the context ends: the accepted one, and others after the node is
// registered. It answers
// requests in goroutines that have ended when it returns.
func (r *reach) keep(ctx context.Context, registered <-chan struct{}) {
	if r.accepted != nil {
		r.accepted.Serve(ctx, r.handler)
	}
	select {
	case <-ctx.Done():
	case <-registered:
	}
	failed, oldLogged := 0, false
	wait := firstSessionWait
	for ctx.Err() == nil {
		began := time.Now()
		end, err := r.servers.OpenSession(ctx)
		refused, is := errors.AsType[*session.Refused](err)
		old := is && refused.Unsupported()
		if err == nil {
			failed, oldLogged = 0, false
			r.failures.succeeded(sessionRequest)
			r.logger.Info("the node has a session with a server")
			end.Serve(ctx, r.handler)
			if ctx.Err() != nil {
				return
			}
			r.logger.Info("the session with a server has ended; the node opens another one")
			if time.Since(began) >= steadySession {
				wait = firstSessionWait
			}
		} else if failed++; old {
			if !oldLogged { // this may last until an upgrade
				oldLogged = true
				r.logger.Warn("the servers are of an older release without sessions with nodes", "why", errUnreachable, "error", err)
			}
		} else if failed > normalFailures {
			r.failures.failed(ctx, sessionRequest, fmt.Errorf("%w: %w", errUnreachable, err))
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
