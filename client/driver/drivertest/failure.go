package drivertest

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/driver"
)

// Failure is one failure of a test. A test gives it to its T as the only argument of Errorf or
// Fatalf.
type Failure struct {
	// Expected is empty if the node failed and not the driver.
	Expected string
	Happened string
}

// String returns what happened, and what was expected.
func (f Failure) String() string {
	if f.Expected == "" {
		return f.Happened
	}
	return fmt.Sprintf("%s; expected: %s", f.Happened, f.Expected)
}

// resultText describes the end of a task in the words of failures.
func resultText(r driver.ExitResult) string {
	switch {
	case r.Unknown:
		return "an unknown result"
	case r.OOMKilled:
		return fmt.Sprintf("code %d, signal %d, killed for want of memory", r.Code, r.Signal)
	}
	return fmt.Sprintf("code %d, signal %d", r.Code, r.Signal)
}

// answerOf describes an answer of Wait.
func answerOf(r driver.ExitResult, err error) string {
	if err != nil {
		return errorText(err)
	}
	return resultText(r)
}

// errorText describes the error of a call; nil is "ok".
func errorText(err error) string {
	if err == nil {
		return "ok"
	}
	return fmt.Sprintf("error of class %q: %v", driver.ClassOf(err), err)
}

// rounded is a duration for people.
func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
