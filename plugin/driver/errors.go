package driver

import (
	"errors"
	"fmt"
)

// Class states what a caller does about an error of a driver.
type Class uint8

// The classes of errors.
const (
	// Fatal: the call failed, and a repetition will fail too. A driver's error without a class is
	// fatal.
	Fatal Class = iota
	// Recoverable: the call failed, and the driver states that a repetition may succeed.
	Recoverable
	// NotFound: the driver does not have the task. For Stop and Destroy it is a success.
	NotFound
	// Gone: the driver's process is gone. The call may have taken effect.
	Gone
	// Deadline: the driver did not answer in time. The call may have taken effect, or take effect
	// later.
	Deadline
	// Unsupported: the driver does not have the call.
	Unsupported
)

// String returns the name of the class.
func (c Class) String() string {
	switch c {
	case Recoverable:
		return "recoverable"
	case NotFound:
		return "not found"
	case Gone:
		return "driver gone"
	case Deadline:
		return "no answer in time"
	case Unsupported:
		return "unsupported"
	}
	return "fatal"
}

// Uncertain reports whether the call may have taken effect.
func (c Class) Uncertain() bool { return c == Gone || c == Deadline }

// Error is an error of a driver with its class.
type Error struct {
	Class Class
	// Call is the name of the call, such as "StartTask".
	Call string
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Call, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// ErrUnknownTask means that the driver does not have the task. Its class is [NotFound]. Clients recognize
// it by its text: its type does not survive the wire.
var ErrUnknownTask = errors.New("task not found for given id")

// ClassOf returns the class of the [Error] in the chain of an error, [NotFound] for
// [ErrUnknownTask], and otherwise [Fatal].
func ClassOf(err error) Class {
	if errors.Is(err, ErrUnknownTask) {
		return NotFound
	}
	if e, is := errors.AsType[*Error](err); is {
		return e.Class
	}
	return Fatal
}
