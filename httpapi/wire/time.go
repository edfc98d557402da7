package wire

import (
	"bytes"
	"fmt"
	"time"
)

// Time is a time that is null while it is zero.
type Time struct{ time.Time }

// NewTime returns t as it travels.
func NewTime(t time.Time) Time { return Time{t.UTC()} }

// MarshalJSON returns RFC 3339 with nanoseconds in UTC, or null.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return t.UTC().MarshalJSON()
}

// UnmarshalJSON accepts the output of MarshalJSON, and the zero time in full. It refuses a time
// whose year in UTC does not have four digits: MarshalJSON could not encode it.
func (t *Time) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		*t = Time{}
		return nil
	}
	var parsed time.Time
	if err := parsed.UnmarshalJSON(b); err != nil {
		return err
	}
	if year := parsed.UTC().Year(); year < 0 || year > 9999 {
		return fmt.Errorf("the year of time %s is not between 0 and 9999 in UTC", b)
	}
	*t = NewTime(parsed)
	return nil
}

// unixNano is a time in Unix nanoseconds, zero for the zero time.
func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// fromUnixNano is the inverse of unixNano.
func fromUnixNano(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}
