package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/structs"
)

// exitDelay is the longest time between the end of a connection and the end of its process, as the
// client notices them.
const exitDelay = 3 * time.Second

// notFound are the error texts of released drivers for an unknown task. Their errors have no code.
func notFound() []string {
	return []string{
		"task not found for given id", // the reference's drivers
		"task does not exist",         // exec2
		"task not found",
		"unknown task",
	}
}

// classify returns the class of an error of a call. The class driver.Gone means that the connection
// is broken. The process may still run.
func classify(err error) driver.Class {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return driver.Deadline
	case errors.Is(err, io.EOF):
		// The plugin has ended the stream. The process may still run.
		return driver.Fatal
	}
	s, ok := status.FromError(err)
	if !ok {
		return classifyText(err.Error())
	}
	for _, detail := range s.Details() {
		if r, ok := detail.(*structs.RecoverableError); ok {
			if r.GetRecoverable() {
				return driver.Recoverable
			}
			return driver.Fatal
		}
	}
	switch s.Code() {
	case codes.Unavailable:
		return driver.Gone
	case codes.Canceled:
		// gRPC returns this error when this side has closed the connection.
		if strings.Contains(s.Message(), "connection is closing") {
			return driver.Gone
		}
		return driver.Deadline
	case codes.DeadlineExceeded:
		return driver.Deadline
	case codes.Unimplemented:
		return driver.Unsupported
	case codes.NotFound:
		return driver.NotFound
	case codes.Internal:
		// The connection broke within a message.
		for _, text := range []string{"stream terminated by RST_STREAM", "unexpected EOF", "connection reset by peer", "broken pipe"} {
			if strings.Contains(s.Message(), text) {
				return driver.Gone
			}
		}
	}
	return classifyText(s.Message())
}

// classifyText returns the class of an error that is only a text.
func classifyText(text string) driver.Class {
	text = strings.ToLower(text)
	for _, t := range notFound() {
		if strings.Contains(text, t) {
			return driver.NotFound
		}
	}
	return driver.Fatal
}

// calls is the state that all calls of an instance share, for drivers and device plugins.
type calls struct {
	options Options
	// gone is closed when the process has ended.
	gone <-chan struct{}
	// cause states why the process has ended, or is nil.
	cause *cause
}

// ended reports whether the process has ended.
func (c *calls) ended() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// fail returns an error of a call with its class. The error is not nil.
func (c *calls) fail(ctx context.Context, call string, err error) error {
	class := classify(err)
	text := plain(status.Convert(err).Message())
	if ctx.Err() != nil && class == driver.Fatal && !c.ended() {
		class = driver.Deadline
	}
	switch {
	case class == driver.Gone:
		// The process ends some time after its connection.
		timer := time.NewTimer(exitDelay)
		defer timer.Stop()
		select {
		case <-c.gone:
		case <-ctx.Done():
		case <-timer.C:
		}
		if !c.ended() {
			class = driver.Deadline
			text = "the connection broke, but the process lives: " + text
		}
	case c.ended() && class == driver.Deadline:
		class = driver.Gone
	case class == driver.NotFound && (call == "StartTask" || call == reserve):
		// Streams and other calls without a task cannot fail because of an unknown task.
		class = driver.Fatal
	}
	if class == driver.Gone && c.cause != nil {
		if why := c.cause.reason(); why != "" {
			text += "; the plugin's process has ended: " + why
		}
	}
	wrapped := errors.New(text)
	if class == driver.Deadline && (classify(err) == driver.Deadline || ctx.Err() != nil) {
		// The plugin may notice the deadline first.
		wrapped = fmt.Errorf("no answer: %w", cmp.Or(context.Cause(ctx), context.DeadlineExceeded))
	}
	return &driver.Error{Class: class, Call: call, Err: wrapped}
}

// invoke makes a call.
func invoke[Q, A any](ctx context.Context, c *calls, method func(context.Context, Q, ...grpc.CallOption) (A, error), name string, request Q) (A, error) {
	answer, err := method(ctx, request)
	if err != nil {
		err = c.fail(ctx, name, err)
	}
	return answer, err
}

var errEnded = errors.New("the plugin has ended the stream")

// ending returns the error of a stream that has ended.
func (c *calls) ending(ctx context.Context, call string, err error) error {
	if errors.Is(err, io.EOF) {
		return &driver.Error{Class: driver.Fatal, Call: call, Err: errEnded}
	}
	return c.fail(ctx, call, err)
}

// failText is like fail, for an error that is part of an answer.
func failText(call, text string) error {
	return &driver.Error{Class: classifyText(text), Call: call, Err: errors.New(plain(text))}
}
