package httpapi_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// The reference's "alloc status" reads the evaluation that an allocation names, and prints when it is due.
func TestReschedule_followUp(t *testing.T) {
	t.Parallel()
	w := newFixture(t).atNoon().nodes(1)
	w.must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
	client := w.client()
	job := w.job("web", cluster.JobService, 1).Copy()
	job.TaskGroups[0].Reschedule = cluster.DefaultReschedulePolicy(cluster.JobService)
	job = w.Job(job)
	place := func() *cluster.Allocation {
		plan := w.schedule(job)
		must.Len(t, 1, plan.Places)
		return plan.Places[0]
	}
	fail := func(a *cluster.Allocation) {
		w.must(&shims.AllocClientUpdate{At: w.Now(), Reports: []cluster.AllocReport{{Alloc: a.ID, Node: a.NodeID, ClientStatus: cluster.ClientFailed, At: w.Now()}}})
	}
	summary := func() (sum wire.JobSummary) {
		a := request(t, "GET", w.serve(httpapi.Options{}).URL+"/v1/job/web/summary", "")
		must.NoError(t, json.Unmarshal([]byte(a.body), &sum))
		return sum
	}
	first := place()
	must.Eq(t, "", result.Read(client.Allocations().Info(string(first.ID), nil)).OK(t).FollowupEvalID)
	fail(first)
	must.SliceEmpty(t, w.schedule(job).Places)

	due := noon.Add(30 * time.Second)
	failed := result.Read(client.Allocations().Info(string(first.ID), nil)).OK(t)
	must.NotEq(t, "", failed.FollowupEvalID)
	must.Eq(t, failed.FollowupEvalID, result.Read(client.Allocations().List(nil)).OK(t)[0].FollowupEvalID)
	eval := result.Read(client.Evaluations().Info(failed.FollowupEvalID, nil)).OK(t)
	must.Eq(t, due, eval.WaitUntil.UTC())
	must.Eq(t, "alloc-failure pending", eval.TriggeredBy+" "+eval.Status)
	must.Eq(t, map[string]wire.GroupRescheduled{"web": {Allocs: 1, AllocID: string(first.ID), DueAt: wire.NewTime(due)}}, summary().Rescheduled)
	must.Eq(t, "pending", *result.Read(client.Jobs().Info("web", nil)).OK(t).Status)

	w.Now = func() time.Time { return due.Add(time.Second) }
	second := place()
	must.Eq(t, "", result.Read(client.Allocations().Info(string(first.ID), nil)).OK(t).FollowupEvalID)
	tracker := result.Read(client.Allocations().Info(string(second.ID), nil)).OK(t).RescheduleTracker
	must.Len(t, 1, tracker.Events)
	must.Eq(t, string(first.ID), tracker.Events[0].PrevAllocID)
	must.MapEmpty(t, summary().Rescheduled)

	other := job.Copy()
	other.TaskGroups[0].Reschedule = &cluster.ReschedulePolicy{}
	job = w.Job(other)
	fail(second)
	must.SliceEmpty(t, w.schedule(job).Places)
	must.Eq(t, "", result.Read(client.Allocations().Info(string(second.ID), nil)).OK(t).FollowupEvalID)
	must.Eq(t, "no replacements", summary().GivenUp["web"].Policy)
}

// Below version 9 a job has no policy. A registration warns of one that the client has not filled in by itself.
func TestReschedule_olderCluster(t *testing.T) {
	t.Parallel()
	w := newOldFixture(t).nodes(1)
	w.must(&shims.RaiseClusterVersion{Version: cluster.VersionOfRescheduling - 1})
	register := func(p *api.ReschedulePolicy) string {
		group := api.NewTaskGroup("web", 1).AddTask(api.NewTask("main", "docker"))
		group.ReschedulePolicy = p
		job := api.NewServiceJob("web", "web", "global", 50).AddTaskGroup(group)
		warnings := result.Read(w.client().Jobs().Register(job, nil)).OK(t).Warnings
		must.Nil(t, w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"}).TaskGroups[0].Reschedule)
		answered := result.Read(w.client().Jobs().Info("web", nil)).OK(t).TaskGroups[0].ReschedulePolicy
		must.Eq(t, cluster.MaxReschedules, *answered.Attempts)
		return warnings
	}
	must.Eq(t, "", register(nil))
	must.StrContains(t, register(&api.ReschedulePolicy{Attempts: new(0), Unlimited: new(false)}), `the reschedule block of group "web" has no effect yet`)

	w.must(&shims.RaiseClusterVersion{Version: cluster.VersionOfRescheduling})
	answered := result.Read(w.client().Jobs().Info("web", nil)).OK(t)
	must.Eq(t, "", result.Read(w.client().Jobs().Register(answered, nil)).OK(t).Warnings)
	must.Nil(t, w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"}).TaskGroups[0].Reschedule, must.Sprint("what an answer has changes nothing"))
}
