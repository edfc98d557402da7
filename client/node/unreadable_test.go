package node

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// oldAnswer is a complete answer of a server of an older release, with configs that are nested so deep by
// allocation. It is written as text: encoding/json does not read it.
func oldAnswer(t *testing.T, allocs []*cluster.Allocation, deep map[cluster.AllocID]int) client.Changes {
	t.Helper()
	list := make([]string, len(allocs))
	for i, a := range allocs {
		text, err := json.Marshal(wire.NewAllocation(a, "global"))
		must.NoError(t, err)
		levels := deep[a.ID]
		list[i] = strings.ReplaceAll(string(text), `"@"`, strings.Repeat(`{"a":`, levels)+"1"+strings.Repeat("}", levels))
	}
	s := newServers(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/allocations") {
			http.NotFound(w, r)
			return
		}
		_, err := w.Write([]byte(`{"ClusterID":"c","Index":2,"Complete":true,"Allocs":[` + strings.Join(list, ",") + `]}`))
		must.NoError(t, err)
	})
	w, err := s.Changes(t.Context(), "", 0)
	must.NoError(t, err)
	must.True(t, w.Complete)
	must.Len(t, len(allocs), w.Known)
	return w
}

// One allocation with a config that is too deep fails, and the others run, also after a restart of the
// client. Before, the client refused the whole answer of the servers, for ever. A config just below the
// limit reaches the driver, and the record of its allocation can be read.
func TestNode_unreadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]config.Plugin{"mock": {Name: "mock", Enabled: true}})
	w.begin()
	deep := map[cluster.AllocID]int{"deep": 9_993, "deeper": 9_999, "limit": 9_900 - 1}
	allocs := []*cluster.Allocation{
		w.alloc("good", `{"run_for":"1h"}`), w.alloc("deep", `"@"`), w.alloc("deeper", `"@"`), w.alloc("limit", `{"color":"@"}`), w.alloc("other", `{"run_for":"1h"}`),
	}
	check := func() {
		t.Helper()
		for id, status := range map[cluster.AllocID]cluster.ClientStatus{
			"good": cluster.ClientRunning, "other": cluster.ClientRunning,
			"deep": cluster.ClientFailed, "deeper": cluster.ClientFailed, "limit": cluster.ClientFailed,
		} {
			w.awaitStatus(id, status)
		}
		w.servers.set(func() {
			must.Eq(t, `the client cannot read the allocation: Task group "g": Task "t": the config is nested 9993 levels deep, and clients read at most 9900`,
				w.servers.reported["deep"].ClientDescription)
			must.Eq(t, "the client cannot read the allocation: Job is nested 10004 levels deep", w.servers.reported["deeper"].ClientDescription)
			must.Eq(t, "failed tasks", w.servers.reported["limit"].ClientDescription, must.Sprint("the driver has refused the config"))
			clear(w.servers.reported)
		})
	}
	w.servers.feed <- oldAnswer(t, allocs, deep)
	check()
	w.stop()

	w.begin()
	w.servers.feed <- oldAnswer(t, allocs, deep)
	check()
	var stopped []*cluster.Allocation
	for _, id := range []cluster.AllocID{"good", "other"} {
		a := w.alloc(id, "")
		a.DesiredStatus, a.AllocModifyIndex = cluster.DesiredStop, 3
		stopped = append(stopped, a)
	}
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 3, Allocs: stopped}
	w.awaitStatus("good", cluster.ClientComplete)
	w.awaitStatus("other", cluster.ClientComplete)
	w.stop()
}
