package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// watching is the output of a command. It calls a function once, when the command has written
// given words.
type watching struct {
	words string
	do    func()

	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
	done bool         // guarded by mu
}

func (w *watching) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.text.Write(p)
	due := !w.done && strings.Contains(w.text.String(), w.words)
	w.done = w.done || due
	w.mu.Unlock()
	if due {
		w.do()
	}
	return len(p), nil
}

func (w *watching) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// watched runs a command against a cluster and calls a function when it has written given words.
func watched(ctx context.Context, c *scriptCluster, line, words string, do func()) (code int, out, errs string) {
	stdout := &watching{words: words, do: do}
	var stderr bytes.Buffer
	code = run(ctx, strings.Fields(line), stdio{in: strings.NewReader(""), out: stdout, errs: &stderr, getenv: func(name string) string {
		if name == client.EnvAddress {
			return c.asked.Address()
		}
		return ""
	}})
	return code, stdout.String(), stderr.String()
}

// startScriptCluster starts a cluster for a test.
func startScriptCluster(t *testing.T) (context.Context, *scriptCluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scriptPatience)
	t.Cleanup(cancel)
	c, err := newScriptCluster(ctx, nil, "")
	if c != nil {
		t.Cleanup(func() { must.NoError(t, c.stop()) })
	}
	must.NoError(t, err)
	return ctx, c
}

// The exit code of a monitor shows the drain's outcome: a script that then turns the machine
// off must not take a cancelled drain for a complete one.
func TestMonitor_exitCodes(t *testing.T) {
	t.Parallel()
	ctx, c := startScriptCluster(t)
	const enable = "node drain -enable -no-deadline "

	code, out, errs := watched(ctx, c, enable+pinnedNode, "Waiting: 2 of default/db.db: no paced moves", func() {
		_, err := c.writer.UpdateDrain(ctx, cluster.DrainUpdate{
			Node: pinnedNode, MarkEligible: true, Meta: map[string]string{"cancel_message": "not today"},
		})
		must.NoError(t, err)
	})
	must.Eq(t, 2, code, must.Sprint(errs))
	must.StrContains(t, out, `: Drain of node "`+pinnedNode+`" was cancelled: not today`+"\n")
	must.StrNotContains(t, out, "Drain complete")
	must.StrNotContains(t, out, "have stopped")

	interrupted, interrupt := context.WithCancel(ctx)
	code, out, _ = watched(interrupted, c, enable+pinnedNode, "Waiting: 2 of default/db.db", interrupt)
	must.Eq(t, 130, code)
	must.StrNotContains(t, out, "Drain complete")
	must.StrHasSuffix(t, fmt.Sprintf("The drain of node %q continues. To watch it again: nodedrain node drain -monitor %s\n"+
		"To cancel it: nodedrain node drain -disable %s\n", pinnedNode, pinnedNode, pinnedNode), out)
	must.True(t, c.Server().Store().Snapshot().Node(pinnedNode).Draining())

	code, out, errs = watched(ctx, c, "node drain -monitor "+pinnedNode, "Waiting: 2 of default/db.db", func() {
		_, err := c.writer.PurgeNode(ctx, pinnedNode)
		must.NoError(t, err)
	})
	must.Eq(t, 1, code)
	must.StrContains(t, errs, ": Error monitoring node: Unexpected response code: 404 (node not found)\n")
	must.StrContains(t, errs, ": Outcome: node gone")
	must.StrNotContains(t, out, "Drain complete")

	code, _, errs = watched(ctx, c, enable+firstNode, "drain strategy set", func() {})
	must.Zero(t, code, must.Sprint(errs))
}

