package httpapi_test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

var update = flag.Bool("update", false, "write the golden file of the rights")

// rightsFile lists for every route who may use it.
const rightsFile = "testdata/rights.txt"

// Every route is tried by everyone. The golden file shows who may do what, and a new route changes it.
//
//race:skip one request after the other
func TestSecurity_Rights(t *testing.T) {
	t.Parallel()
	callers := []struct{ name, token string }{
		{"none", ""}, {"read", "reader-token"}, {"write", "writer-token"}, {"node", "node-token"},
		{"own", secretOf(nodeID(1))}, {"other", secretOf(nodeID(2))},
	}
	var table strings.Builder
	fmt.Fprintf(&table, "# Who may use a route: a stranger, a token of each right, the secret of the node in the path, and\n# that of another node. Written by: go test ./httpapi -run TestSecurity_Rights -update\n%-60s", "")
	for _, caller := range callers {
		fmt.Fprintf(&table, " %5s", caller.name)
	}
	for _, name := range httpapi.RouteNames() {
		fmt.Fprintf(&table, "\n%-60s", name)
		for _, caller := range callers {
			may := admitted(t, name, caller.token)
			fmt.Fprintf(&table, " %5s", iff(may, "yes", "-"))
			must.False(t, may && caller.name == "read" && needsMore(name), must.Sprint("a reader may not: ", name))
			must.False(t, may && caller.name == "other" && caller.token != "" && !admitted(t, name, ""), must.Sprint("another node may not: ", name))
		}
	}
	table.WriteString("\n")
	if *update {
		must.NoError(t, os.WriteFile(rightsFile, []byte(table.String()), 0o644))
	}
	golden := result.Of(os.ReadFile(rightsFile)).OK(t)
	must.Eq(t, string(golden), table.String())
}

// needsMore reports whether a route speaks for a node, or reaches into a task. For such a route the
// right to read is not enough, also if it is a GET.
func needsMore(name string) bool {
	_, path, _ := strings.Cut(name, " ")
	last := path[strings.LastIndex(path, "/")+1:]
	return strings.HasPrefix(path, "/v1/client/{id}/") || strings.HasPrefix(path, "/v1/client/fs/") ||
		strings.HasPrefix(path, "/v1/client/allocation/") && slices.Contains([]string{"exec", "signal", "restart", "data"}, last) || last == "stop"
}

// admitted reports whether a route of a new cluster answers something else than 403. The body is no
// JSON: only a request without a body changes something.
func admitted(t *testing.T, name, token string) bool {
	t.Helper()
	w := newFixture(t).nodes(2)
	w.place(1, w.job("web", cluster.JobService, 1), nodeID(1))
	server := w.serveAs(guarded(w), httpapi.Options{})
	defer server.Close()
	method, path, _ := strings.Cut(name, " ")
	id := uuid('a', 1)
	switch {
	case strings.HasPrefix(path, "/v1/job/"):
		id = "web"
	case strings.Contains(path, "/allocation/"):
		id = uuid('b', 1)
	}
	path = strings.NewReplacer("{id}", id, "{profile}", "heap").Replace(path)
	before := w.State().Index()
	r := result.Of(http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader("no JSON"))).OK(t)
	r.Header.Set("X-Nomad-Token", token)
	answer, err := http.DefaultTransport.RoundTrip(r) // an event stream does not end
	must.NoError(t, err)
	defer answer.Body.Close()
	if answer.StatusCode != 403 {
		return true
	}
	text := result.Of(io.ReadAll(answer.Body)).OK(t)
	must.Eq(t, iff(token == "" || everyToken()[token].Name != "", "Permission denied", "ACL token not found"), string(text), must.Sprint(name, token))
	must.Eq(t, before, w.State().Index(), must.Sprint("a refused request changes nothing: ", name))
	return false
}
