package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// reader sends one request in a bubble, without a network, and records when it was answered.
type reader struct {
	answered chan struct{}
	answer   answer
	at       time.Time
}

func (w *fixture) reads(h http.Handler, path string, header ...string) *reader {
	return w.readsUntil(w.Context(), h, path, header...)
}

func (w *fixture) readsUntil(ctx context.Context, h http.Handler, path string, header ...string) *reader {
	r := &reader{answered: make(chan struct{})}
	request := httptest.NewRequestWithContext(ctx, "GET", path, nil)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	go func() {
		defer close(r.answered)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, request)
		r.answer, r.at = answer{rec.Code, rec.Body.String(), rec.Result().Header}, time.Now()
	}()
	synctest.Wait()
	return r
}

// waits reports whether the reader has no answer once all goroutines are idle.
func (r *reader) waits() bool {
	synctest.Wait()
	select {
	case <-r.answered:
		return false
	default:
		return true
	}
}

func at(path string, index uint64) string {
	sign := "?"
	if strings.Contains(path, "?") {
		sign = "&"
	}
	return path + sign + "index=" + strconv.FormatUint(index, 10)
}

// bubble runs a test in virtual time, with a fixture and its handler.
func bubble(t *testing.T, o httpapi.Options, test func(t *testing.T, w *fixture, h http.Handler)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		test(t, w, w.handler(w.backend(), o))
	})
}

// A reader of a node is woken by that node alone, and answered when its index moves.
func TestBlocking_node(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{}, func(t *testing.T, w *fixture, h http.Handler) {
		w.nodes(2)
		path := "/v1/node/" + string(nodeID(1))
		index := w.State().Node(nodeID(1)).ModifyIndex
		must.False(t, w.reads(h, path).waits(), must.Sprint("a reader without an index does not wait"))
		must.False(t, w.reads(h, at(path, 0)).waits())
		must.False(t, w.reads(h, at(path, index-1)).waits())

		r := w.reads(h, at(path, index))
		must.True(t, r.waits())
		w.drain(nodeID(2), cluster.DrainSpec{})
		must.True(t, r.waits(), must.Sprint("another node is another matter"))
		moved := w.drain(nodeID(1), cluster.DrainSpec{})
		must.False(t, r.waits())
		must.Eq(t, 200, r.answer.code)
		must.Eq(t, moved, r.answer.index(t))
		must.StrContains(t, r.answer.body, `"Drain":true`)
	})
}

// A reader that waits in vain is answered 200 with the index it had, after its wait and up to a
// sixteenth more.
func TestBlocking_timesOut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		wait string
		most time.Duration // the handler's
		want time.Duration
	}{
		{"", 0, 300 * time.Second},
		{"&wait=0s", 0, 300 * time.Second},
		{"&wait=-5s", 0, 300 * time.Second},
		{"&wait=160ms", 0, 160 * time.Millisecond},
		{"&wait=1000h", 0, 300 * time.Second},
		{"&wait=30s", 10 * time.Second, 10 * time.Second},
	} {
		bubble(t, httpapi.Options{MaxWait: test.most}, func(t *testing.T, w *fixture, h http.Handler) {
			w.nodes(1)
			start, index := time.Now(), w.State().Node(nodeID(1)).ModifyIndex
			r := w.reads(h, at("/v1/node/"+string(nodeID(1)), index)+test.wait)
			<-r.answered
			must.Eq(t, 200, r.answer.code)
			must.Eq(t, index, r.answer.index(t))
			must.StrContains(t, r.answer.body, `"Name":"n1"`)
			must.Between(t, test.want, r.at.Sub(start), test.want+test.want/16)
		})
	}
}

// A node that does not exist yet is waited for.
func TestBlocking_missing(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{}, func(t *testing.T, w *fixture, h http.Handler) {
		w.nodes(1)
		r := w.reads(h, at("/v1/node/"+string(nodeID(2)), w.State().TableIndex(httpapi.TableNodes)))
		must.True(t, r.waits())
		second := w.State().Node(nodeID(1)).Copy()
		second.ID, second.SecretID = nodeID(2), secretOf(nodeID(2))
		w.must(&shims.NodeRegister{At: w.Now(), Node: second}) // alone: another node would answer the reader, too
		must.False(t, r.waits())
		must.Eq(t, 200, r.answer.code)
	})
}

