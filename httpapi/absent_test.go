package httpapi_test

import (
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"
)

// The answer to a route that only the reference has names the reason.
func TestRoutes_notImplemented(t *testing.T) {
	t.Parallel()
	client := newFixture(t).client()
	_, _, err := client.NodePools().Info("default", nil)
	must.ErrorContains(t, err, "501 (GET /v1/node/pool/default is not implemented: node pools cannot be managed")
	_, _, err = client.Jobs().Dispatch("web", nil, nil, "", nil)
	must.ErrorContains(t, err, "/v1/job/web/dispatch is not implemented: parameterized and periodic jobs are not supported")
	_, _, err = client.ACLTokens().Self(nil)
	must.ErrorContains(t, err, "501 (GET /v1/acl/token/self is not implemented: tokens are not in the state")
	_, err = client.Nodes().Stats(string(nodeID(1)), nil)
	must.ErrorContains(t, err, "501 (this server has no sessions with nodes)")
	must.ErrorContains(t, client.Nodes().GC(string(nodeID(1)), nil), "501 (GET /v1/client/gc is not implemented: clients of this system do not implement this route")
	jobs, _, err := client.Jobs().ListOptions(nil, &api.QueryOptions{Filter: "ParameterizedJob is not empty"})
	must.NoError(t, err, must.Sprint("the command lists the jobs before it dispatches one"))
	must.SliceEmpty(t, jobs)
}
