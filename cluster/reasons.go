package cluster

import (
	"errors"
	"fmt"
)

// maxReasons is about how many reasons a refusal names.
const maxReasons = 10

// errTooManyReasons stands for the reasons that were left out.
var errTooManyReasons = errors.New("and more is wrong")

func isNoError(err error) bool { return err == nil }

// withPlace puts the place before each reason of an error. Joined errors are a line each, and each line needs the place.
func withPlace(place string, err error) error {
	joined, is := err.(interface{ Unwrap() []error })
	if !is {
		return fmt.Errorf("%s: %w", place, err)
	}
	var errs []error
	for _, reason := range joined.Unwrap() {
		errs = append(errs, withPlace(place, reason))
	}
	return errors.Join(errs...)
}

// named is a part of a job in an error: its name, or its index if it has none.
func named(noun, name string, index int) string {
	if name == "" {
		return fmt.Sprintf("%s %d", noun, index)
	}
	return fmt.Sprintf("%s %q", noun, name)
}
