package scenario

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// field is one parameter of a directive: how its value is read and how it is
// written. Reading and printing use the same fields, so that neither knows a
// parameter that the other does not.
type field struct {
	name string
	// flag says that the name stands alone.
	flag bool
	// needed says that the directive is nothing without.
	needed bool
	// set reads a value; that of a flag is empty.
	set func(value string) error
	// text writes the value, or nothing if the parameter is left out; that of a flag
	// is its name.
	text func() string
}

// must is the field where it is needed.
func (f field) must() field {
	f.needed = true
	return f
}

// word is the parameter as it stands in its line, or empty if it does not.
func (f field) word() string {
	text := f.text()
	if text == "" || f.flag {
		return text
	}
	return f.name + "=" + text
}

// written returns the words of fields.
func written(fields []field) []string {
	var words []string
	for _, f := range fields {
		if w := f.word(); w != "" {
			words = append(words, w)
		}
	}
	return words
}

func flag(name string, to *bool) field {
	return field{
		name: name, flag: true,
		set: func(string) error { *to = true; return nil },
		text: func() string {
			if *to {
				return name
			}
			return ""
		},
	}
}

// value is a field of which the zero value is left out.
func value[T comparable](name string, to *T, parse func(string) (T, error), text func(T) string) field {
	var zero T
	return field{
		name: name,
		set: func(v string) (err error) {
			*to, err = parse(v)
			return err
		},
		text: func() string {
			if *to == zero {
				return ""
			}
			return text(*to)
		},
	}
}

// maybe is a field of which nil is left out.
func maybe[T any](name string, to **T, parse func(string) (T, error), text func(T) string) field {
	return field{
		name: name,
		set: func(v string) error {
			got, err := parse(v)
			*to = &got
			return err
		},
		text: func() string {
			if *to == nil {
				return ""
			}
			return text(**to)
		},
	}
}

// always is a field that is written whatever its value.
func (f field) always(text func() string) field {
	f.text = text
	return f
}

func whole[T int | int64](least int64) func(string) (T, error) {
	return func(v string) (T, error) {
		n, err := parseNumber(v, least, math.MaxInt32)
		return T(n), err
	}
}

func wholeText[T int | int64](n T) string { return strconv.FormatInt(int64(n), 10) }

// number is a whole number above zero, which is its default.
func number[T int | int64](name string, to *T) field {
	return value(name, to, whole[T](1), wholeText[T])
}

func maybeNumber(name string, to **int) field {
	return maybe(name, to, parseCount, wholeText[int])
}

func parseCount(v string) (int, error) {
	n, err := parseNumber(v, 0, maxIndex)
	return int(n), err
}

// span is a time above zero, which is its default.
func span(name string, to *time.Duration) field { return spanBy(parseDuration, name, to) }

// spanBy is a span that a function reads.
func spanBy(parse func(string) (time.Duration, error), name string, to *time.Duration) field {
	return value(name, to, func(v string) (time.Duration, error) {
		d, err := parse(v)
		if err == nil && d == 0 {
			err = fmt.Errorf("%q: leave it out for the default", v)
		}
		return d, err
	}, durationText)
}

// drawn is a time that comes, or is left out: then it is none.
func drawn(name string, to *Range) field {
	return value(name, to, func(v string) (Range, error) {
		r, err := parseRange(v)
		if r.Min == Never {
			err = errors.New("never: then nothing would go on")
		}
		return r, err
	}, Range.String)
}

func maybeDrawn(name string, to **Range) field { return maybe(name, to, parseRange, Range.String) }

// chance is a probability above zero.
func chance(name string, to *float64) field {
	return value(name, to, func(v string) (float64, error) {
		x, err := parseFraction(v, 1)
		if err == nil && x == 0 {
			err = fmt.Errorf("%q: leave the line out", v)
		}
		return x, err
	}, fractionText)
}

// choice is one of several words.
func choice[T ~string](name string, to *T, words ...T) field {
	return value(name, to, func(v string) (T, error) {
		if slices.Contains(words, T(v)) {
			return T(v), nil
		}
		return "", fmt.Errorf("%q is none of %s", v, enumerate(words))
	}, func(v T) string { return string(v) })
}

func enumerate[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}

// name is a name of something.
func name(label string, to *string) field {
	return value(label, to, func(v string) (string, error) { return v, checkName(v) },
		func(v string) string { return v })
}

// names is several names of something.
func names(label string, to *[]string) field {
	return field{
		name: label,
		set: func(v string) error {
			*to = strings.Split(v, ",")
			var errs []error
			for _, n := range *to {
				errs = append(errs, checkName(n))
			}
			return errors.Join(errs...)
		},
		text: func() string { return strings.Join(*to, ",") },
	}
}
