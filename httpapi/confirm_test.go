package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// withUnconfirmed drains the first node. One allocation was lost before, and the row of another one is
// deleted during the drain, as in an older cluster version: nothing confirms the ends of the two.
func withUnconfirmed(w *fixture) {
	w.Helper()
	w.nodes(2)
	w.place(1, w.job("web", cluster.JobService, 1), nodeID(1))
	gone := w.job("gone", cluster.JobService, 1)
	w.place(2, gone, nodeID(1))
	w.stop1(cluster.PlanStop{Alloc: allocID(1), Lost: true, Description: cluster.DescLost})
	w.drain(nodeID(1), cluster.DrainSpec{Deadline: -1})
	purge(w, gone.ID)
}

const confirmPath = "/v1/drain/d1/confirm"

// The answers to a confirmation. It needs the right to write, and the record has the name of the token.
func TestConfirmDrain(t *testing.T) {
	t.Parallel()
	w := newFixture(t).atNoon()
	withUnconfirmed(w)
	url := w.serveAs(guarded(w), httpapi.Options{}).URL
	const writer, reader = "writer-token", "reader-token"
	confirm := func(path, token string) answer { return request(t, "PUT", url+path, "ignored", "X-Nomad-Token", token) }
	read := func() *wire.Drain {
		return decode[wire.NodeDrain](t, request(t, "GET", url+"/v1/node/"+uuid('a', 1)+"/drain", "", "X-Nomad-Token", reader)).Drain
	}
	must.Zero(t, read().Unconfirmed, must.Sprint("only a record counts"))
	for _, refused := range []struct {
		path, token, text string
		code              int
	}{
		{confirmPath, reader, "Permission denied", 403},
		{confirmPath, writer, "the drain has not ended", 409},
		{"/v1/drain/d/confirm", writer, "drain not found", 404},
	} {
		got := confirm(refused.path, refused.token)
		must.Eq(t, refused.text, got.body)
		must.Eq(t, refused.code, got.code)
	}

	w.end(nodeID(1))
	d := read()
	must.Eq(t, "unconfirmed", d.Outcome)
	must.Eq(t, 2, d.Unconfirmed)
	must.Eq(t, []string{uuid('b', 1)}, d.UnconfirmedAllocs)
	must.True(t, d.ConfirmedAt.IsZero())
	node := decode[wire.Node](t, request(t, "GET", url+"/v1/node/"+uuid('a', 1), "", "X-Nomad-Token", reader))
	must.Eq(t, "complete", node.LastDrain.Status)
	must.Eq(t, "2", node.Events[len(node.Events)-1].Details["unconfirmed"])

	confirmed := confirm(confirmPath, writer)
	must.Eq(t, 200, confirmed.code, must.Sprint(confirmed.body))
	must.Eq(t, w.State().Index(), confirmed.index(t))
	must.Eq(t, w.State().Index(), decode[wire.DrainConfirmResponse](t, confirmed).Index)
	d = read()
	must.Eq(t, "unconfirmed", d.Outcome)
	must.Zero(t, d.Unconfirmed)
	must.SliceEmpty(t, d.UnconfirmedAllocs)
	must.Eq(t, noon, d.ConfirmedAt.Time)
	must.Eq(t, "ops", d.ConfirmedBy)
	a := decode[wire.Allocation](t, request(t, "GET", url+"/v1/allocation/"+uuid('b', 1), "", "X-Nomad-Token", reader))
	must.Eq(t, "lost", a.ClientStatus)
	must.Eq(t, noon, a.ConfirmedAt.Time)

	must.Eq(t, 200, confirm(confirmPath, "odd-token").code)
	must.Eq(t, "ops", read().ConfirmedBy, must.Sprint("nothing is left to confirm"))
}

// A running drain shows how many allocations its record would count.
func TestDrain_progressUnconfirmed(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	withUnconfirmed(w)
	url := w.serve(httpapi.Options{}).URL
	must.Eq(t, 2, decode[wire.NodeDrain](t, request(t, "GET", url+"/v1/node/"+uuid('a', 1)+"/drain", "")).Progress.Unconfirmed)
	must.Eq(t, 2, decode[wire.DrainList](t, request(t, "GET", url+"/v1/drains", "")).Active[0].Progress.Unconfirmed)
	w.report(1, cluster.ClientComplete)
	must.Eq(t, 1, decode[wire.NodeDrain](t, request(t, "GET", url+"/v1/node/"+uuid('a', 1)+"/drain", "")).Progress.Unconfirmed)
}

// A record changes after its end. A reader that waits for it is answered: also if no allocation of the node
// changes with it, because the rest were purged. The end of another node's allocation does not concern it.
func TestBlocking_unconfirmed(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{}, func(t *testing.T, w *fixture, h http.Handler) {
		withUnconfirmed(w)
		w.place(3, w.job("other", cluster.JobService, 1), nodeID(2))
		w.end(nodeID(1))
		paths := []string{"/v1/node/" + string(nodeID(1)) + "/drain", "/v1/drains"}
		changes := []func(){
			func() { w.report(1, cluster.ClientComplete) },
			func() { w.must(&shims.ConfirmDrain{At: w.Now(), Drain: "d1", By: "ops"}) },
		}
		for left, change := range changes {
			var readers []*reader
			for _, path := range paths {
				readers = append(readers, w.reads(h, at(path, w.reads(h, path).answer.index(t))))
			}
			w.report(3, cluster.ClientComplete)
			w.report(3, cluster.ClientRunning)
			for _, r := range readers {
				must.True(t, r.waits())
			}
			change()
			for i, r := range readers {
				must.False(t, r.waits(), must.Sprint(paths[i]))
				must.Eq(t, w.State().Index(), r.answer.index(t))
				must.StrContains(t, r.answer.body, []string{`"Unconfirmed":1,`, `"Unconfirmed":0,"ConfirmedAt":`}[left])
			}
		}
	})
}
