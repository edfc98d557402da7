package agent

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/connlimit"
)

// sessions are the sessions of nodes that this server holds, and the way to those of other servers. It is
// safe for concurrent use. It owns a goroutine for each session.
type sessions struct {
	agent *Agent
	// searchTime bounds a search for a session on all servers.
	searchTime time.Duration

	mu sync.Mutex
	// ended means that the agent stops; guarded by mu.
	ended bool
	// held are the open sessions; guarded by mu.
	held map[cluster.NodeID]*heldSession
	// running counts the goroutines, and the requests to nodes.
	running sync.WaitGroup
}

var _ httpapi.Nodes = (*sessions)(nil)

// heldSession is the session of a process. The id of the process is empty if its client is of an older
// release.
type heldSession struct {
	*session.ServerEnd
	process string
}

func newSessions(a *Agent) *sessions {
	return &sessions{agent: a, searchTime: cmp.Or(a.config.searchTime, surveyTimeout), held: make(map[cluster.NodeID]*heldSession)}
}

// errStopping refuses sessions and requests while the agent stops.
var errStopping = errors.New("the server is stopping")

// begin counts a goroutine or a request, until the caller calls running.Done.
func (s *sessions) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errStopping
	}
	s.running.Add(1)
	return nil
}

// Hold holds the session of a node, in place of an older one. The session of another process stays if it
// answers a ping.
func (s *sessions) Hold(w http.ResponseWriter, r *http.Request, id cluster.NodeID) error {
	if err := s.begin(); err != nil {
		return fmt.Errorf("%w: %w", httpapi.ErrUnavailable, err)
	}
	process := r.Header.Get(session.ProcessHeader)
	if err := s.agent.processes.admitSession(r.Context(), id, process); err != nil {
		s.running.Done()
		return err
	}
	end, err := session.Accept(w, r, func(conn net.Conn) bool {
		if old := s.of(id); old != nil {
			_ = old.Close() // its place may be the only one that is left
		}
		return connlimit.Move(conn, s.agent.conns.sessions)
	})
	if err != nil {
		s.agent.config.Logger.Debug("no session for a node", "node", id, "error", err)
		s.running.Done()
		return nil // it has been answered
	}
	held := &heldSession{end, process}
	s.add(id, held)
	go s.keep(id, held)
	return nil
}

// add makes a session that of a node.
func (s *sessions) add(id cluster.NodeID, end *heldSession) {
	s.mu.Lock()
	old := s.held[id]
	s.held[id] = end
	ended := s.ended
	s.mu.Unlock()
	if old != nil {
		_ = old.Close()
	}
	if ended {
		_ = end.Close()
	}
}

// keep removes a session when it ends.
func (s *sessions) keep(id cluster.NodeID, end *heldSession) {
	defer s.running.Done()
	s.agent.config.Logger.Debug("a node has a session here", "node", id)
	<-end.Done()
	s.mu.Lock()
	if s.held[id] == end {
		delete(s.held, id)
	}
	s.mu.Unlock()
	s.agent.config.Logger.Debug("the session of a node has ended", "node", id)
}

// of returns the session of a node, or nil.
func (s *sessions) of(id cluster.NodeID) *heldSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[id]
}

// end ends all sessions, and refuses new ones.
func (s *sessions) end() {
	s.mu.Lock()
	s.ended = true
	var all []*heldSession
	for _, end := range s.held {
		all = append(all, end)
	}
	s.mu.Unlock()
	for _, end := range all {
		_ = end.Close()
	}
}

// Send sends a request to the client of a node, over the session that this server or another one holds.
// When the agent stops, the request ends.
func (s *sessions) Send(r *http.Request, id cluster.NodeID) (*http.Response, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(s.agent.life, cancel)
	done := sync.OnceFunc(func() {
		stop()
		cancel()
		s.running.Done()
	})
	response, err := s.send(r.WithContext(ctx), id)
	if err != nil {
		done()
		return nil, err
	}
	if conn, is := response.Body.(io.ReadWriteCloser); is && response.StatusCode == http.StatusSwitchingProtocols {
		forget := context.AfterFunc(ctx, func() { _ = conn.Close() })
		response.Body = &conversation{ReadWriteCloser: conn, onClose: func() {
			forget()
			done()
		}}
	} else {
		response.Body = &body{ReadCloser: response.Body, onClose: done}
	}
	return response, nil
}

// conversation is the body of an answer 101. Close calls onClose.
type conversation struct {
	io.ReadWriteCloser
	onClose func()
}

// Close closes the conversation. It may be called more than once.
func (c *conversation) Close() error {
	defer c.onClose()
	return c.ReadWriteCloser.Close()
}

func (s *sessions) send(r *http.Request, id cluster.NodeID) (*http.Response, error) {
	if end := s.of(id); end != nil {
		response, err := end.RoundTrip(r)
		if !errors.Is(err, session.ErrEnded) {
			return response, asNodeError(err)
		}
	}
	holder := s.find(r.Context(), id)
	if holder == "" {
		return nil, httpapi.ErrNoSession
	}
	sent := r.Clone(r.Context())
	sent.URL = &url.URL{Scheme: "http", Host: holder, Path: handedPath(id, r.URL.Path), RawPath: handedPath(id, r.URL.EscapedPath()), RawQuery: r.URL.RawQuery}
	response, err := s.agent.transport.RoundTrip(sent)
	if err != nil {
		return nil, fmt.Errorf("requesting from server %s: %w", holder, err)
	}
	if response.StatusCode == http.StatusMisdirectedRequest {
		_ = response.Body.Close()
		return nil, httpapi.ErrNoSession
	}
	return response, nil
}

