package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
)

// Client sends requests to one server of a list, which forwards those that another server must
// answer. When the connection is lost, it changes to the next server. It is safe for concurrent use.
type Client struct{ connection *connection }

// New returns a client. It sends nothing yet.
func New(c Config) (*Client, error) {
	bases, err := c.bases()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if slices.ContainsFunc(bases, func(base *url.URL) bool { return base.Scheme == "https" }) {
		if transport.TLSClientConfig, err = c.TLS.load(); err != nil {
			return nil, err
		}
	}
	at := newConnection(bases, transport)
	if transport.TLSClientConfig != nil {
		at.tls = transport.TLSClientConfig.Clone()
		at.tls.NextProtos = []string{"http/1.1"}
	}
	if c.Transport != nil {
		at.http.Transport = c.Transport
	}
	for name, value := range map[string]string{"region": c.Region, "namespace": c.Namespace} {
		if value != "" {
			at.fixed.Set(name, value)
		}
	}
	if c.Token != "" {
		at.header.Set("X-Nomad-Token", c.Token)
	}
	if c.Process != "" {
		at.header.Set(session.ProcessHeader, c.Process)
	}
	return &Client{at}, nil
}

// Query holds the parameters of a read. The zero value reads the newest state.
type Query struct {
	// Index makes the read wait for a newer index than this one, which is that of an earlier
	// answer; zero does not wait.
	Index uint64
	// Wait bounds the wait; zero leaves that to the server.
	Wait time.Duration
	// Stale lets any server answer from its own state, which may be older than that of an earlier
	// answer: compare the indexes.
	Stale bool
	// Prefix, Filter, PerPage and NextToken select from a list. Filter is an expression over the
	// fields of the listed objects, NextToken the token of the page before.
	Prefix, Filter, NextToken string
	PerPage                   int
	// Namespace replaces that of the client, unless it is empty.
	Namespace string
}

// pathElement escapes an id for a path. Servers clean paths, so steps in a path are escaped too.
func pathElement(id string) string {
	if id == "." || id == ".." {
		return strings.ReplaceAll(id, ".", "%2E")
	}
	return url.PathEscape(id)
}

func (q Query) values() url.Values {
	v := url.Values{}
	set := func(name, value string, present bool) {
		if present {
			v.Set(name, value)
		}
	}
	set("index", strconv.FormatUint(q.Index, 10), q.Index > 0)
	set("wait", strconv.FormatInt(q.Wait.Milliseconds(), 10)+"ms", q.Wait > 0)
	set("stale", "", q.Stale)
	set("prefix", q.Prefix, q.Prefix != "")
	set("filter", q.Filter, q.Filter != "")
	set("next_token", q.NextToken, q.NextToken != "")
	set("namespace", q.Namespace, q.Namespace != "")
	set("per_page", strconv.Itoa(q.PerPage), q.PerPage > 0)
	return v
}

// Answer holds the headers of an answer.
type Answer struct {
	// Index is the raft index of the rows read or of the write; zero if the server sent none.
	Index uint64
	// NextToken is where the next page begins, or empty.
	NextToken string
	// KnownLeader reports whether the server had a leader. LastContact is the time since the
	// leader's last message to it.
	KnownLeader bool
	LastContact time.Duration
}

func readAnswer(h http.Header) Answer {
	a := Answer{NextToken: h.Get("X-Nomad-NextToken"), KnownLeader: h.Get("X-Nomad-KnownLeader") == "true"}
	a.Index, _ = strconv.ParseUint(h.Get("X-Nomad-Index"), 10, 64)
	ms, _ := strconv.ParseInt(h.Get("X-Nomad-LastContact"), 10, 64)
	a.LastContact = time.Duration(ms) * time.Millisecond
	return a
}

// Pause is the wait of a loop of reads after a failed one.
const Pause = 500 * time.Millisecond

// get reads the resource at a path.
func get[T any](ctx context.Context, c *Client, path string, values url.Values) (T, Answer, error) {
	return call[T](ctx, c, http.MethodGet, path, values, nil)
}

// put writes a body to a path.
func put[T, Body any](ctx context.Context, c *Client, path string, body Body) (T, Answer, error) {
	return putWith[T](ctx, c, path, nil, body)
}

func putWith[T, Body any](ctx context.Context, c *Client, path string, values url.Values, body Body) (T, Answer, error) {
	text, err := json.Marshal(body)
	if err != nil {
		var none T
		return none, Answer{}, fmt.Errorf("encoding the request: %w", err)
	}
	return call[T](ctx, c, http.MethodPut, path, values, text)
}

// do sends a request whose answer has no content.
func do[Body any](ctx context.Context, c *Client, method, path string, values url.Values, body Body) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding the request: %w", err)
	}
	defer c.connection.requesting(values)()
	response, err := c.connection.send(ctx, method, path, values, text)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return readError(response)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	return nil
}

// read reads the text of the resource at a path.
func read(ctx context.Context, c *Client, path string, values url.Values) (text []byte, a Answer, err error) {
	defer c.connection.requesting(values)()
	response, err := c.connection.send(ctx, http.MethodGet, path, values, nil)
	if err != nil {
		return nil, a, err
	}
	defer response.Body.Close()
	a = readAnswer(response.Header)
	if response.StatusCode != http.StatusOK {
		return nil, a, readError(response)
	}
	if text, err = io.ReadAll(response.Body); err != nil {
		return nil, a, fmt.Errorf("reading the answer to %s %s: %w", http.MethodGet, path, err)
	}
	return text, a, nil
}

// call sends a request, to each address at most once while the answers cannot be decoded and a repetition is
// safe. The answer's index is read of errors too.
func call[T any](ctx context.Context, c *Client, method, path string, values url.Values, body []byte) (out T, a Answer, err error) {
	defer c.connection.requesting(values)()
	for left := len(c.connection.bases) - 1; ; left-- {
		out, a, err = callOnce[T](ctx, c, method, path, values, body)
		if _, useless := errors.AsType[*UndecodedError](err); !useless || left == 0 || !repeatable(method, values) {
			return out, a, err
		}
	}
}

func callOnce[T any](ctx context.Context, c *Client, method, path string, values url.Values, body []byte) (out T, a Answer, err error) {
	response, err := c.connection.send(ctx, method, path, values, body)
	if err != nil {
		return out, a, err
	}
	defer response.Body.Close()
	a = readAnswer(response.Header)
	if response.StatusCode != http.StatusOK {
		return out, a, readError(response)
	}
	if err := json.NewDecoder(response.Body).Decode(&out); err != nil {
		var none T
		if sent, is := response.Body.(*answer); is && sent.failed == nil {
			return none, a, sent.undecoded(err)
		}
		return none, a, fmt.Errorf("reading the answer to %s %s: %w", method, path, err)
	}
	_, _ = io.Copy(io.Discard, response.Body) // so that the connection can be used again
	return out, a, nil
}
