package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/presence"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
)

// contactWait is how long a client that starts waits for the answer of a server before it uses what an
// earlier client has left. Meanwhile a watchdog keeps the promises of the earlier client.
const contactWait = 5 * time.Second

// admit opens the first session of a client that finds the records of an earlier one. The data directory may
// be a copy, and then the records name plugins and tasks of a client that runs. So the client touches
// nothing before the servers have accepted it: they refuse it while the session of the other client
// answers. The client retries until they accept it.
//
// If no server decides, the session is nil, and the client continues: it must keep its promises without
// servers, too. The error is the end of the context.
func admit(ctx context.Context, servers Servers, failures *failures, logger *slog.Logger) (*session.NodeEnd, error) {
	var backoff presence.Backoff
	random := newRandom()
	refusals := false
	for began := time.Now(); ; {
		end, err := servers.OpenSession(ctx)
		refused, is := errors.AsType[*session.Refused](err)
		switch {
		case err == nil:
			failures.succeeded(sessionRequest)
			return end, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("waiting for the servers to accept this client: %w", context.Cause(ctx))
		case is && refused.Status == http.StatusConflict:
			refusals = true
			failures.failed(ctx, sessionRequest, err)
		case is && refused.Unsupported(): // the servers of an older release accept every process
			return nil, nil
		case !refusals && time.Since(began) >= contactWait:
			logger.Warn("no server accepts or refuses this client; it continues with what an earlier client has left on this node", "error", err)
			return nil, nil
		}
		sleep(ctx, backoff.Next(maxSessionWait, random))
	}
}