// asNodeError returns an error of a session as one of [httpapi.Nodes].
func asNodeError(err error) error {
	switch {
	case errors.Is(err, session.ErrBusy):
		return fmt.Errorf("%w: %w", httpapi.ErrTooManyStreams, err)
	case errors.Is(err, session.ErrEnded):
		return fmt.Errorf("%w: %w", httpapi.ErrNoSession, err)
	}
	return err
}

// sessionRequest is the request whether a server has a session of a node.
type sessionRequest struct {
	Node cluster.NodeID
	// Ping: the server pings the session if it is of another process than Process.
	Ping    bool   `json:",omitempty"`
	Process string `json:",omitempty"`
}

// sessionAnswer is the answer to a sessionRequest.
type sessionAnswer struct {
	Held bool
	// Answers: the session is of another process, Process, and has answered a ping. An older server pings
	// none.
	Answers bool   `json:",omitempty"`
	Process string `json:",omitempty"`
}

// serve answers a sessionRequest.
func (s *sessions) serve(ctx context.Context, q sessionRequest) (sessionAnswer, error) {
	if q.Ping {
		return s.ping(ctx, q.Node, q.Process), nil
	}
	return sessionAnswer{Held: s.of(q.Node) != nil}, nil
}

// find searches all other servers at once for a session of a node. It returns the address of the first one
// that has one, or empty. An older server has none.
func (s *sessions) find(ctx context.Context, id cluster.NodeID) string {
	holder, _ := s.search(ctx, sessionRequest{Node: id}, func(a sessionAnswer) bool { return a.Held })
	return holder
}

// search sends a request to all other servers at once. It returns the address and the answer of the first
// that fits, or empty.
func (s *sessions) search(ctx context.Context, q sessionRequest, fits func(sessionAnswer) bool) (holder string, found sessionAnswer) {
	var requests sync.WaitGroup
	defer requests.Wait()
	ctx, cancel := context.WithTimeout(ctx, s.searchTime)
	defer cancel()
	sent := 0
	members := s.agent.peers().configuration().Servers
	type result struct {
		holder string
		answer sessionAnswer
	}
	results := make(chan result, len(members))
	for _, m := range members {
		if string(m.ID) == s.agent.Name() {
			continue
		}
		sent++
		requests.Go(func() {
			answer, err := request[sessionAnswer](ctx, s.agent, string(m.Address), pathSession, q)
			if err != nil || !fits(answer) {
				results <- result{}
				return
			}
			results <- result{string(m.Address), answer}
		})
	}
	for range sent {
		if r := <-results; r.holder != "" {
			return r.holder, r.answer
		}
	}
	return "", sessionAnswer{}
}

// ping pings the session of another process that this server holds. A session that does not answer ends, and
// another process can take the place of its client. The time for an answer is shorter than a search, so that
// other servers get the answer.
func (s *sessions) ping(ctx context.Context, id cluster.NodeID, process string) sessionAnswer {
	end := s.of(id)
	if end == nil || end.process == process {
		return sessionAnswer{Held: end != nil}
	}
	ctx, cancel := context.WithTimeout(ctx, s.searchTime-s.searchTime/10)
	defer cancel()
	if end.Answers(ctx) {
		return sessionAnswer{Held: true, Answers: true, Process: end.process}
	}
	if !errors.Is(context.Cause(ctx), context.Canceled) { // the caller has not left
		_ = end.Close()
	}
	return sessionAnswer{}
}

// answering searches all servers for a session of another process that answers.
func (s *sessions) answering(ctx context.Context, id cluster.NodeID, process string) (holder string, answers bool) {
	if own := s.ping(ctx, id, process); own.Answers {
		return own.Process, true
	}
	_, found := s.search(ctx, sessionRequest{Node: id, Ping: true, Process: process}, func(a sessionAnswer) bool { return a.Answers })
	return found.Process, found.Answers
}

// handedPath is the path of a request that a server hands on to the one with the node's session. Only
// servers reach it. The id is in hexadecimal, since it may have any characters.
func handedPath(id cluster.NodeID, path string) string {
	return pathNode + hex.EncodeToString([]byte(id)) + path
}

// serveHanded answers a request that another server hands on. It goes to a session of this server and
// not to a third server.
func (s *sessions) serveHanded(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, pathNode), "/")
	id, err := hex.DecodeString(name)
	if err != nil {
		httpapi.WriteError(w, http.StatusBadRequest, "the id of the node is not hexadecimal")
		return
	}
	end := s.of(cluster.NodeID(id))
	if end == nil {
		httpapi.WriteError(w, http.StatusMisdirectedRequest, httpapi.ErrNoSession.Error())
		return
	}
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			prefix := pathNode + name
			p.Out.URL.Path = strings.TrimPrefix(p.In.URL.Path, prefix)
			p.Out.URL.RawPath = strings.TrimPrefix(p.In.URL.EscapedPath(), prefix)
		},
		Transport: end,
		ModifyResponse: func(answer *http.Response) error {
			if answer.StatusCode < http.StatusContinue { // to hand it on would panic
				return errors.New("the client of the node sends no valid answer")
			}
			return nil
		},
		FlushInterval: -1,
		ErrorLog:      s.agent.config.Logger.StandardLogger(nil),
		ErrorHandler:  writeNodeError,
	}
	proxy.ServeHTTP(w, r)
}

// writeNodeError answers a request that a session has not answered.
func writeNodeError(w http.ResponseWriter, _ *http.Request, err error) {
	switch err = asNodeError(err); {
	case errors.Is(err, httpapi.ErrNoSession):
		httpapi.WriteError(w, http.StatusMisdirectedRequest, err.Error())
	case errors.Is(err, httpapi.ErrTooManyStreams):
		httpapi.WriteError(w, http.StatusTooManyRequests, err.Error())
	default:
		httpapi.WriteError(w, http.StatusBadGateway, err.Error())
	}
}