// A node's allocations: any change of any of them, and nothing else.
func TestBlocking_allocations(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{}, func(t *testing.T, w *fixture, h http.Handler) {
		w.nodes(2)
		web := w.job("web", cluster.JobService, 2)
		path := "/v1/node/" + string(nodeID(1)) + "/allocations"
		r := w.reads(h, at(path, max(1, w.State().TableIndex(httpapi.TableAllocs))))
		must.True(t, r.waits())
		w.place(1, web, nodeID(1))
		must.False(t, r.waits())

		r = w.reads(h, at(path, w.State().Alloc(allocID(1)).ModifyIndex))
		w.place(2, web, nodeID(2))
		must.True(t, r.waits(), must.Sprint("an allocation on another node"))
		w.drain(nodeID(1), cluster.DrainSpec{})
		must.True(t, r.waits(), must.Sprint("the node itself"))
		index := w.mark(1, cluster.MarkPaced)
		must.False(t, r.waits())
		must.Eq(t, index, r.answer.index(t))
		must.StrContains(t, r.answer.body, `"DesiredTransition":{"Migrate":true,"Reschedule":null,"ForceReschedule":null,"NoShutdownDelay":null,"MigrateDisablePlacement":null,"DrainID":"d1","MarkClass":"paced","MarkedAt":`)
	})
}

// A purge takes away the index that a reader waits at: it is answered then, and not when
// its time is over.
func TestBlocking_purge(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{}, func(t *testing.T, w *fixture, h http.Handler) {
		w.nodes(1)
		w.place(1, w.job("old", cluster.JobService, 1), nodeID(1))
		w.place(2, w.job("middle", cluster.JobService, 1), nodeID(1))
		w.place(3, w.job("new", cluster.JobService, 1), nodeID(1))
		path := "/v1/node/" + string(nodeID(1)) + "/allocations"
		newest := w.State().Alloc(allocID(3)).ModifyIndex

		r := w.reads(h, at(path, newest))
		must.True(t, r.waits())
		purge(w, "old")
		must.False(t, r.waits(), must.Sprint("the newest stays, and one is gone"))
		must.Eq(t, newest, r.answer.index(t))

		r = w.reads(h, at(path, newest))
		must.True(t, r.waits())
		purge(w, "new")
		must.False(t, r.waits())
		must.Eq(t, w.State().Alloc(allocID(2)).ModifyIndex, r.answer.index(t))

		late := w.reads(h, at(path, newest))
		must.False(t, late.waits(), must.Sprint("it was purged before the reader came back"))
		r = w.reads(h, at(path, late.answer.index(t)))
		must.True(t, r.waits(), must.Sprint("with the new index it waits again"))
		purge(w, "middle")
		must.False(t, r.waits(), must.Sprint("none is left: the table's index moved"))
		must.Eq(t, "[]", r.answer.body)
	})
}

// A server behind the reader's index waits until it catches up: rows that it does not show yet are
// not deleted.
func TestBlocking_serverBehind(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{}, func(t *testing.T, w *fixture, h http.Handler) {
		w.nodes(1)
		w.place(1, w.job("web", cluster.JobService, 1), nodeID(1))
		ahead := w.State().Index() + 2
		r := w.reads(h, at("/v1/node/"+string(nodeID(1))+"/allocations?stale", ahead))
		must.True(t, r.waits())
		w.drain(nodeID(1), cluster.DrainSpec{})
		must.True(t, r.waits())
		w.mark(1, cluster.MarkPaced)
		must.True(t, r.waits(), must.Sprint("what the reader has already"))
		w.report(1, cluster.ClientComplete)
		must.False(t, r.waits())
		must.Eq(t, ahead+1, r.answer.index(t))
	})
}

// The drain of a node changes when the node, its allocations or its records change.
func TestBlocking_drain(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{}, func(t *testing.T, w *fixture, h http.Handler) {
		w.nodes(1)
		w.place(1, w.job("web", cluster.JobService, 1), nodeID(1))
		path := "/v1/node/" + string(nodeID(1)) + "/drain"
		r := w.reads(h, path)
		for _, change := range []func(){
			func() { w.drain(nodeID(1), cluster.DrainSpec{}) },
			func() { w.mark(1, cluster.MarkPaced) },
			func() { w.report(1, cluster.ClientComplete) },
			func() { w.end(nodeID(1)) },
		} {
			r = w.reads(h, at(path, r.answer.index(t)))
			must.True(t, r.waits())
			change()
			must.False(t, r.waits())
			must.Eq(t, w.State().Index(), r.answer.index(t))
		}
		must.StrContains(t, r.answer.body, `"Outcome":"complete"`)
	})
}

