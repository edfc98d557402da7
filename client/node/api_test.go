package node

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// serve serves the node's answers until the node stops.
func (w *world) serve() *httptest.Server {
	w.Helper()
	server := httptest.NewServer(nodeapi.New(w.node.nodeapiOptions()))
	w.Cleanup(server.Close)
	return server
}

// get answers a request with its status and body.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	answer, err := http.Get(url)
	must.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must.NoError(t, err)
	return answer.StatusCode, string(body)
}

// A caller follows the log of a task from before its start until its end, across a restart of the
// client.
func TestNode_files(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]config.Plugin{"mock": {Name: "mock", Enabled: true}})
	w.begin()
	server := w.serve()
	status, body := get(t, server.URL+"/v1/client/fs/logs/a1?task=t&type=stdout&follow=true")
	must.Eq(t, http.StatusNotFound, status)
	must.StrContains(t, body, `the node does not have allocation "a1"`)

	running := w.alloc("a1", `{"stdout_string": "hello\n"}`)
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 2, Allocs: []*cluster.Allocation{running}}
	w.awaitStatus("a1", cluster.ClientRunning)
	answer, err := http.Get(server.URL + "/v1/client/fs/logs/a1?task=t&type=stdout&follow=true")
	must.NoError(t, err)
	defer answer.Body.Close()
	var frame api.StreamFrame
	for decoder := json.NewDecoder(answer.Body); len(frame.Data) == 0; {
		must.NoError(t, decoder.Decode(&frame))
	}
	must.Eq(t, api.StreamFrame{Offset: 6, Data: []byte("hello\n"), File: "alloc/logs/t.stdout.0"}, frame)
	_, body = get(t, server.URL+"/v1/client/fs/ls/a1?path=t")
	for _, name := range []string{`"local"`, `"private"`, `"secrets"`, `"tmp"`} {
		must.StrContains(t, body, name)
	}
	status, _ = get(t, server.URL+"/v1/client/fs/ls/a1?path=t/secrets")
	must.Eq(t, http.StatusForbidden, status)
	// The mock measures nothing, so that its tasks have no statistics.
	_, body = get(t, server.URL+"/v1/client/allocation/a1/stats")
	must.StrContains(t, body, `"Tasks":{}`)
	status, body = get(t, server.URL+"/v1/client/stats")
	must.Eq(t, http.StatusOK, status)
	must.StrContains(t, body, `"AllocDirStats":{`)
	server.CloseClientConnections()
	w.stop()

	w.begin()
	server = w.serve()
	w.awaitStatus("a1", cluster.ClientRunning)
	ended := make(chan string, 1)
	go func() {
		_, body := get(t, server.URL+"/v1/client/fs/logs/a1?task=t&type=stdout&follow=true&plain=true&file=t.stdout.0&offset=3")
		ended <- body
	}()
	stopped := running.Copy()
	stopped.DesiredStatus, stopped.AllocModifyIndex = cluster.DesiredStop, 3
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 3, Allocs: []*cluster.Allocation{stopped}}
	w.awaitStatus("a1", cluster.ClientComplete)
	must.Eq(t, "lo\n", <-ended)
	w.stop()
}

func TestRoster(t *testing.T) {
	t.Parallel()
	job := &cluster.Job{TaskGroups: []*cluster.TaskGroup{{Name: "g", Tasks: []*cluster.Task{{Name: "t", Driver: "d"}}}}}
	rec := &client.Record{Alloc: &cluster.Allocation{ID: "a", Job: job, TaskGroup: "g"}, Tasks: []client.TaskRecord{{State: cluster.TaskState{Name: "t"}}}}
	r := newRoster(&drivers{}, []*client.Record{rec})
	tasks, changed, has := r.Tasks("a")
	must.True(t, has)
	must.Eq(t, []nodeapi.TaskState{{Name: "t"}}, tasks)
	_, err := r.Usage(t.Context(), "a", "t")
	must.ErrorContains(t, err, "does not run")

	rec.Tasks[0].Phase = client.PhaseRunning
	r.put(rec)
	<-changed
	tasks, changed, _ = r.Tasks("a")
	must.Eq(t, []nodeapi.TaskState{{Name: "t", Running: true}}, tasks)
	_, err = r.Usage(t.Context(), "a", "t")
	must.Eq(t, driver.Gone, driver.ClassOf(err))

	rec.Tasks[0].Phase = client.PhaseDead
	r.put(rec)
	<-changed
	tasks, changed, _ = r.Tasks("a")
	must.Eq(t, []nodeapi.TaskState{{Name: "t", Dead: true}}, tasks)
	r.remove("a")
	r.remove("a")
	<-changed
	_, _, has = r.Tasks("a")
	must.False(t, has)
}