// A monitor retries while the servers have no leader. A refused read, or a long time without an
// answer to any read, ends it.
func TestAgain(t *testing.T) {
	t.Parallel()
	unavailable := &client.Error{Status: 500, Body: "No cluster leader"}
	refused := &client.Error{Status: 404, Body: "node not found"}
	for name, test := range map[string]struct {
		// waits is how long the first read waits before it fails, and failing how long reads fail after
		// that. Another read is answered after other, unless that is zero.
		waits, failing, other time.Duration
		err, want             error
		took                  time.Duration
	}{
		"at once":                   {},
		"a new leader":              {failing: 10 * time.Second, err: unavailable, took: 10 * time.Second},
		"no connection":             {failing: 10 * time.Second, err: io.ErrUnexpectedEOF, took: 10 * time.Second},
		"out for long":              {failing: time.Hour, err: unavailable, want: unavailable, took: monitorPatience + client.Pause},
		"another read is answered":  {failing: time.Hour, other: time.Minute, err: unavailable, want: unavailable, took: time.Minute + monitorPatience + client.Pause},
		"refused":                   {failing: time.Hour, err: refused, want: refused},
		"just long enough":          {failing: monitorPatience, err: unavailable, took: monitorPatience},
		"out after a healthy wait":  {waits: time.Minute, failing: time.Minute, other: time.Minute, err: unavailable, took: 2 * time.Minute},
		"the second of two outages": {waits: monitorPatience, other: monitorPatience, failing: monitorPatience, err: unavailable, took: 2 * monitorPatience},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				c := contact{patience: monitorPatience}
				c.answered()
				if test.other > 0 {
					time.AfterFunc(test.other, c.answered)
				}
				first := true
				got, _, err := again(t.Context(), &c, func() (string, client.Answer, error) {
					if first {
						first = false
						time.Sleep(test.waits)
						synctest.Wait()
					}
					if time.Since(start) < test.waits+test.failing {
						return "", client.Answer{}, test.err
					}
					return "answer", client.Answer{}, nil
				})
				must.Eq(t, test.took, time.Since(start))
				must.ErrorIs(t, err, test.want)
				if test.want == nil {
					must.Eq(t, "answer", got)
				}
			})
		})
	}
}

func TestAgain_interrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		c := contact{patience: monitorPatience}
		c.answered()
		_, _, err := again(ctx, &c, func() (string, client.Answer, error) { return "", client.Answer{}, errors.New("down") })
		must.EqError(t, err, "down")
		must.Eq(t, time.Second, time.Since(start))
	})
}

// A server that has just started shows an older state, or no node at all. The monitor believes the
// leader.
func TestFollowing(t *testing.T) {
	t.Parallel()
	waiting := client.Query{Index: 7, Wait: time.Second, Stale: true}
	notFound := &client.Error{Status: 404, Body: "node not found"}
	for name, test := range map[string]struct {
		index  uint64
		answer uint64
		err    error
		want   []client.Query
	}{
		"the first read":           {0, 7, nil, []client.Query{{}}},
		"news":                     {7, 8, nil, []client.Query{waiting}},
		"no news":                  {7, 7, nil, []client.Query{waiting}},
		"an older state":           {7, 6, nil, []client.Query{waiting, {}}},
		"a state without the node": {7, 0, notFound, []client.Query{waiting, {}}},
		"no answer":                {7, 0, io.ErrUnexpectedEOF, []client.Query{waiting}},
	} {
		var asked []client.Query
		_, _, err := following(test.index, time.Second, func(q client.Query) (string, client.Answer, error) {
			asked = append(asked, q)
			return "", client.Answer{Index: test.answer}, test.err
		})()
		must.ErrorIs(t, err, test.err)
		must.Eq(t, test.want, asked, must.Sprint(name))
	}
}

// An outage of all servers prints each address once, and its end.
func TestOutage(t *testing.T) {
	t.Parallel()
	var o outage
	to := func(address string) string {
		return o.moved(client.Move{From: "http://s0", To: "http://" + address}, 10*time.Minute)
	}
	must.Eq(t, "connection lost, trying s1", to("s1"))
	must.Eq(t, "", o.answered())
	must.Eq(t, "connection lost, trying s2", to("s2"))
	must.Eq(t, "connection lost, trying s1", to("s1"))
	must.Eq(t, "no server answers, retrying for 10m0s", to("s2"))
	must.Eq(t, "", to("s1"))
	must.Eq(t, "a server answers again", o.answered())
	must.Eq(t, "connection lost, trying s0 again", to("s0"))
}

