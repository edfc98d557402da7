package drivertest

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

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

// answerText describes an answer of Wait.
func answerText(r driver.ExitResult, err error) string {
	if err != nil {
		return conformance.ErrorText(err)
	}
	return resultText(r)
}
