package server

import (
	"errors"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// apiError is an error with a text for clients of the API.
type apiError struct {
	text string
	// is are the wrapped errors, the class of package httpapi first.
	is []error
}

// Error returns the text.
func (e *apiError) Error() string { return e.text }

// Unwrap returns the wrapped errors.
func (e *apiError) Unwrap() []error { return e.is }

// Classify adds the class of package httpapi to an error of the server. It returns nil for nil, and an error that
// has a class as it is.
func Classify(err error) error {
	if _, is := errors.AsType[*apiError](err); is || err == nil {
		return err
	}
	for _, refused := range []struct{ cause, class error }{
		{statestore.ErrNodeNotFound, httpapi.ErrNotFound},
		{statestore.ErrJobNotFound, httpapi.ErrNotFound},
		{statestore.ErrAllocNotFound, httpapi.ErrNotFound},
		{statestore.ErrVolumeNotFound, httpapi.ErrNotFound},
		{statestore.ErrClaimNotFound, httpapi.ErrNotFound},
		{statestore.ErrDrainNotFound, httpapi.ErrNotFound},
		{statestore.ErrDrainRuns, httpapi.ErrInUse},
		{statestore.ErrNotDraining, httpapi.ErrInUse},
		{statestore.ErrNodeDraining, httpapi.ErrNodeDraining},
		{statestore.ErrNodeSecret, httpapi.ErrForbidden},
	} {
		if errors.Is(err, refused.cause) { // commands compare the text
			return &apiError{text: refused.cause.Error(), is: []error{refused.class, err}}
		}
	}
	for _, cause := range []error{statestore.ErrVolumeInUse, statestore.ErrNotPausable} {
		if errors.Is(err, cause) {
			_, after, _ := strings.Cut(err.Error(), cause.Error())
			return &apiError{text: cause.Error() + after, is: []error{httpapi.ErrInUse, err}}
		}
	}
	if class := classOf(err); class != nil {
		return &apiError{text: class.Error() + ": " + err.Error(), is: []error{class, err}}
	}
	return err
}

// classify replaces an error by the one with its class.
func classify(err *error) { *err = Classify(*err) }

// classOf returns the class of an error of a raft write, or nil.
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
