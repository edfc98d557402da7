package e2e

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"
)

// target answers the requests of a check with a status that the test sets.
type target struct {
	*httptest.Server
	status atomic.Int32
}

func newTarget(t *testing.T, status int32) *target {
	target := &target{}
	target.status.Store(status)
	target.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(target.status.Load()))
		_, _ = io.WriteString(w, "no \x1b[2Jdatabase") // the caller may be gone
	}))
	t.Cleanup(target.Close)
	return target
}

// awaitInstances waits with blocking queries until the catalogue has so many instances of the service.
func awaitInstances(s *site, count int) (instances []*api.ServiceRegistration) {
	s.t.Helper()
	index := uint64(0)
	s.await("the instances of the service", func() bool {
		answer, meta, err := s.api.Services().Get("web", (&api.QueryOptions{WaitIndex: index, WaitTime: 5 * time.Second}).WithContext(s.t.Context()))
		if err == nil {
			index, instances = meta.LastIndex, answer
		}
		return err == nil && len(answer) == count
	})
	return instances
}

// verdictOf is the verdict of the servers on an allocation, or nil.
func verdictOf(s *site, alloc string) *bool {
	a, _, err := s.api.Allocations().Info(alloc, nil)
	if err != nil || a.DeploymentStatus == nil {
		return nil
	}
	return a.DeploymentStatus.Healthy
}

// A check of a job that is registered over the API decides about the health of a real allocation. The catalogue, the
// compatible API's library and the commands follow it.
//
//race:skip its programs do not have the detector
func TestNode_aCheckDecides(t *testing.T) {
	t.Parallel()
	s := startSite(t, 0, true)
	s.begin(s.newNode("n1", true, "network_interface = \"lo\"\n"))
	s.await("a node with raw_exec", func() bool {
		nodes, _, err := s.api.Nodes().List(nil)
		return err == nil && len(nodes) == 1 && nodes[0].Drivers["raw_exec"] != nil && nodes[0].Drivers["raw_exec"].Healthy
	})
	target := newTarget(t, http.StatusServiceUnavailable)
	host, port, err := net.SplitHostPort(target.Listener.Addr().String())
	must.NoError(t, err)
	number, err := strconv.Atoi(port)
	must.NoError(t, err)
	job := s.service("web", 1)
	group := job.TaskGroups[0]
	group.Tasks = group.Tasks[:1]
	group.Tasks[0].Config = map[string]any{"command": "/bin/sleep", "args": []string{"1000000"}}
	group.Update = &api.UpdateStrategy{MaxParallel: new(1), MinHealthyTime: group.Migrate.MinHealthyTime, HealthyDeadline: new(10 * time.Minute)}
	group.Migrate.HealthyDeadline = new(10 * time.Minute)
	group.Services = []*api.Service{{Name: "web", Provider: "nomad", PortLabel: port, Address: host, Tags: []string{"${NOMAD_JOB_ID}"}, Checks: []api.ServiceCheck{
		{Name: "up", Type: "http", Path: "/up", Interval: time.Second, Timeout: 30 * time.Second},
	}}}
	s.await("the registration", func() bool { // below the cluster version of services there is a warning
		answer, _, err := s.api.Jobs().Register(job, nil)
		return err == nil && answer.Warnings == ""
	})
	s.await("the allocation", func() bool { return s.knownToRun("web") })
	a := s.allocs("web")[0]

	// check waits for the status of the check, as the API's library reads it.
	check := func(status string) (one api.AllocCheckStatus) {
		t.Helper()
		s.await("the status "+status+" of the check", func() bool {
			all, err := s.api.Allocations().Checks(a.ID, nil)
			for _, one = range all {
			}
			return err == nil && len(all) == 1 && one.Status == status
		})
		return one
	}
	run := func(args ...string) string {
		t.Helper()
		code, text := operate(s, args...)
		must.Zero(t, code, must.Sprint(args, text))
		return text
	}
	one := check("failure")
	must.EqOp(t, "up web 503 healthiness", one.Check+" "+one.Service+" "+strconv.Itoa(one.StatusCode)+" "+one.Mode)
	must.StrContains(t, one.Output, "HTTP 503 Service Unavailable")
	must.Nil(t, verdictOf(s, a.ID), must.Sprint("it may still become healthy"))
	must.SliceEmpty(t, awaitInstances(s, 0))
	must.StrContains(t, run("alloc", "status", a.ID), "HTTP 503 Service Unavailable no \ufffd[2Jdatabase")

	target.status.Store(http.StatusOK)
	i := awaitInstances(s, 1)[0]
	must.EqOp(t, a.ID+" "+host+" web web", i.AllocID+" "+i.Address+" "+i.ServiceName+" "+i.Tags[0])
	must.EqOp(t, number, i.Port)
	must.True(t, *verdictOf(s, a.ID))
	check("success")
	must.StrContains(t, run("service", "info", "web"), net.JoinHostPort(host, port))
	lists, _, err := s.api.Services().List(nil)
	must.NoError(t, err)
	must.EqOp(t, "default web web", lists[0].Namespace+" "+lists[0].Services[0].ServiceName+" "+lists[0].Services[0].Tags[0])
	of, _, err := s.api.Allocations().Services(a.ID, nil)
	must.NoError(t, err)
	must.Eq(t, []*api.ServiceRegistration{i}, of)

	target.status.Store(http.StatusServiceUnavailable)
	awaitInstances(s, 0)
	must.False(t, *verdictOf(s, a.ID))
	must.StrContains(t, run("alloc", "checks", a.ID), "HTTP 503 Service Unavailable")
	must.StrContains(t, run("alloc", "status", a.ID), `The check "up" of service "web" fails: HTTP 503`)
	must.StrContains(t, run("service", "info", "web"), "No instances")

	target.status.Store(http.StatusOK)
	awaitInstances(s, 1)
	_, _, err = s.api.Jobs().Deregister("web", false, nil)
	must.NoError(t, err)
	must.SliceEmpty(t, awaitInstances(s, 0))
	s.stopJob("web")
}
