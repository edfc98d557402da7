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

// field is one parameter of a directive. Reading and printing use the same fields, so that both
// have the same parameters.
type field struct {
	name string
	// flag is true if the parameter has no value.
	flag bool
	// bare is true if the parameter may have a value. Its text then has the name.
	bare bool
	// required is true if the directive must have the parameter.
	required bool
	// set reads a value. The value of a flag is empty.
	set func(value string) error
	// text returns the printed value, the name of a flag, or empty if the parameter is left out.
	text func() string
}

// must returns the field as a required one.
func (f field) must() field {
	f.required = true
	return f
}

// word returns the printed parameter, or empty if it is left out.
func (f field) word() string {
	text := f.text()
	if text == "" || f.flag || f.bare {
		return text
	}
	return f.name + "=" + text
}

// written returns the printed parameters.
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

// value is a field that is left out if it is zero.
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

// pointer is a field that is left out if it is nil.
func pointer[T any](name string, to **T, parse func(string) (T, error), text func(T) string) field {
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

// always returns the field with a text that prints every value.
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

// number is a whole number above zero. The default is zero.
func number[T int | int64](name string, to *T) field {
	return value(name, to, whole[T](1), wholeText[T])
}

func optionalCount(name string, to **int) field {
	return pointer(name, to, parseCount, wholeText[int])
}

func parseCount(v string) (int, error) {
	n, err := parseNumber(v, 0, maxIndex)
	return int(n), err
}

// span is a time above zero. The default is zero.
func span(name string, to *time.Duration) field { return spanBy(parseDuration, name, to) }

// spanBy is a span with a parser of its own.
func spanBy(parse func(string) (time.Duration, error), name string, to *time.Duration) field {
	return value(name, to, func(v string) (time.Duration, error) {
		d, err := parse(v)
		if err == nil && d == 0 {
			err = fmt.Errorf("%q: leave it out for the default", v)
		}
		return d, err
	}, durationText)
}

// drawn is a range that is never [Never].
func drawn(name string, to *Range) field {
	return value(name, to, func(v string) (Range, error) {
		r, err := parseRange(v)
		if r.Min == Never {
			err = errors.New("never is not allowed: the run would stop")
		}
		return r, err
	}, Range.String)
}

func optionalRange(name string, to **Range) field { return pointer(name, to, parseRange, Range.String) }

// chance is a probability above zero.
func chance(name string, to *float64) field {
	return value(name, to, func(v string) (float64, error) {
		x, err := parseFraction(v, 1)
		if err == nil && x == 0 {
			err = fmt.Errorf("%q: a fault that never strikes has no effect", v)
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
		return "", unknown("value", v, texts(words))
	}, func(v T) string { return string(v) })
}

func texts[T ~string](words []T) []string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return texts
}

// name is a parameter with one name.
func name(label string, to *string) field {
	return value(label, to, func(v string) (string, error) { return v, checkName(v) },
		func(v string) string { return v })
}

// names is a parameter with several names.
func names(label string, to *[]string) field {
	return list(label, to, func(v string) (string, error) { return v, checkName(v) }, func(v string) string { return v })
}

// list is a parameter of several values with commas between them.
func list[T any](name string, to *[]T, parse func(string) (T, error), text func(T) string) field {
	return field{
		name: name,
		set: func(v string) error {
			for part := range strings.SplitSeq(v, ",") {
				got, err := parse(part)
				if err != nil {
					return err
				}
				*to = append(*to, got)
			}
			return nil
		},
		text: func() string {
			parts := make([]string, len(*to))
			for i, v := range *to {
				parts[i] = text(v)
			}
			return strings.Join(parts, ",")
		},
	}
}
