package client_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"net/http/httptrace"
	"runtime"
	"sync"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// refuser is a server that refuses every client, because it has no certificate.
type refuser struct {
	url string
	// closed gets a value when the server has sent its alert and reset the connection.
	closed chan struct{}
}

func newRefuser(t *testing.T, protocol string) *refuser {
	t.Helper()
	signed := httptest.NewTLSServer(nil)
	signed.Close()
	config := &tls.Config{Certificates: signed.TLS.Certificates, ClientAuth: tls.RequireAnyClientCert, NextProtos: []string{protocol}}
	listener := result.Of(net.Listen("tcp", "127.0.0.1:0")).OK(t)
	s := &refuser{url: "https://" + listener.Addr().String(), closed: make(chan struct{}, 1)}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = tls.Server(conn, config).Handshake()
			_ = conn.(*net.TCPConn).SetLinger(0) // Close resets the connection
			_ = conn.Close()
			s.closed <- struct{}{}
		}
	})
	t.Cleanup(func() {
		must.NoError(t, listener.Close())
		serving.Wait()
	})
	return s
}

// The error of a request contains the alert by which the server has refused the certificate of the
// client. The write of the request fails, because the server has reset the connection before. Or the
// transport has closed the connection before the write.
func TestClient_alert(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]func(context.Context, *client.Client) error{
		"read": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.Node(ctx, "n1", client.Query{})
			return err
		},
		"session": func(ctx context.Context, c *client.Client) error {
			_, err := c.NodeSide("n1").OpenSession(ctx)
			return err
		},
		"exec": func(ctx context.Context, c *client.Client) error {
			_, err := c.Alloc("a").Exec(ctx, client.ExecRequest{Command: []string{"true"}}, client.ExecStreams{Stdout: io.Discard, Stderr: io.Discard})
			return err
		},
	} {
		for _, protocol := range []string{"h2", "http/1.1"} {
			for when, closed := range map[string]func(httptrace.GotConnInfo){"reset": nil, "closed": awaitClosed} {
				t.Run(name+" "+protocol+" "+when, func(t *testing.T) {
					t.Parallel()
					server := newRefuser(t, protocol)
					c := result.Of(client.New(client.Config{Address: server.url, TLS: client.TLS{SkipVerify: true}})).OK(t)
					trace := &httptrace.ClientTrace{TLSHandshakeDone: func(tls.ConnectionState, error) { <-server.closed }, GotConn: closed}
					for range 20 { // the goroutines of a transport race
						err := request(httptrace.WithClientTrace(t.Context(), trace), c)
						must.ErrorContains(t, err, "remote error: tls: certificate required")
					}
				})
			}
		}
	}
}

// awaitClosed returns when the transport has closed a connection.
func awaitClosed(got httptrace.GotConnInfo) {
	conn, is := got.Conn.(*tls.Conn)
	for err := error(nil); is && err == nil; _, err = conn.Write(nil) {
		runtime.Gosched()
	}
}
