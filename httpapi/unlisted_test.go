package httpapi_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// A client registers allocations that the servers do not list. Readers of the node get them.
func TestClient_Unlisted(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	url := w.serve(httpapi.Options{}).URL
	register := func(u *cluster.UnlistedAllocs) answer {
		n := w.State().Node(nodeID(1)).Copy()
		n.Unlisted = u
		body := result.Of(json.Marshal(wire.NewRegistration(n))).OK(t)
		return request(t, "PUT", url+"/v1/client/"+string(nodeID(1))+"/register", string(body))
	}
	for want, wrong := range map[string]*cluster.UnlistedAllocs{
		"of 3 unlisted allocations the first 20 must be named but found 1": {Count: 3, Allocs: []cluster.AllocID{"a"}},
		"the ids of unlisted allocations are not in order":                 {Count: 2, Allocs: []cluster.AllocID{"b", "a"}},
		"invalid id of an unlisted allocation: it is empty":                {Count: 1, Allocs: []cluster.AllocID{""}},
	} {
		refused := register(wrong)
		must.Eq(t, 400, refused.code)
		must.Eq(t, want, refused.body)
	}
	var ids []cluster.AllocID
	for i := range 25 {
		ids = append(ids, cluster.AllocID(fmt.Sprintf("a%02d", i)))
	}
	for _, u := range []*cluster.UnlistedAllocs{cluster.NewUnlistedAllocs(ids), cluster.NewUnlistedAllocs(nil)} {
		must.Eq(t, 200, register(u).code)
		must.Eq(t, u, w.State().Node(nodeID(1)).Unlisted)
		var read wire.Node
		must.NoError(t, json.Unmarshal([]byte(request(t, "GET", url+"/v1/node/"+string(nodeID(1)), "").body), &read))
		must.Eq(t, u.Count, read.Unlisted.Count)
		must.Len(t, len(u.Allocs), read.Unlisted.Allocs)
	}
}
