package session

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/shoenig/test/must"
)

// BenchmarkSession_request is one request of a server to a node over loopback.
func BenchmarkSession_request(b *testing.B) {
	accepted := make(chan *ServerEnd, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		end, err := Accept(w, r, func(net.Conn) bool { return true })
		must.NoError(b, err)
		accepted <- end
	}))
	defer server.Close()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL, nil)
	must.NoError(b, err)
	node, err := Dial(b.Context(), new(http.Transport), r)
	must.NoError(b, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		node.Serve(b.Context(), http.HandlerFunc(hello))
	}()
	end := <-accepted
	b.ReportAllocs()
	for b.Loop() {
		_, err := ask(b.Context(), end, "/")
		must.NoError(b, err)
	}
	must.NoError(b, end.Close())
	<-served
}
