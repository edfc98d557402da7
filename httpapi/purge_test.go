package httpapi_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// The answers about a purged job whose allocation still runs. Its client gets the allocation with the
// request to stop it: without the row it would stop it as one that is missing.
func TestPurgedJobs(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	web := w.job("web", cluster.JobService, 2)
	w.place(1, web, nodeID(1))
	w.place(2, web, nodeID(1))
	w.report(2, cluster.ClientComplete)
	url := w.serve(httpapi.Options{}).URL
	get := func(path string) answer { return request(t, "GET", url+path, "") }
	index := w.must(&shims.JobDeregister{Job: web.Key(), Purge: true, At: w.Now()})

	must.Eq(t, 404, get("/v1/job/web").code)
	must.SliceEmpty(t, decode[[]wire.JobListStub](t, get("/v1/jobs")))
	for _, path := range []string{"/v1/job/web/allocations", "/v1/allocations"} {
		listed := decode[[]wire.AllocationListStub](t, get(path))
		must.SliceLen(t, 1, listed, must.Sprint(path))
		must.Eq(t, string(allocID(1)), listed[0].ID)
		must.Eq(t, "stop", listed[0].DesiredStatus)
		must.Eq(t, cluster.DescPurged, listed[0].DesiredDescription)
	}
	must.Eq(t, "web", *decode[wire.Allocation](t, get("/v1/allocation/"+string(allocID(1)))).Job.ID)
	must.Eq(t, 404, get("/v1/allocation/"+string(allocID(2))).code)
	changes := decode[wire.AllocChanges](t, get(changesPath+"c1"))
	must.Eq(t, []string{string(allocID(1))}, idsOf(changes))
	must.Eq(t, index, changes.Allocs[0].AllocModifyIndex)
	must.Eq(t, "stop", changes.Allocs[0].DesiredStatus)
}
