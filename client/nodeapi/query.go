package nodeapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// query is the parameters of a request.
type query struct{ values url.Values }

func queryOf(r *http.Request) (query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return query{}, refuse(http.StatusBadRequest, "the query is malformed: "+err.Error())
	}
	return query{values}, nil
}

func (q query) text(name string) string { return q.values.Get(name) }

// bytes returns a number of bytes. Without the parameter it is zero.
func (q query) bytes(name string) (int64, error) {
	text := q.text(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, refuse(http.StatusBadRequest, fmt.Sprintf("%s: %q is not a number of bytes", name, text))
	}
	return n, nil
}

// offset returns a number of bytes that is not negative.
func (q query) offset() (int64, error) {
	n, err := q.bytes("offset")
	if err == nil && n < 0 {
		err = refuse(http.StatusBadRequest, "offset: it is negative")
	}
	return n, err
}

// flag returns a boolean, or the default.
func (q query) flag(name string, standard bool) (bool, error) {
	text := q.text(name)
	if text == "" {
		return standard, nil
	}
	is, err := strconv.ParseBool(text)
	if err != nil {
		return false, refuse(http.StatusBadRequest, fmt.Sprintf("%s: %q is neither true nor false", name, text))
	}
	return is, nil
}

// fromEnd reports whether the offset counts from the end.
func (q query) fromEnd() (bool, error) {
	switch origin := q.text("origin"); origin {
	case "", "start":
		return false, nil
	case "end":
		return true, nil
	default:
		return false, refuse(http.StatusBadRequest, fmt.Sprintf("origin: %q is neither start nor end", origin))
	}
}
