package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Error is an answer other than 200.
type Error struct {
	// Status is the answer's status code, Body its text, without space around it.
	Status int
	Body   string
	// NoToken reports that the server refused a request without a token.
	NoToken bool
}

// Error returns the text that the compatible client prints. If the request needed a token, the text adds that it
// had none.
func (e *Error) Error() string {
	text := fmt.Sprintf("Unexpected response code: %d (%s)", e.Status, e.Body)
	if e.NoToken {
		text += ": no token was sent"
	}
	return text
}

// UndecodedError is an answer of 200 with a text that is not the expected JSON: of a proxy that answers instead of a
// server, or one that ends early. What the request changed is not known.
type UndecodedError struct {
	// Address is the URL of the server, Request the method and path.
	Address, Request string
	// Err is why the text cannot be decoded.
	Err error
}

// Error names the server, the request and the reason.
func (e *UndecodedError) Error() string {
	return fmt.Sprintf("%s answers %s with text that is not the expected JSON: %v", e.Address, e.Request, e.Err)
}

func (e *UndecodedError) Unwrap() error { return e.Err }

// maxErrorBody bounds the part of an error answer that is read.
const maxErrorBody = 16 << 10

func readError(r *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxErrorBody))
	if err != nil {
		body = []byte(err.Error())
	}
	noToken := r.StatusCode == http.StatusForbidden && r.Request != nil && r.Request.Header.Get("X-Nomad-Token") == ""
	return &Error{Status: r.StatusCode, Body: strings.TrimSpace(string(body)), NoToken: noToken}
}

// NotFound reports whether the server answered that the subject does not exist.
func NotFound(err error) bool { return hasStatus(err, http.StatusNotFound) }

// NoLeader reports whether a server answered that it has no leader.
func NoLeader(err error) bool {
	answer, is := errors.AsType[*Error](err)
	if !is || answer.Status < http.StatusInternalServerError {
		return false
	}
	leaderless, _ := withoutLeader(answer.Body)
	return leaderless
}

// WhyNoLeader returns the reason that a server without a leader has, such as that it cannot write its log, or empty.
func WhyNoLeader(err error) (why string) {
	if answer, is := errors.AsType[*Error](err); is {
		_, why = withoutLeader(answer.Body)
	}
	return why
}

// UnknownNode reports whether the error of a heartbeat may mean that the servers do not have the node
// or its secret. Servers with tokens answer 403 for both, because a caller without a right must not
// learn which nodes exist. The node should register again, with backoff.
func UnknownNode(err error) bool {
	answer, is := errors.AsType[*Error](err)
	return is && (answer.Status == http.StatusNotFound || answer.Status == http.StatusForbidden || strings.Contains(answer.Body, "node not found"))
}

func hasStatus(err error, status int) bool {
	answer, is := errors.AsType[*Error](err)
	return is && answer.Status == status
}

// Refused reports whether the server understood the request and refused it: a retry gets the same
// answer. Other errors may pass: no connection, no leader, a server that stops.
func Refused(err error) bool {
	answer, is := errors.AsType[*Error](err)
	passes := is && (answer.Status == http.StatusTooManyRequests || answer.Status == http.StatusRequestTimeout)
	return is && answer.Status < http.StatusInternalServerError && !passes
}
