package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// The states of a server in a bubble.
const (
	_ = iota // it serves
	isSilent
	refuses
	isLeaderless
)

// bubbleServer is a server without a network, for commands in a bubble. It is safe for concurrent use.
type bubbleServer struct {
	mu    sync.Mutex
	state int // guarded by mu
	// answers are JSON texts by method and path; guarded by mu.
	answers map[string]string
	// planTakes is how long a plan takes. It does not change.
	planTakes time.Duration
}

// becomes changes the state after a while.
func (s *bubbleServer) becomes(state int, after time.Duration) {
	time.AfterFunc(after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.state = state
	})
}

// put sets an answer.
func (s *bubbleServer) put(request, answer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[request] = answer
}

func (s *bubbleServer) get(request string) (state int, answer string, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer, is = s.answers[request]
	return s.state, answer, is
}

// RoundTrip implements [http.RoundTripper]. Reads that wait for an index wait for their whole time.
func (s *bubbleServer) RoundTrip(r *http.Request) (*http.Response, error) {
	state, _, _ := s.get("")
	if state == refuses {
		return nil, errors.New("connection refused")
	}
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
	if r.URL.Path == "/v1/drains/plan" {
		cli.Pause(r.Context(), s.planTakes)
	}
	if wait, err := time.ParseDuration(r.URL.Query().Get("wait")); err == nil {
		cli.Pause(r.Context(), wait)
	}
	state, answer, is := s.get(r.Method + " " + r.URL.Path)
	w := httptest.NewRecorder()
	w.Header().Set("X-Nomad-Index", "8")
	switch stale := r.URL.Query().Has("stale"); {
	case state == isSilent:
		<-r.Context().Done()
	case state == refuses:
		return nil, io.ErrUnexpectedEOF
	case state == isLeaderless && !stale:
		http.Error(w, "No cluster leader", http.StatusInternalServerError)
	case !is:
		http.Error(w, "not found", http.StatusNotFound)
	default:
		_, _ = io.WriteString(w, answer)
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// run runs a command line for a while.
func (s *bubbleServer) run(t *testing.T, during time.Duration, line string) (out, errs string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	stdout, stderr := &watching{done: true}, &watching{done: true} // several goroutines write
	cli.Run(strings.Fields(line), commands(), cli.Base{Ctx: ctx, Transport: s, Stdio: cli.Stdio{
		In: strings.NewReader(""), Out: stdout, Errs: stderr, Getenv: func(name string) string {
			return map[string]string{client.EnvAddress: "http://s1"}[name]
		},
	}})
	synctest.Wait()
	return stdout.String(), stderr.String()
}

const bubbleNode = "aaaaaaaa-0000-4000-8000-000000000001"

// draining is a server of a node that drains, with a report about the drain and its allocations.
func draining(drain, allocs string) *bubbleServer {
	return &bubbleServer{answers: map[string]string{
		"GET /v1/nodes":                               `[{"ID":"` + bubbleNode + `","Name":"node-1"}]`,
		"GET /v1/node/" + bubbleNode:                  `{"ID":"` + bubbleNode + `","Name":"node-1","Status":"ready","DrainStrategy":{},"DrainID":"d1"}`,
		"GET /v1/node/" + bubbleNode + "/allocations": `[{"ID":"a1","JobID":"web","TaskGroup":"main","DesiredStatus":"run","ClientStatus":"running"}]`,
		"GET /v1/node/" + bubbleNode + "/drain":       `{"State":"draining","Drain":{"ID":"d1"` + drain + `},"Progress":{},"Allocs":[` + allocs + `]}`,
	}}
}

// stillLines returns the lines of an output that state what is waited for, without their times.
func stillLines(text string) (lines []string) {
	return regexp.MustCompile(`Still waiting for .*`).FindAllString(text, -1)
}

// A watch of a drain in which nothing changes prints what it waits for, at growing distances.
//
// Bug: it printed nothing, for days.
func TestSilence_drain(t *testing.T) {
	t.Parallel()
	const reason = `{"Namespace":"default","JobID":"web","TaskGroup":"main","ID":"a1","Reason":"%s","Detail":"%s"}`
	for want, server := range map[string]*bubbleServer{
		"the end of the pause of all drains": draining(`,"PausedBy":"all"`, fmt.Sprintf(reason, "paused", "")),
		"the end of its pause":               draining(`,"PausedBy":"drain"`, fmt.Sprintf(reason, "paused", "")),
		"the end of its pause; 1 of default/web.main: stopping": draining(`,"PausedBy":"drain"`, fmt.Sprintf(reason, "paused", "")+","+
			fmt.Sprintf(reason, "stopping", "")),
		"1 of default/web.main: waiting for data: node-2 copies": draining("", fmt.Sprintf(reason, "waiting for data", "node-2 copies")),
		"1 of default/web.main: batch running":                   draining("", fmt.Sprintf(reason, "batch running", "")),
		"1 allocation to stop":                                   draining("", ""),
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				out, errs := server.run(t, 100*time.Second, "node drain -monitor "+bubbleNode)
				must.Eq(t, "", errs)
				must.Eq(t, []string{
					"Still waiting for " + want + " (10s)", "Still waiting for " + want + " (20s)",
					"Still waiting for " + want + " (40s)", "Still waiting for " + want + " (1m20s)",
				}, stillLines(out))
			})
		})
	}
}

