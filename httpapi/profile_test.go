package httpapi_test

import (
	"testing"

	nomad "github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// Nomad's client takes profiles from a server that allows it.
func TestProfiles(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	c := result.Of(nomad.NewClient(&nomad.Config{Address: w.serve(httpapi.Options{Profiles: true}).URL})).OK(t)
	gzipped := []byte{0x1f, 0x8b}
	cpu := result.Of(c.Agent().CPUProfile(nomad.PprofOptions{Seconds: 1}, nil)).OK(t)
	must.Eq(t, gzipped, cpu[:2])
	trace, err := c.Agent().Trace(nomad.PprofOptions{ServerID: "leader"}, nil) // one second by default
	must.NoError(t, err)
	must.StrContains(t, string(trace[:16]), "trace")
	heap := result.Of(c.Agent().Lookup("heap", nomad.PprofOptions{GC: 1, ServerID: "s1"}, nil)).OK(t)
	must.Eq(t, gzipped, heap[:2])
	text := result.Of(c.Agent().Lookup("goroutine", nomad.PprofOptions{Debug: 1}, nil)).OK(t)
	must.StrContains(t, string(text), "goroutine profile: total")
	line := result.Of(c.Agent().Lookup("cmdline", nomad.PprofOptions{}, nil)).OK(t)
	must.StrContains(t, string(line), "httpapi.test")
}

// A profile needs the option and the right to write, and mistakes are named.
func TestProfiles_refused(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	on, off := w.serveAs(guarded(w), httpapi.Options{Profiles: true}).URL, w.serveAs(guarded(w), httpapi.Options{}).URL
	for _, c := range []struct {
		name, url, token string
		code             int
		want             string
	}{
		{"without a token", on + "/v1/agent/pprof/heap", "", 403, "Permission denied"},
		{"a reader", on + "/v1/agent/pprof/heap", "reader-token", 403, "Permission denied"},
		{"a reader, switched off", off + "/v1/agent/pprof/heap", "reader-token", 403, "Permission denied"},
		{"switched off", off + "/v1/agent/pprof/heap", "writer-token", 404, "this server does not record profiles: start it with -pprof"},
		{"unknown", on + "/v1/agent/pprof/none", "writer-token", 404, `unknown profile "none"`},
		{"too long", on + "/v1/agent/pprof/profile?seconds=61", "writer-token", 400, `seconds is "61" and must be a number from 0 to 60`},
		{"no number", on + "/v1/agent/pprof/heap?debug=x", "writer-token", 400, `debug is "x" and must be a number from 0 to 2`},
		{"another server", on + "/v1/agent/pprof/heap?server_id=s2", "writer-token", 501, "this is server s1: send the request to the server that server_id names"},
		{"a client", on + "/v1/agent/pprof/heap?node_id=n1", "writer-token", 501, "profiles of clients are not implemented"},
	} {
		got := request(t, "GET", c.url, "", "X-Nomad-Token", c.token)
		must.Eq(t, c.code, got.code, must.Sprint(c.name))
		must.Eq(t, c.want, got.body, must.Sprint(c.name))
	}
}
