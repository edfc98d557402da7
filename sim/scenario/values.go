package scenario

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// longest bounds every time except [Never], kill timeouts and shutdown delays.
const longest = 100 * 365 * 24 * time.Hour

// parseDuration reads a time from zero to longest.
func parseDuration(text string) (time.Duration, error) {
	d, err := parseAnyDuration(text)
	if err == nil && d > longest {
		return 0, fmt.Errorf("%q is more than a hundred years", text)
	}
	return d, err
}

// parseAnyDuration reads a time from zero to the largest duration.
func parseAnyDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a time: write 5s, 10m or 1h30m", text)
	case d < 0:
		return 0, fmt.Errorf("%q is below zero", text)
	}
	return d, nil
}

// DurationText prints a time without trailing zero parts: "1h30m".
func DurationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

const neverText = "never"

// parseRange reads one time, or two times with ".." between them.
func parseRange(text string) (Range, error) {
	if text == neverText {
		return Range{Never, Never}, nil
	}
	from, to, ranged := strings.Cut(text, "..")
	if !ranged {
		to = from
	}
	low, err := parseDuration(from)
	if err != nil {
		return Range{}, err
	}
	high, err := parseDuration(to)
	if err != nil {
		return Range{}, err
	}
	if high < low {
		return Range{}, fmt.Errorf("%q: the second time is less than the first", text)
	}
	return Range{low, high}, nil
}

// String returns the printed range: "2s", "1s..3s" or "never".
func (r Range) String() string {
	switch {
	case r.Min == Never:
		return neverText
	case r.Min == r.Max:
		return DurationText(r.Min)
	}
	return DurationText(r.Min) + ".." + DurationText(r.Max)
}

// parseNumber reads a whole number within bounds.
func parseNumber(text string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && n > most:
		return 0, fmt.Errorf("%q: at most %d", text, most)
	case err != nil:
		return 0, fmt.Errorf("%q is not a whole number", text)
	case n < least:
		return 0, fmt.Errorf("%q: at least %d", text, least)
	}
	return n, nil
}

// parseFraction reads a number from zero to one.
func parseFraction(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(x) || math.IsInf(x, 0):
		return 0, fmt.Errorf("%q is not a number", text)
	case x < 0 || math.Signbit(x):
		return 0, fmt.Errorf("%q is below zero", text)
	case x > 1:
		return 0, fmt.Errorf("%q: at most 1", text)
	}
	return x, nil
}

func fractionText(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
