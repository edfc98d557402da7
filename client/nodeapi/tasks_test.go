package nodeapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
)

func TestSignal(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		alloc, body string
		status      int
		text        string
		calls       string
	}{
		"one task":           {"two", `{"Signal":"SIGHUP","Task":"web"}`, 200, "{}", "signal two/web SIGHUP\n"},
		"all that run":       {"two", `{"Signal":"SIGUSR1"}`, 200, "{}", "signal two/web SIGUSR1\n"},
		"unknown":            {"none", `{"Signal":"SIGHUP"}`, 404, "unknown on this node: allocation none", ""},
		"unknown task":       {"two", `{"Signal":"SIGHUP","Task":"db"}`, 404, `the allocation has no task "db": it has web, init`, ""},
		"dead task":          {"two", `{"Signal":"SIGHUP","Task":"init"}`, 409, `task "init" is dead, and must be running`, ""},
		"all are dead":       {"dead", `{"Signal":"SIGHUP"}`, 409, "no task of the allocation is running", ""},
		"driver away":        {"away", `{"Signal":"SIGHUP"}`, 409, `task "away" runs, but its driver mock does not: retry later`, ""},
		"no signal":          {"two", `{}`, 400, "Signal is missing, such as SIGHUP", ""},
		"odd signal":         {"two", `{"Signal":"HUP"}`, 400, `the signal "HUP" is unknown: use a name such as SIGHUP`, ""},
		"number":             {"two", `{"Signal":"9"}`, 400, `the signal "9" is unknown: use a name such as SIGHUP`, ""},
		"no task gets it":    {"odd", `{"Signal":"SIGHUP"}`, 400, `the driver mock of task "weak" cannot send signals`, ""},
		"no JSON":            {"two", `SIGHUP`, 400, "the body is malformed: invalid character 'S' looking for beginning of value", ""},
		"the driver's error": {"one", `{"Signal":"SIGHUP"}`, 500, `task "web" did not get SIGHUP: broken`, "signal one/web SIGHUP\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if tt.status == 500 {
				w.tasks.refuses = map[string]error{"web": errors.New("broken")}
			}
			status, text := w.put("/v1/client/allocation/"+tt.alloc+"/signal", tt.body)
			must.EqOp(t, tt.text, text)
			must.EqOp(t, tt.status, status)
			must.EqOp(t, tt.calls, w.called())
		})
	}
}

// called returns what was requested of the tasks.
func (w *world) called() (calls string) {
	for len(w.tasks.calls) > 0 {
		calls += <-w.tasks.calls + "\n"
	}
	return calls
}

func TestRestart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body   string
		err    error
		status int
		text   string
		calls  string
	}{
		"one task":    {`{"TaskName":"web"}`, nil, 200, "{}", "restart a/web all=false\n"},
		"that run":    {`{}`, nil, 200, "{}", "restart a/ all=false\n"},
		"all":         {`{"AllTasks":true}`, nil, 200, "{}", "restart a/ all=true\n"},
		"both":        {`{"AllTasks":true,"TaskName":"web"}`, nil, 400, "TaskName and AllTasks exclude each other", ""},
		"unknown":     {`{}`, nodeapi.ErrUnknown, 404, "unknown on this node", "restart a/ all=false\n"},
		"is stopping": {`{}`, fmt.Errorf("%w: the allocation is stopping", nodeapi.ErrState), 409, "not possible now: the allocation is stopping", "restart a/ all=false\n"},
		"full disk":   {`{}`, errors.New("the disk is full"), 500, "the disk is full", "restart a/ all=false\n"},
		"large body":  {`{"TaskName":"` + strings.Repeat("x", 64<<10) + `"}`, nil, 400, "the body is malformed: http: request body too large", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.tasks.refuses = map[string]error{"": tt.err}
			status, text := w.put("/v1/client/allocation/a/restart", tt.body)
			must.EqOp(t, tt.text, text)
			must.EqOp(t, tt.status, status)
			must.EqOp(t, tt.calls, w.called())
		})
	}
}

// A handler without tasks states it.
func TestHandler_withoutTasks(t *testing.T) {
	t.Parallel()
	h := nodeapi.New(nodeapi.Options{})
	for _, act := range []string{"signal", "restart"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/v1/client/allocation/a/"+act, strings.NewReader("{}")))
		must.EqOp(t, http.StatusNotImplemented, w.Code)
	}
}
