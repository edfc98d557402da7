package httpapi_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
)

// Load balancers learn whether the server knows a leader.
func TestReferenceClient_health(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	agent := w.client().Agent()
	health, err := agent.Health()
	must.NoError(t, err)
	must.True(t, health.Server.Ok)
	must.Nil(t, health.Client)
	w.servers[0].Leader = false
	health, err = agent.Health()
	must.NoError(t, err)
	must.False(t, health.Server.Ok)
	must.Eq(t, "No cluster leader", health.Server.Message)
	url := w.serve(httpapi.Options{}).URL + "/v1/agent/health"
	must.Eq(t, 500, ask(t, "GET", url, "").code)
	must.Eq(t, `{"client":{"ok":false,"message":"this agent is a server, not a client"}}`, ask(t, "GET", url+"?type=client", "").body)
	must.Eq(t, 400, ask(t, "GET", url+"?type=x", "").code)
}
