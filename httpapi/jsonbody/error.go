package jsonbody

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jsonscan"
)

// describe returns the failure of a body that encoding/json has refused. It names the place as a path in
// the body, such as "Job.TaskGroups[2].Tasks[0].Resources.CPU", and no type of this program.
func describe(body []byte, err error) error {
	switch err := err.(type) {
	case *json.UnmarshalTypeError:
		place := cmp.Or(jsonscan.At(body, int(err.Offset)), "the request body")
		return failure.Bad("%s is %s; it must be %s", place, foundText(err.Value), neededText(err))
	case *json.SyntaxError:
		text := fmt.Sprintf("the request body is not JSON at byte %d: %v", err.Offset, err)
		if path := jsonscan.At(body, int(err.Offset)); path != "" {
			text = path + ": " + text
		}
		return failure.Bad("%s", text)
	}
	return failure.Bad("%v", err)
}

// foundText describes the found value, which encoding/json names as "object" or "number 1.5".
func foundText(value string) string {
	kind, number, _ := strings.Cut(value, " ")
	switch {
	case kind == "array":
		return "a list"
	case kind == "object":
		return "an object"
	case kind == "bool":
		return "true or false"
	case kind == "number" && number != "":
		if len(number) > failure.QuotedBytes {
			number = number[:failure.QuotedBytes] + "…"
		}
		return "the number " + number
	}
	return "a " + kind
}

// neededText describes the values that the place can have.
func neededText(err *json.UnmarshalTypeError) string {
	if err.Type == reflect.TypeFor[time.Duration]() {
		return "a whole number of nanoseconds, of at most 64 bits, such as 30000000000 for 30 seconds"
	}
	switch err.Type.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("a whole number of at most %d bits, not negative", err.Type.Bits())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("a whole number of at most %d bits", err.Type.Bits())
	}
	return "an object"
}
