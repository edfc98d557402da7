package server

import (
	"errors"
	"fmt"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Every error has at most one class, so the caller can decide whether to retry.
func TestClassify(t *testing.T) {
	t.Parallel()
	classes := []error{
		httpapi.ErrNotLeader, httpapi.ErrUnavailable, httpapi.ErrUnknown, httpapi.ErrNotFound, httpapi.ErrNodeDraining, httpapi.ErrForbidden, httpapi.ErrTooLarge, httpapi.ErrInUse,
	}
	wrap := func(errs ...error) error { return fmt.Errorf("proposing: %w", errors.Join(errs...)) }
	for _, c := range []struct {
		err, class error
		text       string
	}{
		{wrap(statestore.ErrNodeNotFound), httpapi.ErrNotFound, "node not found"},
		{wrap(statestore.ErrJobNotFound), httpapi.ErrNotFound, "job not found"},
		{wrap(statestore.ErrNotDraining), httpapi.ErrInUse, "node does not drain"},
		{fmt.Errorf("node n1: %w: the drain is forced", statestore.ErrNotPausable), httpapi.ErrInUse, "drain cannot be paused: the drain is forced"},
		{wrap(statestore.ErrNodeDraining), httpapi.ErrNodeDraining, statestore.ErrNodeDraining.Error()},
		{wrap(shims.ErrRejected, raft.ErrNotLeader), httpapi.ErrNotLeader, ""},
		{wrap(shims.ErrRejected, raft.ErrLeadershipTransferInProgress), httpapi.ErrUnavailable, ""},
		{wrap(shims.ErrRejected, shims.ErrClosed), httpapi.ErrUnavailable, ""},
		{wrap(shims.ErrRejected, shims.ErrTooLarge), httpapi.ErrTooLarge, ""},
		{wrap(shims.ErrBusy), httpapi.ErrUnavailable, ""},
		{wrap(shims.ErrUnknown, raft.ErrLeadershipLost), httpapi.ErrUnknown, ""},
		{wrap(shims.ErrUnknown, shims.ErrNoAnswer), httpapi.ErrUnknown, ""},
		{raft.ErrNotLeader, httpapi.ErrNotLeader, ""},
		{raft.ErrEnqueueTimeout, httpapi.ErrUnavailable, ""},
		{raft.ErrLeadershipLost, httpapi.ErrUnknown, ""},
		{raft.ErrRaftShutdown, httpapi.ErrUnknown, ""},
		{errors.New("Missing job ID"), nil, "Missing job ID"},
	} {
		err := Classify(c.err)
		must.ErrorIs(t, err, c.err)
		for _, class := range classes {
			must.Eq(t, class == c.class, errors.Is(err, class), must.Sprintf("error %v, class %v", c.err, class))
		}
		if c.text != "" {
			must.EqError(t, err, c.text)
		}
	}
	must.NoError(t, Classify(nil))
}
