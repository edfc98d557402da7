package httpapi_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// Load balancers can read whether the server has a leader.
func TestReferenceClient_health(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	agent := w.client().Agent()
	health := result.Of(agent.Health()).OK(t)
	must.True(t, health.Server.Ok)
	must.Nil(t, health.Client)
	w.servers[0].Leader = false
	health = result.Of(agent.Health()).OK(t)
	must.False(t, health.Server.Ok)
	must.Eq(t, "No cluster leader", health.Server.Message)
	w.trouble = "server s1 cannot write its log: no space left on device"
	must.Eq(t, "No cluster leader: "+w.trouble, result.Of(agent.Health()).OK(t).Server.Message)
	w.removed = true
	must.Eq(t, "this server was removed from its cluster: its log has the remedy", result.Of(agent.Health()).OK(t).Server.Message)
	url := w.serve(httpapi.Options{}).URL + "/v1/agent/health"
	must.Eq(t, 500, request(t, "GET", url, "").code)
	must.Eq(t, `{"client":{"ok":false,"message":"this agent is a server, not a client"}}`, request(t, "GET", url+"?type=client", "").body)
	must.Eq(t, 400, request(t, "GET", url+"?type=x", "").code)
}
