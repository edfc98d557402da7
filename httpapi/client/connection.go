package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// connection sends requests to one of several addresses. It stays with an address until that one
// does not answer. It is safe for concurrent use.
type connection struct {
	tls    *tls.Config // of WebSockets, which need HTTP/1.1; or nil
	bases  []*url.URL  // at least one
	fixed  url.Values  // sent with every request
	header http.Header
	http   *http.Client
	// upgrades is for requests whose connections do not stay HTTP.
	upgrades http.RoundTripper
	// dial and proxy are those of both.
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	proxy func(*http.Request) (*url.URL, error)

	mu   sync.Mutex
	used *address // guarded by mu
	// connected reports whether a connection to any server has been made; guarded by mu
	connected bool
	move      *Move      // a move that OnMove has not reported, or nil; guarded by mu
	onMove    func(Move) // guarded by mu
	// onRequest is called when a request begins; guarded by mu
	onRequest func() (answered func())
}

// address is the use of one address, until the connection to it is lost.
type address struct {
	base *url.URL
	next int // the index of the address after it
	// alive ends when the connection is lost. Requests with limits end then.
	alive context.Context
	lose  context.CancelFunc
}

// Move is the change from an address to the next one after a lost connection, or after an answer that cannot
// be decoded.
type Move struct {
	// From and To are URLs of servers. They are equal if there is only one.
	From, To string
	// First reports whether the client has had no connection yet: none was lost.
	First bool
	// Err is the failure of the connection, or an [*UndecodedError]. It is never nil.
	Err error
}

// noLeader is the text of a server without a leader. It has changed nothing.
const noLeader = "No cluster leader"

// withoutLeader reports whether the text is that of a server without a leader, and returns the reason that the
// server has, or empty.
func withoutLeader(text string) (leaderless bool, why string) {
	if text == noLeader {
		return true, ""
	}
	why, leaderless = strings.CutPrefix(text, noLeader+": ")
	if !leaderless {
		why = ""
	}
	return leaderless, why
}

// Limits of the time until an answer begins, besides the wait of a blocking query.
const (
	// staleLimit is the limit of a blocking query with Stale and Wait: any server can answer it at
	// once. With a Wait of a second, a dead server is noticed within two seconds.
	staleLimit = 900 * time.Millisecond
	// readLimit is the limit of other reads while another address is left to try: longer than a
	// server waits for a leader. lastLimit is their limit at the last address.
	readLimit = 10 * time.Second
	lastLimit = 30 * time.Second
	// fileLimit is the limit of a snapshot: a server writes the whole state before it answers.
	fileLimit = 30 * time.Minute
	// pauseLimit is the minimum limit of a pause within an answer.
	pauseLimit = 2 * time.Second
	// dialLimit is the limit of a connection attempt if there are several addresses.
	dialLimit = 2 * time.Second
)

var (
	errSilent = errors.New("the server does not answer")
	errLost   = errors.New("the connection was lost")
)

func newConnection(bases []*url.URL, transport *http.Transport) *connection {
	if len(bases) > 1 {
		transport.DialContext = (&net.Dialer{Timeout: dialLimit}).DialContext
	}
	transport.DialContext = quietly(transport.DialContext)
	c := &connection{
		bases: bases, fixed: url.Values{}, header: http.Header{}, dial: transport.DialContext, proxy: transport.Proxy,
		http: &http.Client{Transport: alerting{transport}}, upgrades: alerting{upgrades(transport)},
	}
	c.use(0)
	return c
}

// use changes to an address. Called with mu.
func (c *connection) use(i int) {
	alive, lose := context.WithCancel(context.Background())
	c.used = &address{base: c.bases[i], next: (i + 1) % len(c.bases), alive: alive, lose: lose}
}

// Address is the URL of the server that the next request goes to.
func (c *Client) Address() string {
	c.connection.mu.Lock()
	defer c.connection.mu.Unlock()
	return c.connection.used.base.String()
}

// OnMove sets the function that reports moves, and returns the one before; nil reports none. With
// several addresses it is called before the first request to the next address, with one address
// when the connection is lost. It is called by the goroutines that send requests. It must not send
// requests.
func (c *Client) OnMove(report func(Move)) (before func(Move)) {
	c.connection.mu.Lock()
	defer c.connection.mu.Unlock()
	before, c.connection.onMove = c.connection.onMove, report
	return before
}

