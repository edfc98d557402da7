package httpapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
)

// discard is a response writer that drops its body.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return io.Discard.Write(b) }
func (d discard) WriteHeader(int)             {}

// The cost of reads on a server with a thousand nodes, ten of which drain, and forty allocations on
// the first.
func BenchmarkRead(b *testing.B) {
	w := newFixture(b).nodes(1000)
	web := w.job("web", cluster.JobService, 40)
	for n := range 40 {
		w.place(n, web, nodeID(1))
	}
	for n := 1; n <= 10; n++ {
		w.drain(nodeID(n), cluster.DrainSpec{})
	}
	h := w.handler(w.backend(), httpapi.Options{})
	for _, one := range []struct{ name, path string }{
		{"nodes", "/v1/nodes"},
		{"page", "/v1/nodes?per_page=50"},
		{"filter", "/v1/nodes?filter=" + escape(`Status == "ready" and Drain == true`)},
		{"node", "/v1/node/" + uuid('a', 1)},
		{"allocations", "/v1/node/" + uuid('a', 1) + "/allocations"},
		{"drain", "/v1/node/" + uuid('a', 1) + "/drain"},
		{"drains", "/v1/drains"},
	} {
		b.Run(one.name, func(b *testing.B) {
			r := httptest.NewRequest("GET", one.path, nil)
			for b.Loop() {
				h.ServeHTTP(discard{http.Header{}}, r)
			}
		})
	}
}
