package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// A whole id needs no filter, with which a server scans all nodes, and a long argument no filter that the
// servers refuse. Bug: each argument sent a filter with its text twice.
func TestCall_matches(t *testing.T) {
	t.Parallel()
	const id = "7c6b3110-d0f8-951f-b791-e76fce97e405"
	long := strings.Repeat("a", 3000)
	for _, c := range []struct {
		argument string
		requests []string
	}{
		{id, []string{"prefix=" + id}},
		{strings.ToUpper(id), []string{"prefix=" + strings.ToUpper(id), "filter=ID matches \"(?i)^" + strings.ToUpper(id) + "\" or Name == \"" + strings.ToUpper(id) + `"`}},
		{"7c6", []string{`filter=ID matches "(?i)^7c6" or Name == "7c6"`}},
		{strings.Repeat("x", 36), []string{`filter=ID matches "(?i)^` + strings.Repeat("x", 36) + `" or Name == "` + strings.Repeat("x", 36) + `"`}},
		{long, []string{`filter=Name == "` + long + `"`}},
	} {
		var requests []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, name := range []string{"prefix", "filter"} {
				if text := r.URL.Query().Get(name); text != "" {
					requests = append(requests, name+"="+text)
				}
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`[{"ID": "` + id + `"}]`))
		}))
		defer server.Close()
		api, err := client.New(client.Config{Address: server.URL})
		must.NoError(t, err)
		call := &Call{Base: Base{Ctx: t.Context()}, API: api}
		stubs, err := call.Matches(c.argument)
		must.NoError(t, err)
		must.SliceLen(t, 1, stubs)
		must.Eq(t, c.requests, requests)
	}
}
