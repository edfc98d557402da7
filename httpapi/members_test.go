package httpapi_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// The reference's "server members" shows which servers answer, and their builds.
func TestReferenceClient_members(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for _, id := range []string{"s2", "s3"} {
		w.servers = append(w.servers, httpapi.Member{ID: id, Address: "127.0.0.2:4647", Voter: true})
	}
	agent := w.client().Agent()
	got := result.Of(agent.Members()).OK(t)
	must.SliceLen(t, 3, got.Members)
	for i, want := range []struct{ status, build string }{{"alive", "1.2.3"}, {"alive", "1.2.3"}, {"failed", "unknown"}} {
		m := got.Members[i]
		must.Eq(t, want.status, m.Status)
		must.Eq(t, want.build, m.Tags["build"])
		must.Eq(t, "3", m.Tags["raft_vsn"])
		must.Eq(t, "1", m.Tags["vsn"])
	}
	self := result.Of(agent.Self()).OK(t)
	must.Eq(t, "alive", self.Member.Status)
	must.Eq[any](t, "2", self.Stats["raft"]["num_peers"])
}