// OnRequest sets the function that is called when a request begins, and returns the one before; nil is none. The
// function that it returns is called when the request has its whole answer or has failed. Reads that wait for a newer
// index are left out, and so are the streams of tasks: they are long because nothing happens.
func OnRequest(c *Client, began func() (answered func())) (before func() (answered func())) {
	c.connection.mu.Lock()
	defer c.connection.mu.Unlock()
	before, c.connection.onRequest = c.connection.onRequest, began
	return before
}

// requesting reports a request, and returns the function to call at its end.
func (c *connection) requesting(values url.Values) (answered func()) {
	c.mu.Lock()
	began := c.onRequest
	c.mu.Unlock()
	if began == nil || values.Has("index") {
		return func() {}
	}
	return began()
}

// Close closes idle connections.
func (c *Client) Close() { c.connection.http.CloseIdleConnections() }

// begin returns the address for a request, and reports the move to it.
func (c *connection) begin() *address {
	c.mu.Lock()
	used, move, report := c.used, c.move, c.onMove
	c.move = nil
	c.mu.Unlock()
	if move != nil && report != nil {
		report(*move)
	}
	return used
}

// lost moves to the next address, unless another request has moved already. Requests with limits end, unless
// err is of an answer that cannot be decoded: others may be answered well.
func (c *connection) lost(from *address, err error) {
	c.mu.Lock()
	moves := c.used == from
	if moves {
		c.use(from.next)
		c.move = &Move{From: from.base.String(), To: c.used.base.String(), First: !c.connected, Err: err}
	}
	c.mu.Unlock()
	if !moves {
		return
	}
	if _, answered := errors.AsType[*UndecodedError](err); !answered {
		from.lose()
	}
	if len(c.bases) == 1 {
		c.begin()
	}
}

// recordConnection records that a connection has been made.
func (c *connection) recordConnection() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connected = true
}

// leave moves to the next address without a report: the server answers, and another one may have
// more. Requests under way continue.
func (c *connection) leave(from *address) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used == from && len(c.bases) > 1 {
		c.use(from.next)
	}
}

// send sends a request to the address in use. If no answer comes, it sends the request to each
// other address once. It sends a request again only if it is a read, if it has an idempotency key,
// or if it has reached no server that may have executed it. The caller closes the body.
func (c *connection) send(ctx context.Context, method, path string, values url.Values, body []byte) (*http.Response, error) {
	repeats := repeatable(method, values)
	for left := len(c.bases) - 1; ; {
		at := c.begin()
		attempt := &request{connection: c, at: at, method: method, path: path, values: values, body: body}
		if repeats {
			attempt.limit, attempt.pause = limits(path, values, left == 0)
		}
		response, err := attempt.do(ctx)
		if attempt.reached.Load() {
			c.recordConnection()
		}
		if err == nil && !elsewhere(response, repeats) {
			if response.Header.Get("X-Nomad-KnownLeader") == "false" {
				c.leave(at)
			}
			return response, nil
		}
		switch {
		case ctx.Err() != nil:
			return response, err
		case errors.Is(err, errLost): // by another request, which has moved
		case err != nil:
			c.lost(at, err)
			left--
		default:
			c.leave(at)
			left--
		}
		if left < 0 || !repeats && attempt.reached.Load() && err != nil {
			return response, err
		}
		if response != nil {
			_ = response.Body.Close()
		}
	}
}

// repeatable reports whether a repeated request cannot change anything twice.
func repeatable(method string, values url.Values) bool {
	return method == http.MethodGet || values.Get("idempotency_token") != ""
}

// limits returns the time in which a read must begin to be answered, and the longest pause within
// its answer. A limit of zero is none.
func limits(path string, values url.Values, last bool) (limit, pause time.Duration) {
	if path == snapshotPath {
		return fileLimit, lastLimit
	}
	limit = readLimit
	if last {
		limit = lastLimit
	}
	if values.Has("index") {
		wait, err := time.ParseDuration(values.Get("wait"))
		switch {
		case err != nil:
			return 0, max(limit, pauseLimit) // the server decides how long it waits
		case values.Has("stale"):
			limit = staleLimit
		}
		return wait + wait/16 + limit, max(limit, pauseLimit) // servers add a sixteenth at most
	}
	return limit, max(limit, pauseLimit)
}