// A watch continues at the next server when its server is lost, and says so.
func TestMonitor_nextServer(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 8)
	first := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	second := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Nomad-Index", "9")
		_, _ = io.WriteString(w, map[string]string{
			"/v1/node/n1":             `{"ID":"n1"}`,
			"/v1/node/n1/allocations": `[{"ID":"a1","ClientStatus":"complete"}]`,
			"/v1/node/n1/drain":       `{"State":"ended","Drain":{"Outcome":"deadline reached"}}`,
		}[r.URL.Path])
	}))
	t.Cleanup(second.Close)
	c, err := client.New(client.Config{Address: first.URL + "," + second.URL})
	must.NoError(t, err)
	t.Cleanup(c.Close)
	go func() {
		<-asked
		first.CloseClientConnections()
		first.Close()
	}()
	var out, errs strings.Builder
	m := &monitor{asked: c, follow: follower{node: "n1"}, index: 7, show: newDrainLines(&out, &errs), contact: contact{patience: monitorPatience}}
	must.NoError(t, m.Run(t.Context()))
	must.StrContains(t, errs.String(), ": connection lost, trying "+strings.TrimPrefix(second.URL, "http://")+"\n")
	must.StrContains(t, out.String(), ": Outcome: deadline reached\n")
}

// The bar and the lines below it fit the terminal.
func TestDrainBar_reasons(t *testing.T) {
	t.Parallel()
	b := new(drainBar)
	var held []heldGroup
	for range 20 {
		held = append(held, heldGroup{group: "default/shop.web", reason: "below budget", count: 3, detail: strings.Repeat("very ", 50) + "long"})
	}
	b.look.Store(&drainLook{held: held})
	var out strings.Builder
	must.NoError(t, b.reasons(&out, statistics(60)))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	must.SliceLen(t, heldRows, lines)
	must.Eq(t, `  and 15 more; "nodedrain node explain" lists them`, lines[heldRows-1])
	for _, line := range lines {
		must.LessEq(t, 60, len([]rune(line)))
	}
	must.StrHasPrefix(t, "  3 of default/shop.web: below budget: very very", lines[0])
}

// A bar is drawn until the end, and events stay above it.
func TestDrainBar(t *testing.T) {
	t.Parallel()
	var out syncBuffer
	b := newDrainBar(&out)
	b.event(began, "something happened")
	b.progress(drainLook{leaving: leaving{left: 2, most: 3}, at: began, held: []heldGroup{{group: "default/shop.web", reason: "stopping", count: 2}}})
	b.trouble(began, "trouble")
	b.close()
	must.StrContains(t, out.String(), ": something happened\n")
	must.StrContains(t, out.String(), ": trouble\n")
	must.StrContains(t, out.String(), "2 of 3 allocations left")
}

// statistics returns a bar's statistics for a terminal of that width.
func statistics(columns int) decor.Statistics { return decor.Statistics{AvailableWidth: columns} }

// syncBuffer is a buffer for concurrent writers.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Each read blocks for a state newer than the last answer: a monitor reads no state twice.
func TestMonitor_asksForNews(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string][]string{}
	// answered are the answers in order; the last one ends the drain.
	answered := map[string][]string{
		"/v1/node/n1": {
			`{"ID":"n1","Drain":true,"DrainStrategy":{}}`, `{"ID":"n1","Drain":true,"DrainStrategy":{}}`, `{"ID":"n1"}`,
		},
		"/v1/node/n1/allocations": {
			`[{"ID":"a1","ClientStatus":"running"}]`, `[{"ID":"a1","ClientStatus":"running"}]`, `[{"ID":"a1","ClientStatus":"complete"}]`,
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		answers, known := answered[r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		n := len(asked[r.URL.Path])
		asked[r.URL.Path] = append(asked[r.URL.Path], r.URL.Query().Get("index"))
		w.Header().Set("X-Nomad-Index", strconv.Itoa(10*(n+1)))
		_, _ = io.WriteString(w, answers[min(n, len(answers)-1)])
	}))
	t.Cleanup(server.Close)
	c, err := client.New(client.Config{Address: server.URL})
	must.NoError(t, err)
	t.Cleanup(c.Close)
	var out, errs strings.Builder
	m := &monitor{asked: c, follow: follower{node: "n1"}, index: 7, show: newDrainLines(&out, &errs), contact: contact{patience: monitorPatience}}
	must.NoError(t, m.Run(t.Context()))

	mu.Lock()
	defer mu.Unlock()
	must.Eq(t, []string{"7", "10", "20"}, asked["/v1/node/n1"][:3]) // more follow until the allocations have stopped
	must.Eq(t, []string{"", "10", "20"}, asked["/v1/node/n1/allocations"][:3])
	must.StrContains(t, out.String(), "Drain complete for node n1")
	must.StrContains(t, out.String(), `All allocations on node "n1" have stopped`)
}
