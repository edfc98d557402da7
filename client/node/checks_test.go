package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/checks"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// serveWeb is a task that serves HTTP on an address. It answers 503 while the file exists, and begins without the file.
func serveWeb(address, file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(file); err == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("no database"))
		}
	}))
}

// website is an allocation of a real web server with two checks, which fail while a file exists.
type website struct {
	*world
	webFails, scriptFails string
}

// newWebsite starts a web server on a loopback address that no other process has.
func newWebsite(t *testing.T) *website {
	t.Helper()
	dir := t.TempDir()
	s := &website{webFails: filepath.Join(dir, "web"), scriptFails: filepath.Join(dir, "script")}
	host := fmt.Sprintf("127.%d.%d.%d", 1+rand.N(250), rand.N(250), 1+rand.N(250))
	program, err := os.Executable()
	must.NoError(t, err)
	s.world, _, _ = newRawExec(t, "", func(g *cluster.TaskGroup) {
		g.RestartPolicy = &cluster.RestartPolicy{Attempts: 1, Interval: time.Hour, Mode: cluster.RestartFail}
		g.Migrate = cluster.DefaultMigrateStrategy()
		g.Migrate.MinHealthyTime = 10 * time.Millisecond
		task := g.Tasks[0]
		task.ShutdownDelay = 10 * time.Millisecond
		task.Config, err = json.Marshal(map[string]any{"command": program, "args": []string{"web", host + ":8080", s.webFails}})
		must.NoError(t, err)
		check := cluster.ServiceCheck{Interval: 50 * time.Millisecond, Timeout: time.Minute, FailuresBeforeCritical: 2}
		web, script := check, check
		web.Name, web.Type, web.Path, web.Restart = "answers", cluster.CheckHTTP, "/", &cluster.CheckRestart{Limit: 4, Grace: 5 * time.Second}
		script.Name, script.Type, script.Command, script.Args = "script", cluster.CheckScript, "/bin/sh", []string{"-c", `test "$COLOR" = red && test ! -e "$0"`, s.scriptFails}
		script.Interval = 200 * time.Millisecond
		g.Services = []cluster.Service{{Name: "web-${NOMAD_JOB_ID}", PortLabel: "8080", Address: host, Checks: []cluster.ServiceCheck{web, script}}}
	})
	return s
}

// awaitHealth waits for a verdict in a report.
func (s *website) awaitHealth(healthy bool) {
	s.Helper()
	s.await(func(servers *scripted) bool {
		verdict := servers.reported[s.id].Healthy
		return verdict != nil && *verdict == healthy
	})
}

// events are the events of the task.
func (s *website) events() (all string) {
	s.servers.set(func() {
		for _, e := range s.servers.reported[s.id].TaskStates.Tasks[0].Events {
			all += e.Type + ": " + e.Message + "\n"
		}
	})
	return all
}

// statuses are the states of the checks by their names, as the reference's client reads them.
func (s *website) statuses() map[string]api.AllocCheckStatus {
	s.Helper()
	server := s.serve()
	defer server.Close()
	status, body := get(s.T, server.URL+"/v1/client/allocation/"+string(s.id)+"/checks")
	must.EqOp(s, http.StatusOK, status, must.Sprint(body))
	var all api.AllocCheckStatuses
	must.NoError(s, json.Unmarshal([]byte(body), &all))
	byName := map[string]api.AllocCheckStatus{}
	for id, one := range all {
		must.EqOp(s, id, one.ID)
		byName[one.Check] = one
	}
	return byName
}

