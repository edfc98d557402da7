package knob

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// field is a field of a type, its default and its bounds.
type field[T comparable] struct {
	at        *T
	byDefault T
	parse     func(string) (T, error)
	format    func(T) string
	within    func(T) bool
	bounds    string
}

func (f field[T]) Set(text string) error {
	v, err := f.parse(text)
	if err != nil {
		return err
	}
	if !f.within(v) {
		return fmt.Errorf("%q must be %s", text, f.bounds)
	}
	*f.at = v
	return nil
}

func (f field[T]) String() string  { return f.format(*f.at) }
func (f field[T]) Default() string { return f.format(f.byDefault) }
func (f field[T]) Bounds() string  { return f.bounds }

func (f field[T]) IsZero() bool {
	var zero T
	return *f.at == zero
}

func (f field[T]) SetDefault() {
	if f.IsZero() {
		*f.at = f.byDefault
	}
}

func (f field[T]) Check() bool { return f.IsZero() || f.within(*f.at) }

// Int is a number that is at least the minimum.
func Int(at *int, minimum, byDefault int) Value {
	return field[int]{
		at: at, byDefault: byDefault, format: strconv.Itoa,
		parse: func(text string) (int, error) {
			n, err := strconv.Atoi(text)
			if err != nil || n == 0 {
				return 0, fmt.Errorf("%q is not a number above zero", text)
			}
			return n, nil
		},
		within: func(n int) bool { return n >= minimum }, bounds: fmt.Sprintf(">= %d", minimum),
	}
}

// Rate is a number of events in a second, above zero.
func Rate(at *float64, byDefault float64) Value {
	return field[float64]{
		at: at, byDefault: byDefault, format: func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) },
		parse: func(text string) (float64, error) {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil || x == 0 {
				return 0, fmt.Errorf("%q is not a number above zero", text)
			}
			return x, nil
		},
		within: func(x float64) bool { return x > 0 }, bounds: "> 0",
	}
}

// Duration is a time of zero or more. Its unit is in its text: "250ms".
func Duration(at *time.Duration, byDefault time.Duration) Value {
	return field[time.Duration]{
		at: at, byDefault: byDefault, parse: parseDuration, format: formatDuration,
		within: func(d time.Duration) bool { return d >= 0 }, bounds: ">= 0",
	}
}

// none is the text of a negative duration.
const none = "none"

// DurationOrNone is a duration, or a negative value, whose text is "none".
func DurationOrNone(at *time.Duration, byDefault time.Duration) Value {
	return field[time.Duration]{
		at: at, byDefault: byDefault,
		parse: func(text string) (time.Duration, error) {
			if text == none {
				return -1, nil
			}
			return parseDuration(text)
		},
		format: func(d time.Duration) string {
			if d < 0 {
				return none
			}
			return formatDuration(d)
		},
		within: func(time.Duration) bool { return true }, bounds: "a duration or none",
	}
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration: write 5s, 10m or 1h30m", text)
	}
	return d, nil
}

// formatDuration returns a duration without zero parts at its end: "1h30m".
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Choice is one of several words. The first is the default. The field holds the index of its word.
func Choice[T ~uint8](at *T, words ...string) Value {
	return field[T]{
		at: at,
		parse: func(text string) (T, error) {
			i := slices.Index(words, text)
			if i < 0 {
				return 0, fmt.Errorf("unknown value %q: expected one of %s", text, strings.Join(words, ", "))
			}
			return T(i), nil
		},
		format: func(v T) string {
			if int(v) >= len(words) {
				return strconv.Itoa(int(v))
			}
			return words[v]
		},
		within: func(v T) bool { return int(v) < len(words) }, bounds: list(words),
	}
}
