package httpapi_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// A large answer is compressed for a client that allows it. Its header Vary names what the answer depends on.
func TestAnswer_gzip(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(20)
	url := w.serve(httpapi.Options{}).URL
	transport := &http.Transport{DisableCompression: true} // or the client would decompress
	t.Cleanup(transport.CloseIdleConnections)
	for _, test := range []struct {
		path, allows, encoding string
	}{
		{"/v1/nodes", "gzip", "gzip"},
		{"/v1/nodes", "br, GZIP;q=0.5", "gzip"},
		{"/v1/nodes", "*", "gzip"},
		{"/v1/nodes", "gzip;q=0", ""},
		{"/v1/nodes", "gzip; q=0.0, *", ""},
		{"/v1/nodes", "br", ""},
		{"/v1/nodes", "", ""},
		{"/v1/regions", "gzip", ""},
	} {
		r := result.Of(http.NewRequestWithContext(t.Context(), http.MethodGet, url+test.path, nil)).OK(t)
		r.Header.Set("Accept-Encoding", test.allows)
		got := result.Of(transport.RoundTrip(r)).OK(t)
		body := result.Of(io.ReadAll(got.Body)).OK(t)
		must.NoError(t, got.Body.Close())
		must.Eq(t, test.encoding, got.Header.Get("Content-Encoding"), must.Sprint(test))
		must.Eq(t, "Accept-Encoding", got.Header.Get("Vary"))
		must.Eq(t, got.ContentLength, int64(len(body)))
		must.Eq(t, test.encoding == "gzip", !strings.Contains("[{\"", string(body[:1])), must.Sprint(test))
	}
	list := result.Read(w.client().Nodes().List(nil)).OK(t)
	must.SliceLen(t, 20, list)
}