// The checks of a real task decide about its health: over HTTP, and by a script in the task. A check that fails restarts
// the task once, as its restart policy allows, and the next client continues with the verdict.
func TestChecks_ofAWebServer(t *testing.T) {
	s := newWebsite(t)
	defer s.stopRawExec()
	s.awaitHealth(true)
	all := s.statuses()
	must.MapLen(t, 2, all)
	web := all["answers"]
	must.EqOp(t, "success 200 HTTP 200 OK web-j j.g[0] healthiness", fmt.Sprint(web.Status, " ", web.StatusCode, " ", web.Output, " ", web.Service, " ", web.Group, " ", web.Mode))
	must.Positive(t, web.Timestamp)
	must.EqOp(t, "success", all["script"].Status)

	must.NoError(t, os.WriteFile(s.scriptFails, nil, 0o600))
	s.awaitHealth(false)
	must.StrContains(t, s.events(), `Alloc Unhealthy: The check "script" of service "web-${NOMAD_JOB_ID}" fails`)
	must.EqOp(t, "failure", s.statuses()["script"].Status)
	must.NoError(t, os.Remove(s.scriptFails))
	s.awaitHealth(true)

	s.stop()
	s.servers.set(func() { clear(s.servers.reported) })
	s.begin()
	s.servers.feed <- client.Changes{ClusterID: "c", Index: 2, Allocs: []*cluster.Allocation{s.alloc(s.id, "")}}
	s.awaitHealth(true)
	s.eventually("the checks have run again", func() bool {
		all := s.statuses()
		return all["answers"].Status == "success" && all["script"].Status == "success"
	})
	s.servers.set(func() {
		must.EqOp(t, 0, s.servers.reported[s.id].TaskStates.Tasks[0].Restarts)
		must.True(t, *s.servers.reported[s.id].Healthy)
	})

	must.NoError(t, os.WriteFile(s.webFails, nil, 0o600))
	s.awaitHealth(false)
	must.StrContains(t, s.events(), "fails: HTTP 503 Service Unavailable\nno database")
	s.awaitHealth(true)
	must.StrContains(t, s.events(), `Restart Signaled: The check "answers" of service "web-${NOMAD_JOB_ID}" has failed 4 times in a row`)
	s.servers.set(func() { must.EqOp(t, 1, s.servers.reported[s.id].TaskStates.Tasks[0].Restarts) })
}

// A script in a task whose driver runs no commands fails with a sentence, and so does one whose driver is gone.
func TestChecks_scriptsWithoutExec(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]config.Plugin{"mock": {Name: "mock", Enabled: true}})
	w.begin()
	defer w.stop()
	w.awaitMock()
	a := w.alloc("a1", "{}")
	g := a.Job.TaskGroups[0]
	g.Services = []cluster.Service{{Name: "web", Checks: []cluster.ServiceCheck{{Name: "c", Type: cluster.CheckScript, Command: "true", Timeout: time.Minute, Interval: time.Hour}}}}
	d := checks.Of(g)[0]
	i, err := w.node.shell.drivers.current("ExecTaskStreaming", "mock")
	must.NoError(t, err)
	ref := client.TaskRef{Alloc: "a1", Task: "t", ID: "a1/t/1", Driver: "mock", Generation: client.Generation(i.Generation())}
	for want, change := range map[string]func(*client.TaskRef){
		"the driver mock cannot run commands in its tasks": func(*client.TaskRef) {},
		"has ended": func(r *client.TaskRef) { r.Generation++ },
	} {
		run := client.CheckRun{Run: checks.Run{Definition: d, Number: 1}, Alloc: a, Task: ref}
		change(&run.Task)
		results := make(chan checks.Result, 1)
		w.node.shell.Check(run, func(r checks.Result) { results <- r })
		r := <-results
		must.EqOp(t, checks.Failed, r.Outcome)
		must.StrContains(t, r.Output, want)
	}
}

// A run whose result is no longer needed ends, and is answered.
func TestChecks_endOfARun(t *testing.T) {
	s := newWebsite(t)
	defer s.stopRawExec()
	infos, err := s.node.operators().List(t.Context(), string(s.id))
	must.NoError(t, err)
	a := s.alloc(s.id, "")
	d := checks.Definition{Service: &cluster.Service{}, Check: &cluster.ServiceCheck{
		Type: cluster.CheckScript, Command: "/bin/sh", Args: []string{"-c", `echo > "$0"; exec sleep 600`, s.scriptFails}, Timeout: time.Hour,
	}}
	results := make(chan checks.Result, 1)
	s.node.shell.Check(client.CheckRun{Run: checks.Run{Definition: d, Number: 99}, Alloc: a, Task: refOf(infos[0])}, func(r checks.Result) { results <- r })
	s.eventually("the script runs", func() bool {
		_, err := os.Stat(s.scriptFails)
		return err == nil
	})
	s.node.shell.EndCheck(s.id, 99)
	must.EqOp(t, checks.Failed, (<-results).Outcome)
	s.node.shell.EndCheck(s.id, 99) // it has ended
}
