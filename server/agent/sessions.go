package agent

import (
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

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/connlimit"
)

// sessions are the sessions of nodes that this server holds, and the way to those of other servers. It is
// safe for concurrent use. It owns a goroutine for each session.
type sessions struct {
	agent *Agent

	mu sync.Mutex
	// ended means that the agent stops; guarded by mu.
	ended bool
	// held are the open sessions; guarded by mu.
	held map[cluster.NodeID]*session.ServerEnd
	// running counts the goroutines, and the requests to nodes.
	running sync.WaitGroup
}

var _ httpapi.Nodes = (*sessions)(nil)

func newSessions(a *Agent) *sessions {
	return &sessions{agent: a, held: make(map[cluster.NodeID]*session.ServerEnd)}
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

// Hold holds the session of a node, in place of an older one.
func (s *sessions) Hold(w http.ResponseWriter, r *http.Request, id cluster.NodeID) {
	if err := s.begin(); err != nil {
		httpapi.WriteError(w, http.StatusServiceUnavailable, err.Error())
		return
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
		return
	}
	s.add(id, end)
	go s.keep(id, end)
}

// add makes a session that of a node.
func (s *sessions) add(id cluster.NodeID, end *session.ServerEnd) {
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
func (s *sessions) keep(id cluster.NodeID, end *session.ServerEnd) {
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
func (s *sessions) of(id cluster.NodeID) *session.ServerEnd {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[id]
}

// end ends all sessions, and refuses new ones.
func (s *sessions) end() {
	s.mu.Lock()
	s.ended = true
	var all []*session.ServerEnd
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
type sessionRequest struct{ Node cluster.NodeID }

// sessionAnswer is the answer to a sessionRequest.
type sessionAnswer struct{ Held bool }

// find searches all other servers at once for a session of a node. It returns the address of the first one
// that has one, or empty. An older server has none.
func (s *sessions) find(ctx context.Context, id cluster.NodeID) string {
	var requests sync.WaitGroup
	defer requests.Wait()
	ctx, cancel := context.WithTimeout(ctx, surveyTimeout)
	defer cancel()
	sent := 0
	members := s.agent.peers().configuration().Servers
	holders := make(chan string, len(members))
	for _, m := range members {
		if string(m.ID) == s.agent.Name() {
			continue
		}
		sent++
		requests.Go(func() {
			answer, err := request[sessionAnswer](ctx, s.agent, string(m.Address), pathSession, sessionRequest{Node: id})
			if err != nil || !answer.Held {
				holders <- ""
				return
			}
			holders <- string(m.Address)
		})
	}
	for range sent {
		if holder := <-holders; holder != "" {
			return holder
		}
	}
	return ""
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
