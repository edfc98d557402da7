package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	api "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// othersTimeout is how long the client waits for the other servers after the first has answered.
const othersTimeout = 2 * time.Second

// anonymity says whether one server accepts jobs without a token.
type anonymity struct {
	accept bool
	err    error
}

// AcceptAnonymous implements [Servers]. It asks all servers, because an attacker needs only one
// server that requires no token. Servers that do not answer are ignored. If no server answers, it
// returns an error.
func (s *httpServers) AcceptAnonymous(ctx context.Context) (accept bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	answers := make(chan anonymity, len(s.all))
	for _, one := range s.all {
		asking.Go(func() {
			accept, err := one.acceptsAnonymous(ctx)
			answers <- anonymity{accept, err}
		})
	}
	var late <-chan time.Time
	var errs []error
	for range s.all {
		select {
		case a := <-answers:
			switch {
			case a.err != nil:
				errs = append(errs, a.err)
			case a.accept:
				return true, nil
			case late == nil:
				late = time.After(othersTimeout)
			}
		case <-late:
			return false, nil
		}
	}
	if late != nil {
		return false, nil
	}
	return false, errors.Join(errs...)
}

// acceptsAnonymous sends an invalid job without a token to a server. A server that requires a token
// refuses it before it reads the job.
func (s httpServer) acceptsAnonymous(ctx context.Context) (accept bool, err error) {
	_, _, err = s.stranger.RegisterJob(ctx, json.RawMessage("{}"))
	answer, is := errors.AsType[*api.Error](err)
	switch {
	case err == nil:
		return true, nil
	case !is || !api.Refused(err):
		return false, err
	case answer.Status == http.StatusForbidden && answer.Body == tokenMissing:
		return false, nil
	case answer.Status == http.StatusForbidden || answer.Status == http.StatusUnauthorized:
		return false, fmt.Errorf("the server refuses this client, and does not say that a token is missing: %w", err)
	}
	return true, nil
}

// tokenMissing is the answer of a server that requires a token. Other refusals do not count: a
// server without tokens refuses requests for another host name, and an attacker can avoid that.
const tokenMissing = "Permission denied"
