package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// A volume is detached from the node with a claim on it that has a prefix or a name. The node itself may
// be gone. Regression: the empty prefix stood for the only node with a claim.
func TestVolumeDetach_node(t *testing.T) {
	t.Parallel()
	const first, second, other = "aa11-1", "aa11-1-2", "bb22-3"
	var detached string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			detached = r.URL.Query().Get("node") + " " + r.URL.Query().Get("force")
			_, _ = w.Write([]byte("{}"))
			return
		}
		if r.URL.Path == "/v1/nodes" {
			all := []wire.NodeListStub{{ID: other, Name: "rack-7"}, {ID: "dd44-5", Name: "rack-8"}}
			_ = json.NewEncoder(w).Encode(slices.DeleteFunc(all, func(n wire.NodeListStub) bool {
				return !strings.Contains(r.URL.Query().Get("filter"), n.Name)
			}))
			return
		}
		_ = json.NewEncoder(w).Encode(wire.Volume{ID: "data", Claims: []wire.VolumeClaim{{NodeID: first}, {NodeID: second}, {NodeID: other}, {NodeID: other}}})
	}))
	t.Cleanup(server.Close)
	for node, want := range map[string]string{
		"bb": other + " false", "BB22-3": other + " false", second: second + " false", first: first + " false", "aa": "", "cc": "",
		"rack-7": other + " false", "rack-8": "", "dd44-5": "", "": "", "b": "",
	} {
		detached = ""
		var out bytes.Buffer
		code, errs := runAt(t.Context(), server.URL, nil, &out, "volume", "detach", "data", node)
		must.Eq(t, want, detached, must.Sprint(node, &out, errs))
		must.EqOp(t, want == "", code != 0)
	}
}
