package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/shoenig/test/must"
)

// A pause of all drains lists what it holds and what it does not hold, with the sum of what still stops.
func TestDrainPause_lists(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		must.Eq(t, "PUT /v1/drains/pause", r.Method+" "+r.URL.Path)
		_, _ = w.Write([]byte(`{"Index":7,"Changed":true,"All":{"At":"2026-01-02T12:00:00Z","By":"ann"},
			"Drains":[{"Drain":"d1","Node":"n1","Name":"first","Stopping":2},{"Drain":"d2","Node":"n2","Name":"second","Stopping":1}],
			"Skipped":[{"Drain":"d3","Node":"n3","Name":"third","Why":"the drain is forced"}]}`))
	}))
	t.Cleanup(server.Close)
	code, out, errs := commandAt(t.Context(), server.URL, "", "drain pause -all")
	must.Zero(t, code, must.Sprint(errs))
	must.Eq(t, `All drains are paused, also those that begin later

Paused
Node  Name    Drain  Still Stopping
n1    first   d1     2
n2    second  d2     1

Not Paused
Node  Name   Drain  Reason
n3    third  d3     the drain is forced

3 allocations that are marked already stop all the same. Volumes are released all the same
To resume all drains: nodedrain drain resume -all
`, out)
}
