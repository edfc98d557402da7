package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// Bug: the servers started twice from the same copy of their data. The client returned the state of that copy, which it
// had read after the first start, so it got no complete answer, and did not register again what the servers
// had lost with its registration. Its reports were lost in the same way.
func TestChanges_lostWrites(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// lost: the servers lose the write. written are the entries after that.
		lost    bool
		written int
		// edit changes the state that the client names. stale permits the answer of any server.
		edit     func(string) string
		stale    string
		complete bool
	}{
		"nothing":                       {},
		"nothing, and later entries":    {written: 3},
		"the write":                     {lost: true, complete: true},
		"the write, and overtaken":      {lost: true, written: 5, complete: true},
		"the write, of an older client": {lost: true, edit: func(string) string { return "" }},
		"the write, by a stale read":    {lost: true, stale: "&stale"},
		"another state":                 {edit: func(s string) string { return s[:len(s)-1] }, complete: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, httpapi.Options{}, func(t *testing.T, w *fixture, h http.Handler) {
				w.nodes(1)
				first := decode[wire.AllocChanges](t, w.reads(h, changesPath).answer)
				copied := w.State()
				beat := decode[wire.HeartbeatResponse](t, sends(h, "/v1/client/"+uuid('a', 1)+"/heartbeat", ""))
				must.Eq(t, wire.StateID{Index: first.Index, History: first.History}, beat.State, must.Sprint("a heartbeat is no entry"))
				w.drain(nodeID(1), cluster.DrainSpec{})
				shown := decode[wire.HeartbeatResponse](t, sends(h, "/v1/client/"+uuid('a', 1)+"/heartbeat", "")).State
				must.Less(t, shown.Index, first.Index)
				if c.lost {
					w.Restore(copied)
				}
				for range c.written {
					begin(w).Commit()
				}
				text := fmt.Sprintf("&shown=%d-%s", shown.Index, shown.History)
				if c.edit != nil {
					text = c.edit(text)
				}
				r := w.reads(h, at(changesPath+"c1", first.Index)+"&history="+first.History+"&wait=10s"+text+c.stale)
				must.EqOp(t, !c.complete, r.waits())
				<-r.answered
				must.EqOp(t, c.complete, decode[wire.AllocChanges](t, r.answer).Complete)
			})
		})
	}
}

// sends sends a request with a body, and returns the answer.
func sends(h http.Handler, path, body string) answer {
	recorded := httptest.NewRecorder()
	h.ServeHTTP(recorded, httptest.NewRequest(http.MethodPut, path, strings.NewReader(body)))
	return answer{code: recorded.Code, header: recorded.Header(), body: recorded.Body.String()}
}

// Every answer to a write of a client shows a state that contains the write, from the cluster version on in which states
// have a history.
func TestClient_shownStates(t *testing.T) {
	t.Parallel()
	for version, shows := range map[cluster.Version]bool{cluster.VersionOfHistory - 1: false, cluster.VersionOfHistory: true} {
		w := newOldFixture(t)
		w.must(&shims.RaiseClusterVersion{Version: version})
		w.nodes(1)
		w.place(1, w.job("web", cluster.JobService, 1), nodeID(1))
		h := w.handler(w.backend(), httpapi.Options{})
		node := result.Of(json.Marshal(wire.NewRegistration(w.State().Node(nodeID(1))))).OK(t)
		report := result.Of(json.Marshal(wire.AllocsRequest{Allocs: []wire.AllocReport{wire.NewAllocReport(cluster.AllocReport{
			Alloc: allocID(1), ClientStatus: cluster.ClientRunning,
		})}})).OK(t)
		for path, body := range map[string]string{
			"register": string(node), "heartbeat": "", "allocations": string(report), "claims": `{"Released": []}`,
		} {
			answer := sends(h, "/v1/client/"+uuid('a', 1)+"/"+path, body)
			must.Eq(t, 200, answer.code, must.Sprint(path, answer.body))
			shown := decode[struct{ State wire.StateID }](t, answer).State
			if !shows {
				must.StrNotContains(t, answer.body, "State")
				continue
			}
			must.EqOp(t, w.State().Index(), shown.Index, must.Sprint(path))
			must.EqOp(t, fmt.Sprintf("%x", w.State().History()), shown.History, must.Sprint(path))
		}
	}
}

// The states in a request are those of answers.
func TestChanges_invalidStates(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	url := w.serve(httpapi.Options{}).URL + changesPath + "c1&index=1"
	for query, text := range map[string]string{
		"history=x": "Invalid history", "shown=x-1": "Invalid shown state", "shown=1": "Invalid shown state", "shown=1-x": "Invalid shown state",
	} {
		refused := request(t, "GET", url+"&"+query, "")
		must.Eq(t, 400, refused.code)
		must.Eq(t, text, refused.body)
	}
}