// elsewhere reports whether another server may give a better answer to a request: this one has no
// leader, stops, or has failed. A write that may have been executed is not repeated.
func elsewhere(response *http.Response, repeats bool) bool {
	if response.StatusCode < http.StatusInternalServerError || response.StatusCode == http.StatusNotImplemented {
		return false
	}
	if repeats {
		return true
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody)) // a text that ends early differs
	response.Body = readBefore{io.MultiReader(bytes.NewReader(text), response.Body), response.Body}
	leaderless, _ := withoutLeader(string(bytes.TrimSpace(text)))
	return leaderless
}

// readBefore is a body with the part that was read already.
type readBefore struct {
	io.Reader
	io.Closer
}

// request is one attempt of a request at one address.
type request struct {
	connection   *connection
	at           *address
	method, path string
	values       url.Values
	body         []byte
	// stream is the body instead, if it is not nil. Such a request is sent once.
	stream io.Reader
	// limit is the longest time until the answer begins; zero is none. pause is the longest pause
	// within the answer; zero also means that another request does not end this one.
	limit, pause time.Duration
	// reached reports whether the server may have got the request.
	reached atomic.Bool // other goroutines open connections
}

// do makes the attempt. The error wraps errLost if another request has lost the connection
// meanwhile, and errSilent if a limit has passed.
func (r *request) do(parent context.Context) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(parent)
	a := &answer{request: r, parent: parent, ctx: ctx, end: func() { cancel(nil) }}
	if r.pause > 0 {
		forget := context.AfterFunc(r.at.alive, func() { cancel(errLost) })
		limit := r.limit
		if limit == 0 {
			limit = time.Duration(1<<63 - 1)
		}
		a.timer = time.AfterFunc(limit, func() { cancel(errSilent) })
		a.end = func() {
			a.timer.Stop()
			forget()
			cancel(nil)
		}
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { r.reached.Store(true) }})
	sent, err := r.build(ctx)
	if err != nil {
		a.end()
		return nil, err
	}
	response, err := r.connection.http.Do(sent)
	if err != nil {
		err = a.cause(err)
		a.end()
		return nil, err
	}
	a.ReadCloser = response.Body
	if a.timer != nil {
		a.timer.Reset(r.pause)
	}
	response.Body = a
	return response, nil
}

func (r *request) build(ctx context.Context) (*http.Request, error) {
	target := r.at.base.JoinPath(r.path)
	all := url.Values{}
	for name, v := range r.connection.fixed {
		all[name] = v
	}
	for name, v := range r.values {
		all[name] = v
	}
	target.RawQuery = all.Encode()
	var body io.Reader = bytes.NewReader(r.body)
	if r.stream != nil {
		body = r.stream
	}
	built, err := http.NewRequestWithContext(ctx, r.method, target.String(), body)
	if err != nil {
		return nil, err
	}
	for name, v := range r.connection.header {
		built.Header[name] = v
	}
	switch {
	case r.stream != nil:
		built.Header.Set("Content-Type", "application/octet-stream")
	case len(r.body) > 0:
		built.Header.Set("Content-Type", "application/json")
	}
	return built, nil
}

// answer is the body of an answer. A pause that is too long loses the connection.
type answer struct {
	io.ReadCloser
	request *request
	parent  context.Context // of the caller
	ctx     context.Context // of the attempt
	timer   *time.Timer     // nil without limits
	end     func()          // releases everything
	failed  error           // of a read, or nil
}

func (a *answer) Read(p []byte) (n int, err error) {
	n, err = a.ReadCloser.Read(p)
	if a.timer != nil && n > 0 {
		a.timer.Reset(a.request.pause)
	}
	if err == nil || err == io.EOF {
		return n, err
	}
	a.failed = a.cause(err)
	if a.parent.Err() == nil {
		a.request.connection.lost(a.request.at, a.failed)
	}
	return n, a.failed
}

func (a *answer) Close() error {
	defer a.end()
	return a.ReadCloser.Close()
}

// cause is the reason of a failure: the reason for which we ended the request, or err.
func (a *answer) cause(err error) error {
	if ours := context.Cause(a.ctx); a.parent.Err() == nil && ours != nil {
		return fmt.Errorf("%s %s: %w", a.request.method, a.request.at.base.JoinPath(a.request.path), ours)
	}
	return err
}

// undecoded returns the error of an answer whose text cannot be decoded, and moves to the next address.
func (a *answer) undecoded(why error) error {
	r := a.request
	err := &UndecodedError{Address: r.at.base.String(), Request: r.method + " " + r.path, Err: why}
	r.connection.lost(r.at, err)
	return err
}
