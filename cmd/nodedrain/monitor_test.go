package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/drain"
)

// watching is the output of a command. It calls a function once, when the command has written
// certain words.
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

// watched runs a command against a cluster and calls a function when it has written certain words.
func watched(ctx context.Context, c *scriptCluster, line, words string, do func()) (code int, out, errs string) {
	stdout := &watching{words: words, do: do}
	code, errs = runAt(ctx, c.api.Address(), strings.NewReader(""), stdout, strings.Fields(line)...)
	return code, stdout.String(), errs
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
	must.EqOp(t, int(drain.ExitUnconfirmed), code, must.Sprint("the tasks run on the machine"))
	must.StrContains(t, errs, ": Error monitoring node: Unexpected response code: 404 (node not found)\n")
	must.StrContains(t, errs, ": Outcome: node gone")
	must.StrNotContains(t, out, "Drain complete")

	code, _, errs = watched(ctx, c, enable+firstNode, "drain strategy set", func() {})
	must.Zero(t, code, must.Sprint(errs))
}

// A monitor continues at the next server when its server is lost, and reports it.
func TestMonitor_nextServer(t *testing.T) {
	t.Parallel()
	first := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler) // the connection ends without an answer
	}))
	t.Cleanup(first.Close)
	second := answers(t, map[string]any{
		"/v1/node/n1":             json.RawMessage(`{"ID":"n1"}`),
		"/v1/node/n1/allocations": json.RawMessage(`[{"ID":"a1","ClientStatus":"complete"}]`),
		"/v1/node/n1/drain":       json.RawMessage(`{"State":"ended","Drain":{"Outcome":"deadline reached"}}`),
	})
	out, errs := monitored(t, first.URL+","+second)
	must.StrContains(t, errs, ": connection lost, trying "+strings.TrimPrefix(second, "http://")+"\n")
	must.StrContains(t, out, ": Outcome: deadline reached\n")
}

// Bug: an older state was restored while a drain was monitored. The monitor took the record of an earlier drain of the
// node as that of this one, and ended with 0 beside running tasks. A later drain that has ended changes nothing.
func TestMonitor_recordOfAnotherDrain(t *testing.T) {
	t.Parallel()
	const ended = `{"ID":"d1","Outcome":"complete","Strategy":{}}`
	for name, recent := range map[string]string{"lost": ended, "an older record": ended + `,{"ID":"d2","Outcome":"deadline reached","Strategy":{}}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := client.New(client.Config{Address: answers(t, map[string]any{
				"/v1/node/n1":             json.RawMessage(`{"ID":"n1"}`),
				"/v1/node/n1/allocations": json.RawMessage(`[{"ID":"a1","ClientStatus":"complete"}]`),
				"/v1/node/n1/drain":       json.RawMessage(`{"State":"ended","Drain":` + ended + `}`),
				"/v1/drains":              json.RawMessage(`{"Recent":[` + recent + `]}`),
			})})
			must.NoError(t, err)
			t.Cleanup(c.Close)
			var out, errs strings.Builder
			m := &drain.Monitor{API: c, Follow: drain.Follower{Node: "n1", Drain: "d2"}, Index: 7, Show: drain.NewLines(&out, &errs), Contact: cli.Contact{Patience: cli.MonitorPatience}}
			err = m.Run(t.Context())
			if name != "lost" {
				must.NoError(t, err)
				must.StrContains(t, out.String(), ": Outcome: deadline reached\n")
				return
			}
			must.Eq(t, error(cli.ExitCode(1)), err)
			must.StrContains(t, errs.String(), ": The servers have no drain d2 any more, as after a restore of an older state. Its outcome is not known\n")
			must.StrNotContains(t, out.String(), "complete")
		})
	}
}

// monitored monitors the drain of a node until its end, from the state of index 7.
func monitored(t *testing.T, address string) (out, errs string) {
	t.Helper()
	c, err := client.New(client.Config{Address: address})
	must.NoError(t, err)
	t.Cleanup(c.Close)
	var stdout, stderr strings.Builder
	m := &drain.Monitor{API: c, Follow: drain.Follower{Node: "n1"}, Index: 7, Show: drain.NewLines(&stdout, &stderr), Contact: cli.Contact{Patience: cli.MonitorPatience}}
	must.NoError(t, m.Run(t.Context()))
	return stdout.String(), stderr.String()
}

// The server has no leader: it answers reads of its own state, and refuses the report. The monitor prints that, and
// the end.
func TestMonitor_noLeader(t *testing.T) {
	t.Parallel()
	var reports atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := `{"ID":"n1","Drain":true,"DrainStrategy":{}}`
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "/allocations"):
			body = `[{"ID":"a1","ClientStatus":"complete"}]`
		case !strings.HasSuffix(path, "/drain"):
			if reports.Load() >= 3 {
				body = `{"ID":"n1"}`
			}
		case reports.Add(1) == 1:
			http.Error(w, "No cluster leader", http.StatusInternalServerError)
			return
		case reports.Load() == 2:
			body = `{"State":"draining","Drain":{}}`
		default: // the monitor has printed the second answer
			body = `{"State":"ended","Drain":{"Outcome":"complete"}}`
		}
		w.Header().Set("X-Nomad-Index", "8")
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	_, errs := monitored(t, server.URL)
	must.StrContains(t, errs, ": some requests are not answered: the servers may have no leader; retrying for 10m0s\n")
	must.StrContains(t, errs, ": all requests are answered again\n")
}

// Each read blocks for a state newer than the last answer: a monitor reads no state twice.
func TestMonitor_readsNoStateTwice(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	indexes := map[string][]string{}
	// bodies are the answers in order; the last one ends the drain.
	bodies := map[string][]string{
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
		answers, known := bodies[r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		n := len(indexes[r.URL.Path])
		indexes[r.URL.Path] = append(indexes[r.URL.Path], r.URL.Query().Get("index"))
		w.Header().Set("X-Nomad-Index", strconv.Itoa(10*(n+1)))
		_, _ = io.WriteString(w, answers[min(n, len(answers)-1)])
	}))
	t.Cleanup(server.Close)
	out, _ := monitored(t, server.URL)

	mu.Lock()
	defer mu.Unlock()
	must.Eq(t, []string{"7", "10", "20"}, indexes["/v1/node/n1"][:3]) // more follow until the allocations have stopped
	must.Eq(t, []string{"", "10", "20"}, indexes["/v1/node/n1/allocations"][:3])
	must.StrContains(t, out, "Drain complete for node n1")
	must.StrContains(t, out, `All allocations on node "n1" have stopped`)
}
