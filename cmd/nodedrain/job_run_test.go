package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/eval"
)

// A job reaches the servers as it is in the file, also keys that this command does not have, and the warnings of
// the servers reach the user.
func TestJobRun_unchanged(t *testing.T) {
	t.Parallel()
	const job = `{"ID": "web", "Constraints": [{"LTarget": "${attr.kernel.name}", "RTarget": "linux", "Operand": "="}],
  "TaskGroups": [{"Name": "web", "RestartPolicy": {"Attempts": 3, "Mode": "delay"}, "Tasks": [
    {"Name": "web", "Driver": "raw_exec", "Env": {"A": "<b>"}, "Config": {"command": "/bin/sh", "args": ["-c", "exit 0"], "n": 1e400}}]}], "Unknown": [1]}`
	var sent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = r.Method + " " + r.URL.Path + " " + string(body)
		_, _ = io.WriteString(w, `{"EvalID": "e1", "Warnings": "first\nsecond"}`)
	}))
	t.Cleanup(server.Close)
	for input, want := range map[string]string{
		job:                            `{"Job":` + job + `}`,
		`{"Job": ` + job + `}`:         `{"Job": ` + job + `}`,
		` {"job": ` + job + `}` + "\n": `{"job": ` + job + `}`,
	} {
		code, out, errs := commandAt(t.Context(), server.URL, input, "job run -detach -")
		must.Zero(t, code, must.Sprint(errs))
		must.Eq(t, withoutSpace("PUT /v1/jobs "+want), withoutSpace(sent))
		must.Eq(t, "Job registered: evaluation e1\n", out)
		must.Eq(t, "Warning: first\nWarning: second\n", errs)
	}
}

// withoutSpace returns JSON without the space that its encoder removes, and with the letters that it
// escapes.
func withoutSpace(text string) string {
	text = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(text)
	return strings.Join(strings.Fields(text), "")
}

// "job run" prints what the evaluation leaves: slots that the scheduler does not fill any more, and rollouts. Regression: it printed only that the evaluation was complete,
// and exited with 0.
func TestJobRun_leftAsItIs(t *testing.T) {
	t.Parallel()
	summary := `{"JobID": "shop"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/jobs":
			_, _ = io.WriteString(w, `{"EvalID": "e1"}`)
		case "/v1/evaluation/e1":
			_, _ = io.WriteString(w, `{"ID": "e1", "Namespace": "shops", "JobID": "shop", "Status": "complete"}`)
		case "/v1/job/shop/summary":
			must.Eq(t, "shops", r.URL.Query().Get("namespace"))
			_, _ = io.WriteString(w, summary)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	register := func() (int, string) {
		code, out, errs := commandAt(t.Context(), server.URL, `{"ID": "shop", "Namespace": "shops"}`, "job run -")
		must.Eq(t, "", errs)
		return code, out
	}
	code, out := register()
	must.Zero(t, code)
	must.StrNotContains(t, out, "empty")
	summary = `{"JobID": "shop", "GivenUp": {"web": {"Slots": 1, "Failed": 11, "Replaced": 10, "AllocID": "a1", "NodeID": "n1"}}}`
	code, out = register()
	must.Eq(t, int(eval.ExitNotPlaced), code)
	must.StrContains(t, out, "Evaluation e1 is complete\n\nGroup \"web\": 1 slot stays empty, because too many allocations in a row failed\n")
	must.StrContains(t, out, "To fill the slot: change the group's tasks or disk, then nodedrain job run FILE\n")

	summary = `{"JobID": "shop", "Rollouts": {"web": {"Outdated": 2, "Why": "group web already replaces 1, and max_parallel of its update is 1"}}}`
	code, out = register()
	must.Zero(t, code)
	must.StrContains(t, out, "\nGroup \"web\": the new version has still to replace 2 allocations\n  * It waits: group web already replaces 1")
}