// Bug: a watch without a server printed one line, and then nothing for ten minutes.
func TestSilence_noServer(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]int{"silent": isSilent, "refuses": refuses} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := draining("", "")
				server.becomes(state, 3*time.Second)
				out, errs := server.run(t, 100*time.Second, "node drain -monitor "+bubbleNode)
				must.SliceEmpty(t, stillLines(out))
				must.StrContains(t, errs, ": connection lost, trying s1 again\n")
				lines := stillLines(errs)
				must.SliceLen(t, 4, lines, must.Sprint(errs))
				for _, line := range lines {
					must.RegexMatch(t, regexp.MustCompile(`^Still waiting for an answer from s1, at most (9m|8m)\d+s more \(\d+m?\d*s\)$`), line)
				}
			})
		})
	}
}

// Bug: without a leader a watch printed one line, and then nothing.
func TestSilence_noLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := draining("", "")
		server.becomes(isLeaderless, 3*time.Second)
		out, errs := server.run(t, 60*time.Second, "node drain -monitor "+bubbleNode)
		must.SliceEmpty(t, stillLines(out))
		lines := stillLines(errs)
		must.SliceLen(t, 3, lines, must.Sprint(errs))
		must.StrHasPrefix(t, "Still waiting for a leader of the servers (", lines[0])
	})
}

// Bug: the last reads of a watch were repeated for ten minutes without a line.
func TestSilence_afterTheDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := draining("", "")
		server.put("GET /v1/node/"+bubbleNode, `{"ID":"`+bubbleNode+`","Status":"ready"}`)
		server.put("GET /v1/node/"+bubbleNode+"/allocations", `[]`)
		server.put("GET /v1/node/"+bubbleNode+"/drain", `{"State":"ended","Drain":{"ID":"d1","Outcome":"complete","VolumesLeft":{"More":1}}}`)
		server.put("GET /v1/volumes", `{`) // nothing that can be decoded
		_, errs := server.run(t, 30*time.Second, "node drain -monitor "+bubbleNode)
		must.Eq(t, []string{
			"Still waiting for what the drain has left: an answer from s1 (10s)", "Still waiting for what the drain has left: an answer from s1 (20s)",
		}, stillLines(errs))
	})
}

// Bug: after a cancel, a watch whose connection was lost never ended: no one took the report of the loss.
func TestSilence_afterACancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := draining("", "")
		server.put("GET /v1/node/"+bubbleNode, `{"ID":"`+bubbleNode+`","Status":"ready","LastDrain":{"Status":"canceled"}}`)
		server.put("GET /v1/node/"+bubbleNode+"/drain", `{"State":"ended","Drain":{"ID":"d1","Outcome":"cancelled","StillStopping":1}}`)
		server.put("GET /v1/node/"+bubbleNode+"/allocations", `{`) // nothing that can be decoded
		time.AfterFunc(25*time.Second, func() { server.put("GET /v1/node/"+bubbleNode+"/allocations", `[]`) })
		out, errs := server.run(t, time.Hour, "node drain -monitor "+bubbleNode)
		must.StrContains(t, out, "No allocation stops on node")
		must.SliceNotEmpty(t, stillLines(errs), must.Sprint(errs))
	})
}

// Bug: a command whose server did not answer printed nothing for half a minute. With -json the output has only the
// answer.
func TestSilence_request(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"drain list -json", "drain show d1", "drain confirm -yes d1", "drain pause -all", "drain resume -all", "drain plan node-1", "node drain -plan " + bubbleNode,
		"node drain -pause " + bubbleNode, "node drain -resume " + bubbleNode, "node drain -enable -yes " + bubbleNode, "node status",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := &bubbleServer{state: isSilent}
				out, errs := server.run(t, 35*time.Second, line)
				must.Eq(t, "", out)
				must.Eq(t, []string{"Still waiting for an answer from s1 (10s)", "Still waiting for an answer from s1 (20s)"}, stillLines(errs)[:2])
			})
		})
	}
}

// Bug: without a terminal a plan took up to two minutes in silence.
func TestSilence_plan(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"drain plan -json " + bubbleNode, "drain plan " + bubbleNode, "node drain -plan " + bubbleNode} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := draining("", "")
				server.put("PUT /v1/drains/plan", `{"Sentence":"nothing moves"}`)
				server.planTakes = 25 * time.Second
				out, errs := server.run(t, time.Hour, line)
				must.StrContains(t, out, "nothing moves")
				const want = "Still waiting for the plan: a server plays the drains, at most 2m0s; an answer from s1"
				must.Eq(t, []string{want + " (10s)", want + " (20s)"}, stillLines(errs))
				if strings.Contains(line, "-json") {
					must.True(t, json.Valid([]byte(out)))
				}
			})
		})
	}
}

// Bug: "job run" waited for the scheduler, and for servers, in silence.
func TestSilence_jobRun(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "job.json")
	must.NoError(t, os.WriteFile(file, []byte(`{"ID":"web"}`), 0o644))
	synctest.Test(t, func(t *testing.T) {
		server := &bubbleServer{answers: map[string]string{
			"PUT /v1/jobs": `{"EvalID":"e1"}`, "GET /v1/evaluation/e1": `{"ID":"e1","Status":"pending"}`,
		}}
		server.becomes(refuses, 25*time.Second)
		_, errs := server.run(t, time.Hour, "job run "+file)
		lines := stillLines(errs)
		must.SliceLen(t, 3, lines, must.Sprint(errs))
		must.Eq(t, []string{"Still waiting for the scheduler to answer evaluation e1 (10s)", "Still waiting for the scheduler to answer evaluation e1 (20s)"}, lines[:2])
		must.StrHasPrefix(t, "Still waiting for an answer from s1, at most ", lines[2])
		must.StrContains(t, errs, "connection lost, trying s1 again\n")
	})
}