// reporting is a driver that reports some usages of a task, until the reader has enough.
type reporting struct {
	driver.Driver
	usages []driver.Usage
	err    error
}

func (r reporting) Stats(ctx context.Context, _ driver.TaskID, _ time.Duration, report func(driver.Usage)) error {
	for _, u := range r.usages {
		if ctx.Err() != nil {
			return ctx.Err() // as the stream of a plugin ends
		}
		report(u)
	}
	if r.err == nil && len(r.usages) > 0 {
		<-ctx.Done()
	}
	return r.err
}

func TestSample(t *testing.T) {
	t.Parallel()
	first, second := driver.Usage{RSS: 1}, driver.Usage{RSS: 2, CPUPercent: 3}
	for _, c := range []struct {
		d        reporting
		expected driver.Usage
		fails    string
	}{
		{reporting{usages: []driver.Usage{first, second}}, second, ""},
		{reporting{usages: []driver.Usage{first}, err: errors.New("the task ended")}, first, ""},
		{reporting{}, driver.Usage{}, "has ended"},
		{reporting{err: errors.New("unsupported")}, driver.Usage{}, "unsupported"},
	} {
		got, err := sample(t.Context(), c.d, "t")
		must.Eq(t, c.expected, got)
		if c.fails != "" {
			must.ErrorContains(t, err, c.fails)
		} else {
			must.NoError(t, err)
		}
	}
}

// onceMeasured is a driver that measures a task on the first stream only.
type onceMeasured struct {
	*double
	measured int
}

func (d *onceMeasured) Stats(ctx context.Context, _ driver.TaskID, _ time.Duration, report func(driver.Usage)) error {
	if d.measured++; d.measured == 1 {
		report(driver.Usage{RSS: 7})
	}
	<-ctx.Done()
	return &driver.Error{Class: driver.Deadline, Call: "TaskStats", Err: ctx.Err()}
}

// A driver measures a task once. The last measurement counts until the next start of the task.
func TestRoster_usageOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDrivers(map[string]program[driverInstance]{"d": &programOf[driverInstance]{[]driverInstance{&onceMeasured{double: newDouble()}}}}, 8, new(posted), newTrust(new(scripted), new(home), false, quiet()), quiet())
		must.NoError(t, launched(t.Context(), d, "d").Err)
		job := &cluster.Job{TaskGroups: []*cluster.TaskGroup{{Name: "g", Tasks: []*cluster.Task{{Name: "t", Driver: "d"}}}}}
		rec := &client.Record{Alloc: &cluster.Allocation{ID: "a", Job: job, TaskGroup: "g"}, Tasks: []client.TaskRecord{
			{ID: "a/t/1", State: cluster.TaskState{Name: "t"}, Phase: client.PhaseRunning},
		}}
		r := newRoster(d, []*client.Record{rec})
		for range 2 {
			usage, err := r.Usage(t.Context(), "a", "t")
			must.NoError(t, err)
			must.Eq(t, driver.Usage{RSS: 7}, usage)
			r.put(rec)
		}
		rec.Tasks[0].ID = "a/t/2"
		r.put(rec)
		_, err := r.Usage(t.Context(), "a", "t")
		must.Eq(t, driver.Deadline, driver.ClassOf(err))
		must.MapEmpty(t, r.used)
		d.detach()
	})
}
