package agent

import (
	"errors"

	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// apiError is an error in the words of the API.
type apiError struct {
	text string
	// is are the errors that it wraps.
	is []error
}

// Error is the text alone.
func (e *apiError) Error() string { return e.text }

// Unwrap returns the wrapped errors.
func (e *apiError) Unwrap() []error { return e.is }

// apiErrorOf gives an error of the server's the class that package httpapi knows
// it by, or returns nil.
func apiErrorOf(err error) error {
	if err == nil {
		return nil
	}
	for _, refused := range []struct{ cause, class error }{
		{statestore.ErrNodeNotFound, httpapi.ErrNotFound},
		{statestore.ErrJobNotFound, httpapi.ErrNotFound},
		{statestore.ErrNodeDraining, httpapi.ErrNodeDraining},
		{statestore.ErrNodeSecret, httpapi.ErrForbidden},
	} {
		if errors.Is(err, refused.cause) { // in the words that the commands know
			return &apiError{text: refused.cause.Error(), is: []error{refused.class, err}}
		}
	}
	if class := classOf(err); class != nil {
		return &apiError{text: class.Error() + ": " + err.Error(), is: []error{class, err}}
	}
	return err
}

// classOf is the class of an error that is about the log, or nil.
func classOf(err error) error {
	switch {
	case errors.Is(err, shims.ErrTooLarge):
		return httpapi.ErrTooLarge
	case errors.Is(err, shims.ErrUnknown):
		return httpapi.ErrUnknown
	case errors.Is(err, raft.ErrNotLeader):
		return httpapi.ErrNotLeader
	case errors.Is(err, shims.ErrRejected), errors.Is(err, shims.ErrBusy), errors.Is(err, raft.ErrLeadershipTransferInProgress),
		errors.Is(err, raft.ErrEnqueueTimeout):
		return httpapi.ErrUnavailable
	case errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, raft.ErrRaftShutdown), errors.Is(err, raft.ErrAbortedByRestore):
		return httpapi.ErrUnknown
	}
	return nil
}
