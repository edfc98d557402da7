package client

import (
	"context"
	"fmt"
	"net/http"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
)

// upgrades returns a transport for connections that do not stay HTTP. HTTP/2 cannot give them away.
func upgrades(t *http.Transport) *http.Transport {
	t = t.Clone()
	t.ForceAttemptHTTP2, t.DisableKeepAlives = false, true
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	if t.TLSClientConfig != nil { // the copy may offer HTTP/2 already
		t.TLSClientConfig.NextProtos, t.TLSNextProto = []string{"http/1.1"}, nil
	}
	return t
}

// OpenSession opens a session of the node with a server, over which servers reach the node's client. The
// caller serves it, or closes it. The error wraps a [session.Refused] if the server gives none. After an
// error the next call uses the next address.
func (s NodeSide) OpenSession(ctx context.Context) (*session.NodeEnd, error) {
	c := s.client
	at := c.connection.begin()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.base.JoinPath(s.path("/session")).String(), nil)
	if err != nil {
		return nil, fmt.Errorf("opening a session: %w", err)
	}
	r.URL.RawQuery = c.connection.fixed.Encode()
	for name, v := range c.connection.header {
		r.Header[name] = v
	}
	end, err := session.Dial(ctx, c.connection.upgrades, r)
	if err != nil {
		c.connection.leave(at)
		return nil, fmt.Errorf("%s: %w", at.base, err)
	}
	return end, nil
}
