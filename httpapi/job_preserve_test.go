package httpapi_test

import (
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// "job run -preserve-counts" and "-preserve-resources" keep what the registered job has. Bug: they were ignored,
// and a job that had been scaled to three was cut to one.
func TestReferenceClient_PreservesCounts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options    api.RegisterOptions
		count, cpu int
	}{
		"nothing":   {api.RegisterOptions{}, 1, 200},
		"counts":    {api.RegisterOptions{PreserveCounts: true}, 3, 200},
		"resources": {api.RegisterOptions{PreserveResources: true}, 1, 100},
		"both":      {api.RegisterOptions{PreserveCounts: true, PreserveResources: true}, 3, 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t).nodes(1)
			jobs := w.client().Jobs()
			result.Read(jobs.RegisterOpts(newJob(3, 100), &test.options, nil)).OK(t)
			next := newJob(1, 200)
			next.AddTaskGroup(api.NewTaskGroup("added", 2).AddTask(api.NewTask("main", "docker")))
			answer := result.Read(jobs.RegisterOpts(next, &test.options, nil)).OK(t)
			must.Eq(t, "", answer.Warnings)
			job := w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"})
			must.Eq(t, 1, job.Version)
			must.Eq(t, test.count, job.Group("web").Count)
			must.Eq(t, int64(test.cpu), job.Group("web").Tasks[0].Resources.CPU)
			must.Eq(t, 2, job.Group("added").Count)

			options := test.options
			options.EnforceIndex, options.ModifyIndex = true, 1
			_, _, err := jobs.RegisterOpts(next, &options, nil)
			must.ErrorContains(t, err, "409")
		})
	}
}

// All that a resources block has is kept, not only the sums.
func TestReferenceClient_PreservesEveryResource(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	jobs := w.client().Jobs()
	number := func(n int) *int { return &n }
	first := newJob(1, 0)
	first.TaskGroups[0].Tasks[0].Resources = &api.Resources{
		Cores: number(2), MemoryMB: number(300), MemoryMaxMB: number(600), Devices: []*api.RequestedDevice{{Name: "gpu", Count: new(uint64(2))}},
	}
	result.Read(jobs.Register(first, nil)).OK(t)
	had := w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"}).Group("web").Tasks[0]
	next := newJob(1, 100)
	next.TaskGroups[0].Tasks[0].Env = map[string]string{"VERSION": "2"}
	result.Read(jobs.RegisterOpts(next, &api.RegisterOptions{PreserveResources: true}, nil)).OK(t)
	has := w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"}).Group("web").Tasks[0].Copy()
	must.Eq(t, "2", has.Env["VERSION"])
	must.Eq(t, 600, had.MemoryMaxMB)
	has.Env = had.Env
	must.Eq(t, had, has)
}

// Bug: resources that do not fit the services of the new version were answered 500.
func TestReferenceClient_PreservesPortsThatAServiceLacks(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	version := func(label string) *api.Job {
		j := newJob(1, 100)
		j.TaskGroups[0].Tasks[0].Resources.Networks = []*api.NetworkResource{{Mode: "host", DynamicPorts: []api.Port{{Label: label}}}}
		j.TaskGroups[0].Services = []*api.Service{{Name: "web", Provider: "nomad", PortLabel: label}}
		return j
	}
	jobs := w.client().Jobs()
	result.Read(jobs.RegisterOpts(version("a"), &api.RegisterOptions{}, nil)).OK(t)
	_, _, err := jobs.RegisterOpts(version("b"), &api.RegisterOptions{PreserveResources: true}, nil)
	must.ErrorContains(t, err, "400")
	must.ErrorContains(t, err, `no port with the label "b"`)
}
