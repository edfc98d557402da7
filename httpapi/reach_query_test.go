package httpapi_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// The client of a node gets all that a caller selects, so also the file at which a caller continues that has lost
// its stream. Bug: no test noticed servers that did not hand the file on, and the log continued elsewhere.
func TestReach_handsTheSelectionOn(t *testing.T) {
	t.Parallel()
	r := newReachable(t, echoNode)
	for what, query := range map[string]string{
		"ls":     "path=%2Falloc",
		"stat":   "path=%2Falloc",
		"cat":    "path=alloc%2Fa+b%26c",
		"readat": "path=a&offset=7&limit=9",
		"stream": "path=a&offset=7&origin=end&follow=false&plain=true",
		"logs":   "task=main&type=stderr&offset=7&origin=end&follow=false&plain=true&file=main.stderr.3",
	} {
		_, _ = r.get(http.MethodGet, "/v1/client/fs/"+what+"/"+string(allocID(1))+"?"+query, "writer")
		must.StrContains(t, r.last().path, "/fs/"+what+"/")
		expected := result.Of(url.ParseQuery(query)).OK(t)
		must.Eq(t, map[string][]string(expected), r.last().query)
	}

	c := result.Of(client.New(client.Config{Address: r.url, Token: "writer"})).OK(t)
	defer c.Close()
	for _, err := range c.Alloc(string(allocID(1))).Logs(t.Context(), client.LogsQuery{Task: "main", File: "main.stdout.3", Offset: 7}) {
		must.NoError(t, err)
	}
	must.Eq(t, []string{"main.stdout.3"}, r.last().query["file"])
	must.Eq(t, []string{"7"}, r.last().query["offset"])
}
