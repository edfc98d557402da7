package nodeapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// query is the parameters of a request. err is the first mistake in those that were read, or nil.
type query struct {
	values url.Values
	err    error
}

func queryOf(r *http.Request) *query {
	values, err := url.ParseQuery(r.URL.RawQuery)
	q := &query{values: values}
	if err != nil {
		q.refuse("the query is malformed: %v", err)
	}
	return q
}

// refuse notes a mistake.
func (q *query) refuse(format string, args ...any) {
	if q.err == nil {
		q.err = refuse(http.StatusBadRequest, fmt.Sprintf(format, args...))
	}
}

func (q *query) text(name string) string { return q.values.Get(name) }

// bytes returns a number of bytes. Without the parameter it is zero.
func (q *query) bytes(name string) int64 {
	text := q.text(name)
	n, err := strconv.ParseInt(text, 10, 64)
	if text != "" && err != nil {
		q.refuse("%s: %q is not a number of bytes", name, text)
	}
	return n
}

// offset returns a number of bytes that is not negative.
func (q *query) offset() int64 {
	n := q.bytes("offset")
	if n < 0 {
		q.refuse("offset: it is negative")
	}
	return n
}

// flag returns a boolean, or the default.
func (q *query) flag(name string, standard bool) bool {
	text := q.text(name)
	if text == "" {
		return standard
	}
	is, err := strconv.ParseBool(text)
	if err != nil {
		q.refuse("%s: %q is neither true nor false", name, text)
	}
	return is
}

// fromEnd reports whether the offset counts from the end.
func (q *query) fromEnd() bool {
	origin := q.text("origin")
	if origin != "" && origin != "start" && origin != "end" {
		q.refuse("origin: %q is neither start nor end", origin)
	}
	return origin == "end"
}