// A restored snapshot replaces the state that readers wait on: they go on with it.
func TestBlocking_restore(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{}, func(t *testing.T, w *fixture, h http.Handler) {
		w.nodes(1)
		path := "/v1/node/" + string(nodeID(1))
		r := w.reads(h, at(path, w.State().Node(nodeID(1)).ModifyIndex))
		w.restore()
		must.True(t, r.waits())
		w.drain(nodeID(1), cluster.DrainSpec{})
		must.False(t, r.waits())
		must.StrContains(t, r.answer.body, `"Drain":true`)
	})
}

// Waiting readers are counted by token or address, and in total. An answered or cancelled reader is
// not counted.
func TestBlocking_limits(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{}, func(t *testing.T, w *fixture, _ http.Handler) {
		w.nodes(1)
		h := w.handler(guarded(w), httpapi.Options{MaxBlocking: 3, MaxBlockingPerClient: 2})
		path := at("/v1/node/"+string(nodeID(1)), w.State().Node(nodeID(1)).ModifyIndex)
		ctx, leave := context.WithCancel(t.Context())
		first := w.readsUntil(ctx, h, path, "X-Nomad-Token", "reader-token")
		second := w.reads(h, path, "Authorization", "Bearer reader-token")
		third := w.reads(h, path, "X-Nomad-Token", "reader-token")
		must.False(t, third.waits())
		must.Eq(t, 429, third.answer.code)
		must.Eq(t, "too many readers are waiting", third.answer.body)

		fourth := w.reads(h, path, "X-Nomad-Token", "odd-token")
		must.True(t, fourth.waits(), must.Sprint("another client"))
		must.Eq(t, 429, w.reads(h, path, "X-Nomad-Token", "writer-token").answer.code, must.Sprint("too many in all"))
		must.Eq(t, 200, w.reads(h, "/v1/nodes", "X-Nomad-Token", "writer-token").answer.code, must.Sprint("who does not wait is served"))

		leave()
		must.False(t, first.waits())
		fifth := w.reads(h, path, "X-Nomad-Token", "reader-token")
		must.True(t, fifth.waits())
		w.drain(nodeID(1), cluster.DrainSpec{})
		for _, r := range []*reader{second, fourth, fifth} {
			must.False(t, r.waits())
			must.Eq(t, 200, r.answer.code)
		}
		path = at("/v1/node/"+string(nodeID(1)), w.State().Node(nodeID(1)).ModifyIndex)
		for range 2 {
			must.True(t, w.reads(h, path, "X-Nomad-Token", "reader-token").waits())
		}
		w.drain(nodeID(1), cluster.DrainSpec{Deadline: 1})
	})
}

// An unknown token and an invented forwarding header do not make another client of an address.
func TestBlocking_limitsAreNotLifted(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{MaxBlockingPerClient: 1}, func(t *testing.T, w *fixture, h http.Handler) {
		w.nodes(2)
		w.place(1, w.job("web", cluster.JobService, 1), nodeID(1))
		path := at("/v1/node/"+string(nodeID(1))+"/allocations", w.State().Alloc(allocID(1)).ModifyIndex)
		must.True(t, w.reads(h, path, "X-Nomad-Token", "made-up").waits())
		must.Eq(t, 429, w.reads(h, path, "X-Nomad-Token", "made-up-too").answer.code)
		must.Eq(t, 429, w.reads(h, path, "X-Nomad-Token", secretOf(nodeID(2))).answer.code)
		must.Eq(t, 429, w.reads(h, path, "X-Nodedrain-Forwarded", "s2 1").answer.code)
		must.True(t, w.reads(h, path, "X-Nomad-Token", secretOf(nodeID(1))).waits(), must.Sprint("nodes behind one address"))
		w.report(1, cluster.ClientComplete)
	})
}
