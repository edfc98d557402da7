package scenario

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
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

// declaration is the tag of a field that is a parameter: `drain:"count,0..1000000,always"`. It has the
// name of the parameter, and then options:
//
//   - required: the directive must have the parameter. It is always printed.
//   - always: it is printed even if it is zero.
//   - 1..100: the bounds of a number. A number without them is above zero, and zero is the default.
//   - =one|two: the words that the value may be.
//   - deadline, ahead, long: a time with a parser of its own. target: the target of a fault.
type declaration struct {
	name    string
	options []string
}

func (d declaration) has(option string) bool { return slices.Contains(d.options, option) }

// bounds are the bounds of a number.
func (d declaration) bounds() (least, most int64) {
	for _, o := range d.options {
		if n, _ := fmt.Sscanf(o, "%d..%d", &least, &most); n == 2 {
			return least, most
		}
	}
	return 1, math.MaxInt32
}

// words are the words that the value may be, or nil.
func (d declaration) words() []string {
	for _, o := range d.options {
		if words, is := strings.CutPrefix(o, "="); is {
			return strings.Split(words, "|")
		}
	}
	return nil
}

// parameters returns the parameters in a struct, for printing.
func parameters(of any) []field { return (*scope)(nil).fields(of) }

// fields returns the parameters in a struct: its fields with tags, in the order in which they are
// printed. A field without a tag may be a struct with parameters. to is a pointer to the struct.
func (p *scope) fields(to any) (fields []field) {
	v := reflect.ValueOf(to).Elem()
	for i := range v.NumField() {
		tag, is := v.Type().Field(i).Tag.Lookup("drain")
		at := v.Field(i).Addr().Interface()
		switch {
		case is:
			words := strings.Split(tag, ",")
			fields = append(fields, p.field(declaration{words[0], words[1:]}, at))
		case v.Field(i).Kind() == reflect.Struct:
			fields = append(fields, p.fields(at)...)
		}
	}
	switch o := to.(type) {
	case *Group:
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == "plugin" })
		fields[i] = plugin(&o.Plugin, &o.Serves)
	case *VolumeChange:
		return o.only(fields)
	}
	return fields
}

// field returns the parameter of a declaration. to is a pointer to its value.
func (p *scope) field(d declaration, to any) (f field) {
	switch to := to.(type) {
	case *bool:
		f = flag(d.name, to)
	case *int:
		f = number(d, to)
	case *int64:
		f = number(d, to)
	case **int:
		f = pointer(d.name, to, parseCount, wholeText[int])
	case **cluster.ReschedulePolicy:
		f = pointer(d.name, to, parseReschedule, rescheduleText)
	case **Check:
		f = pointer(d.name, to, parseCheck, Check.text)
	case *float64:
		f = value(d, to, parseChance, fractionText)
	case **float64:
		f = pointer(d.name, to, parseFraction, fractionText)
	case *time.Duration:
		f = span(d, to)
	case *Range:
		f = value(d, to, parseDrawn, Range.String)
	case **Range:
		f = pointer(d.name, to, parseRange, Range.String)
	case *cluster.NodeID:
		f = value(d, to, p.theNode, itself[cluster.NodeID])
	case *[]cluster.NodeID:
		f = field{name: d.name, text: func() string { return listText(*to) }, set: func(v string) (err error) {
			*to, err = p.someNodes(v)
			return err
		}}
	case *[]int:
		f = list(d.name, to, p.anotherServer, serverText)
	case *[]string:
		f = list(d.name, to, parseName, itself[string])
	case *[]Devices:
		f = list(d.name, to, parseDevices, Devices.text)
	case *[]DeviceRequest:
		f = list(d.name, to, parseRequest, DeviceRequest.text)
	case *cluster.PortRange:
		f = value(d, to, parsePorts, cluster.PortRange.String)
	case *[]Port:
		f = list(d.name, to, parsePort, Port.text)
	case *[]VolumeUse:
		f = list(d.name, to, parseUse, VolumeUse.text)
	default:
		f = word(d, reflect.ValueOf(to).Elem())
	}
	f.required = d.has("required")
	return f
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

// value is a field that is left out if it is zero, unless the declaration prints it always.
func value[T comparable](d declaration, to *T, parse func(string) (T, error), text func(T) string) field {
	var zero T
	return field{
		name: d.name,
		set: func(v string) (err error) {
			*to, err = parse(v)
			return err
		},
		text: func() string {
			if *to == zero && !d.has("always") && !d.has("required") {
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

// number is a whole number.
func number[T int | int64](d declaration, to *T) field {
	return value(d, to, func(v string) (T, error) {
		least, most := d.bounds()
		n, err := parseNumber(v, least, most)
		return T(n), err
	}, wholeText[T])
}

func wholeText[T int | int64](n T) string { return strconv.FormatInt(int64(n), 10) }

func parseCount(v string) (int, error) {
	n, err := parseNumber(v, 0, maxIndex)
	return int(n), err
}

// span is a time. Most are above zero, and zero is the default.
func span(d declaration, to *time.Duration) field {
	parse := parseDuration
	switch {
	case d.has("deadline"):
		return value(d, to, parseDeadline, deadlineText)
	case d.has("ahead"):
		return value(d, to, parseAhead, DurationText)
	case d.has("long"):
		parse = parseAnyDuration
	}
	return value(d, to, func(v string) (time.Duration, error) {
		t, err := parse(v)
		if err == nil && t == 0 {
			err = fmt.Errorf("%q: leave it out for the default", v)
		}
		return t, err
	}, DurationText)
}

// parseDrawn reads a range that is never [Never].
func parseDrawn(v string) (Range, error) {
	r, err := parseRange(v)
	if r.Min == Never {
		err = errors.New("never is not allowed: the run would stop")
	}
	return r, err
}

// parseChance reads a probability above zero.
func parseChance(v string) (float64, error) {
	x, err := parseFraction(v)
	if err == nil && x == 0 {
		err = fmt.Errorf("%q: a fault that never strikes has no effect", v)
	}
	return x, err
}

// word is one of the words of the declaration, or a name if it has none. The value is a string.
func word(d declaration, v reflect.Value) field {
	return field{
		name: d.name,
		set: func(text string) error {
			v.SetString(text)
			switch words := d.words(); {
			case words == nil && d.has("target"): // [Fault.check] checks it
				return nil
			case words == nil:
				return checkName(text)
			case !slices.Contains(words, text):
				return unknown("value", text, words)
			}
			return nil
		},
		text: v.String,
	}
}

func parseName(_ []string, v string) (string, error) { return v, checkName(v) }

func texts[T ~string](words []T) []string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return texts
}

func itself[T ~string](v T) string { return string(v) }

// list is a parameter of several values with commas between them. parse also gets the values before
// the one that it reads.
func list[T any](name string, to *[]T, parse func(before []T, text string) (T, error), text func(T) string) field {
	return field{
		name: name,
		set: func(v string) error {
			for part := range strings.SplitSeq(v, ",") {
				got, err := parse(*to, part)
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
